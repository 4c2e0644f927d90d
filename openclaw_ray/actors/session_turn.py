"""One turn in a session process: the `TurnPort` that agents' code sees, and its way from start to outbox.

1. Load the agent, decode the input, write the first visible row, run.
2. After 5 ms a `Started` goes up, so that the deadline counts from the true start.
3. While the program waits for children its slot is given back (`Paused`), and asked for again before it goes on.
4. At the end: tools' processes of a cancelled turn are ended, the clean check is made, and `Settled` carries all of it.

What it says is in `turn_rows`, what it asks in `turn_questions`.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any

from openclaw_ray.actors.courier_thread import STOPPING
from openclaw_ray.actors.payload import unpack
from openclaw_ray.actors.permits import Permits
from openclaw_ray.actors.requester import Requester
from openclaw_ray.actors.steers import Steers
from openclaw_ray.actors.turn_questions import TurnQuestions
from openclaw_ray.actors.turn_rows import TurnRows
from openclaw_ray.agents.descendants import kill_descendants
from openclaw_ray.agents.folders import enter_folder
from openclaw_ray.agents.hygiene import Baseline, check
from openclaw_ray.agents.outcome import failed
from openclaw_ray.agents.port import SpawnRequest, ToolTask
from openclaw_ray.agents.run_turn import Ended
from openclaw_ray.core.first_message import first_message
from openclaw_ray.core.lifecycle import Cause, RunState
from openclaw_ray.core.log_lines import LogOf
from openclaw_ray.core.protocol.batch import Told
from openclaw_ray.core.protocol.messages import (
    Blocked,
    Cancel,
    CleanCheck,
    DownMessage,
    MapDone,
    Paused,
    Permit,
    Progress,
    Resume,
    Resumed,
    Settled,
    Spec,
    Started,
    Steered,
    UsageAdded,
    Verdict,
)
from openclaw_ray.core.results import Completion, Receipt, StopReport, Usage
from openclaw_ray.core.sent import Sent
from openclaw_ray.core.session_facts import SessionFacts

if TYPE_CHECKING:
    from openclaw_ray.actors.attached_files import Placed
    from openclaw_ray.actors.session_actor import SessionActor

__all__ = ["SessionTurn"]

STARTED_AFTER = 0.005
"""Seconds after which a turn says that it runs (PROTOCOL.md 3.4)."""
PROGRESS_EVERY = 0.1
"""Seconds between two progress reports; the newest one always goes out."""


class SessionTurn(TurnQuestions):
    """One activation's turn."""

    def __init__(self, actor: SessionActor, spec: Spec) -> None:
        self.actor = actor
        self.spec = spec
        self.courier = actor.courier
        self.requester = Requester(self.courier, spec.session_key, spec.activation, spec.activation, spec.agent_id)
        self.requester.state_dir = self._state_dir()
        self._files: Any = ()
        self._placed: Placed | None = None
        self.steers = Steers(self.courier, spec.run, spec.activation)
        self.permits = Permits(self.courier, spec.run, spec.activation)
        self.rows = TurnRows(self.courier, spec)
        self._lock = threading.Lock()
        self._heard = not spec.completions
        self._waits = 0
        self._wait_number = 0
        self._resumed: Future[None] | None = None
        self._cancelled: str | None = None
        self._on_cancel: list[Callable[[str], None]] = []
        self._progress: Progress | None = None
        self._progress_armed = False

    # ------------------------------------------------------------------ the turn's way

    def run(self, baseline: Baseline) -> None:
        """From start to outbox."""
        spec, actor = self.spec, self.actor
        began = time.monotonic()
        self.courier.alarm("started", STARTED_AFTER, lambda: self._started(began))
        # a log that cannot be written (full disk) costs the log, not the turn
        with contextlib.suppress(OSError):
            actor.log.begin(LogOf(spec.session_key, spec.run, spec.root))
        ended = self._program(began)
        with contextlib.suppress(OSError):
            actor.log.end(spec.session_id)
        if self._cancelled is not None:
            kill_descendants()
        clean = check(baseline, actor.runner.loop)
        if not clean.clean:
            kill_descendants()  # this process ends soon, and Ray's end of its group can miss what is below it
        if ended.outcome.state is RunState.FAILED and ended.outcome.error is not None and self._cancelled is None:
            error = ended.outcome.error
            actor.log.failed(f"{spec.session_key} failed: {error.type}: {error.message}")
        self._settle(ended, clean)

    def _settle(self, ended: Ended, clean: CleanCheck) -> None:
        """Into the outbox, and on its way (4)."""
        spec, actor = self.spec, self.actor
        if self._placed is not None:
            self._placed.leave()
        self.courier.cancel_alarm("started")
        self.courier.cancel_alarm("progress")
        self.courier.cancel_alarm("rows")
        if ended.outcome.text is not None:
            self.append("assistant", ended.outcome.text)
        with self._lock:
            last = self._progress
            self._progress = None
        unwanted = spec.transcripts == "failed" and ended.outcome.state is RunState.SUCCEEDED
        rows = self.rows.take()
        kept = self.requester.leave()
        settled = Settled(
            spec.run,
            spec.activation,
            ended.outcome,
            ended.state,
            () if unwanted else rows,
            clean,
            ended.yielded,
            ended.follow_up,
            ended.runtime,
            tuple(kept),
            ended.waits_for,
            ended.acknowledgment,
        )
        with actor._lock:
            actor.activation.held.update(kept)
            if ended.held is not None:
                actor.activation.held[spec.run] = ended.held
            actor.activation.settled(settled)
            actor.turn = None
        self.courier.close_receiver(spec.activation)
        self.courier.post(*((last,) if last is not None else ()), settled)

    def _program(self, began: float) -> Ended:
        spec = self.spec
        try:
            agent, value = self._load()
            self._enter()
        except BaseException as error:  # noqa: BLE001 - whatever loading user code raises is this run's outcome
            return _not_started(error, began)
        if spec.turn == 1:
            said = spec.task if spec.kind == "message" else _first_message(spec)
            self.append("user", said, _origin(spec))
        elif spec.kind == "resume":
            self.append("user", spec.text)
        for told in spec.told:
            self.append("user", told.text, None if told.source is None else {"provenance": told.source.provenance})
        for completed in spec.completions:
            self.courier.heard(completed.run)
            self.requester.adopt(completed)
        completions = [self.requester.completion(c.run) for c in spec.completions]
        return self.actor.runner.run(
            spec,
            agent,
            self,
            input=value,
            completions=[f.result() for f in completions],
            attachments=() if self._placed is None else self._placed.paths,
        )

    def _load(self) -> tuple[Any, Any]:
        spec = self.spec
        agent = self.actor.code.agent(spec.bundle, spec.agent_id)
        value = unpack(spec.input) if spec.input is not None else None
        if value is not None and spec.facts is not None and spec.facts.attachments is not None:
            # what was asked for with files is packed with them; agents need not know
            self._files = value.files
            wanted = value.input is not None and (spec.turn == 1 or spec.kind == "resume")
            value = unpack(value.input) if wanted and value.input is not None else None
        return agent, value

    def _enter(self) -> None:
        """What was settled about the session at its birth comes true here: its attachments, its folder."""
        facts = self.spec.facts
        if facts is None:
            return
        if facts.attachments is not None:
            from openclaw_ray.actors.attached_files import place_files

            self._placed = place_files(self._state_dir(), self.spec, self._files)
            self._files = ()
        self._enter_folder(facts)

    def _state_dir(self) -> str:
        return self.actor.settings.state_dir

    def _enter_folder(self, facts: SessionFacts) -> None:
        enter_folder(facts)

    def _started(self, began: float) -> None:
        self.courier.post(Started(self.spec.run, self.spec.activation, time.monotonic() - began, self._heard))
        self.rows.lasts()  # a turn that is over at once pays nothing for what may be lost with it

    # ------------------------------------------------------------------ being told

    def hear(self, message: DownMessage) -> None:
        """A downlink message for this turn."""
        match message:
            case Cancel():
                if message.activation == self.spec.activation:
                    self.cancel(message.reason, message.mark)
            case Resumed():
                if message.activation == self.spec.activation:
                    with self._lock:
                        mine = message.wait == self._wait_number
                        resumed = self._resumed if mine else None
                        self._resumed = None if mine else self._resumed
                    if resumed is not None and not resumed.done():
                        resumed.set_result(None)
            case Permit():
                self.permits.hear(message)
            case Steered():
                self.steers.hear(message)
            case _:
                self.requester.hear(message)

    def fail(self, error: Exception) -> None:
        """What the turn waits for fails; the turn itself goes on."""
        self.requester.fail(error)
        self.permits.fail(error)
        self.steers.fail(error)

    def hear_verdict(self, verdict: Verdict) -> None:
        """The registry's word on a stop that was asked for, or on a message."""
        self.requester.hear_verdict(verdict)
        self.steers.hear_verdict(verdict)

    def cancel(self, reason: str, mark: int) -> None:
        """End the turn: told once to the program, to its tools' processes, and, if it is a stop, to its children."""
        with self._lock:
            if self._cancelled is not None:
                return
            self._cancelled = reason
            callbacks, self._on_cancel = self._on_cancel, []
        self.courier.drop_unsent(self.spec.activation)
        for callback in callbacks:
            callback(reason)
        self._end_tools()
        if reason == "stopped" and mark > 0:  # a negative number is of this run alone
            self.requester.cascade(mark)

    def _end_tools(self) -> None:
        # a control handler never waits: walking the descendants is left to a thread of its own
        threading.Thread(target=kill_descendants, name="openclaw-descendants", daemon=True).start()

    # ------------------------------------------------------------------ TurnPort

    def spawn(self, requests: Sequence[SpawnRequest]) -> list[Future[Receipt]]:
        """See `TurnPort.spawn`."""
        if self._cancelled is not None:
            refused: Future[Receipt] = Future()
            refused.set_result(STOPPING)
            return [refused for _ in requests]
        if any(request.forks for request in requests):
            self.rows.send()  # a branch has all that was said until now
        return self.requester.spawn(requests)

    def completion(self, run_id: str) -> Future[Completion]:
        """See `TurnPort.completion`."""
        return self.requester.completion(run_id)

    def reply(self, send: str) -> Future[Sent]:
        """See `TurnPort.reply`."""
        return self.requester.sends.reply(send)

    def leave_send(self, send: str) -> bool:
        """See `TurnPort.leave_send`."""
        return self.requester.sends.leave(send)

    def children(self) -> list[Receipt]:
        """See `TurnPort.children`."""
        return self.requester.children()

    def consume(self, run_ids: Sequence[str]) -> None:
        """See `TurnPort.consume`."""
        self._heard = True
        self.requester.consume(run_ids)

    def pause(self) -> None:
        """See `TurnPort.pause`."""
        with self._lock:
            self._waits += 1
            first = self._waits == 1
            self._wait_number += first
        if first:
            self.courier.post(Paused(self.spec.run, self.spec.activation))

    def resume(self) -> Future[None]:
        """See `TurnPort.resume`."""
        future: Future[None] = Future()
        with self._lock:
            self._waits -= 1
            last = self._waits == 0
            wait = self._wait_number
            if last:
                self._resumed = future
        if last:
            self.courier.post(Resume(self.spec.run, self.spec.activation, wait))
        else:
            future.set_result(None)
        return future

    def stop(self, run_ids: Sequence[str]) -> list[Future[StopReport]]:
        """See `TurnPort.stop`."""
        return [self.requester.stop(run=run) for run in run_ids]

    def steer(self, run_id: str, message: str) -> Future[Receipt]:
        """See `TurnPort.steer`."""
        if self._cancelled is not None:
            refused: Future[Receipt] = Future()
            refused.set_result(STOPPING)
            return refused
        return self.requester.steer(run_id, message)

    def steered(self) -> Future[None]:
        """See `TurnPort.steered`."""
        return self.steers.came()

    def take_steered(self) -> list[Future[Told | None]]:
        """See `TurnPort.take_steered`; what is taken is a row of the transcript."""
        asked = self.steers.take()
        for future in asked:
            future.add_done_callback(self._told)
        return asked

    def _told(self, future: Future[Told | None]) -> None:
        told = None if future.exception() is not None else future.result()
        if told is not None:
            self.append("user", told.text, None if told.source is None else {"provenance": told.source.provenance})

    def map_done(self, summary: str) -> None:
        """See `TurnPort.map_done`."""
        self.courier.post(MapDone(self.spec.activation, f"{self.spec.activation}:{self.rows.number()}", summary))

    def progress(self, text: str | None, done: float | None, total: float | None) -> None:
        """See `TurnPort.progress`."""
        with self._lock:
            self._progress = Progress(self.spec.run, self.spec.activation, text, done, total)
            armed, self._progress_armed = self._progress_armed, True
        if not armed:
            self.courier.alarm("progress", PROGRESS_EVERY, self._send_progress)

    def _send_progress(self) -> None:
        with self._lock:
            newest, self._progress = self._progress, None
            self._progress_armed = False
        if newest is not None:
            self.courier.post(newest)

    def add_usage(self, usage: Usage) -> None:
        """See `TurnPort.add_usage`."""
        self.courier.post(UsageAdded(self.spec.run, self.spec.activation, usage))

    def blocked(self, tool: str, rule: str) -> None:
        """See `TurnPort.blocked`."""
        self.courier.post(Blocked(self.spec.run, self.spec.activation, tool, rule))

    def limit(self, name: str, cost: float) -> tuple[str, Future[Permit]]:
        """See `TurnPort.limit`."""
        return self.permits.ask(name, cost)

    def limit_done(self, ask: str) -> None:
        """See `TurnPort.limit_done`."""
        self.permits.done(ask)

    def limit_back_off(self, name: str, seconds: float) -> None:
        """See `TurnPort.limit_back_off`."""
        self.permits.back_off(name, seconds)

    def stop_session(self, key: str) -> Future[StopReport]:
        """See `TurnPort.stop_session`."""
        return self.requester.stop(key=key)

    def task(self, task: ToolTask) -> Future[Any]:
        """See `TurnPort.task`."""
        from openclaw_ray.actors.tool_task import run_as_task

        return run_as_task(task)

    def append(self, role: str, text: str, meta: dict[str, Any] | None = None) -> None:
        """See `TurnPort.append`; ``meta`` is the runtime's own word on the row."""
        self.rows.append(role, text, meta)

    @property
    def cancelled(self) -> str | None:
        """See `TurnPort.cancelled`."""
        return self._cancelled

    def on_cancel(self, callback: Callable[[str], None]) -> None:
        """See `TurnPort.on_cancel`."""
        with self._lock:
            if self._cancelled is None:
                self._on_cancel.append(callback)
                return
            reason = self._cancelled
        callback(reason)


def _first_message(spec: Spec) -> str:
    """The first visible message of a spawned session (SPEC.md C 5)."""
    return first_message(
        task=spec.task,
        depth=spec.depth,
        depth_cap=spec.depth_cap,
        requester=spec.requester,
        agent_id=spec.agent_id,
        created=spec.created,
        facts=spec.facts,
    )


def _origin(spec: Spec) -> dict[str, Any] | None:
    """The runtime's own word on where the first message came from."""
    if spec.source is None and spec.sender is None:
        return None
    origin: dict[str, Any] = {} if spec.source is None else {"provenance": spec.source.provenance}
    return origin if spec.sender is None else {**origin, "sender": spec.sender.to_json()}


def _not_started(error: BaseException, began: float) -> Ended:
    """The agent's code or input did not load here: this run fails, the process goes on."""
    outcome = failed(type(error).__name__, str(error) or repr(error), Cause.START_FAILED)
    return Ended(outcome, None, None, False, False, time.monotonic() - began)
