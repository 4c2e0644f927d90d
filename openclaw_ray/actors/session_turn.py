"""One turn in a session process: the `TurnPort` that agents' code sees, and its way from start to outbox.

1. Load the agent, decode the input, write the first visible row, run.
2. After 5 ms a `Started` goes up, so that the deadline counts from the true start.
3. While the program waits for children its slot is given back (`Paused`), and asked for again before it goes on.
4. What it has said goes up within `ROWS_WITHIN`, so that a process that dies takes no whole message older than that
   along (SCENARIOS.md 70).
5. At the end: tools' processes of a cancelled turn are ended, the clean check is made, and `Settled` carries all of it.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any

from openclaw_ray.actors.attached_files import Placed, place_files
from openclaw_ray.actors.courier_thread import STOPPING
from openclaw_ray.actors.payload import unpack
from openclaw_ray.actors.permits import Permits
from openclaw_ray.actors.requester import Requester
from openclaw_ray.actors.wire import pack
from openclaw_ray.agents.descendants import kill_descendants
from openclaw_ray.agents.folders import enter_folder
from openclaw_ray.agents.hygiene import Baseline, check
from openclaw_ray.agents.outcome import failed
from openclaw_ray.agents.port import SpawnRequest, ToolTask
from openclaw_ray.agents.run_turn import Ended
from openclaw_ray.core.attachments import WithFiles
from openclaw_ray.core.errors import OpenClawRayError, RuntimeUnavailable
from openclaw_ray.core.ids import RandomIds
from openclaw_ray.core.lifecycle import Cause, RunState
from openclaw_ray.core.prompts import first_message
from openclaw_ray.core.protocol.messages import (
    Cancel,
    CleanCheck,
    DownMessage,
    MapDone,
    Paused,
    Permit,
    Progress,
    Resume,
    Resumed,
    Row,
    Rows,
    Settled,
    Spec,
    Started,
    UsageAdded,
)
from openclaw_ray.core.results import Completion, Receipt, StopReport, Usage
from openclaw_ray.core.sent import Sent
from openclaw_ray.core.session_asks import Asker, SessionAnswer
from openclaw_ray.core.session_facts import SessionFacts
from openclaw_ray.core.transcript_pages import TranscriptPage

if TYPE_CHECKING:
    from openclaw_ray.actors.session_actor import SessionActor
    from openclaw_ray.core.auth import AuthAsk, AuthOutcome

__all__ = ["SessionTurn", "with_own_rows"]

STARTED_AFTER = 0.005
"""Seconds after which a turn says that it runs (PROTOCOL.md 3.4)."""
PROGRESS_EVERY = 0.1
"""Seconds between two progress reports; the newest one always goes out."""
ROWS_WITHIN = 0.5
"""Seconds after which a transcript row is on its way, should the turn last as long."""
_FLUSH_BYTES = 64 * 1024
_RECENT = 256
"""Rows that are on their way, at most, without the hub's having them."""
_LOOK_WITHIN = 30.0


class SessionTurn:
    """One activation's turn."""

    def __init__(self, actor: SessionActor, spec: Spec) -> None:
        self.actor = actor
        self.spec = spec
        self.courier = actor.courier
        self.requester = Requester(self.courier, spec.session_key, spec.activation, spec.activation, spec.agent_id)
        self.requester.state_dir = self._state_dir()
        self._files: Any = ()
        self._placed = Placed()
        self.permits = Permits(self.courier, spec.run, spec.activation)
        self._lock = threading.Lock()
        self._rows: list[Row] = []
        self._row_bytes = 0
        self._said = 0
        self._recent: deque[Row] = deque(maxlen=_RECENT)
        self._rows_armed = False
        self._lasts = False
        self._heard = not spec.completions
        self._row_seq = 0
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
            actor.log.begin()
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
            actor.log.one_line(f"[openclaw_ray] {spec.session_key} failed: {error.type}: {error.message}")
        self._settle(ended, clean)

    def _settle(self, ended: Ended, clean: CleanCheck) -> None:
        """Into the outbox, and on its way (4)."""
        spec, actor = self.spec, self.actor
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
            rows = () if unwanted else tuple(self._rows)
            self._rows = []
        kept = self.requester.leave()
        settled = Settled(
            spec.run,
            spec.activation,
            ended.outcome,
            ended.state,
            rows,
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
            self.append("user", said, None if spec.source is None else {"provenance": spec.source.provenance})
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
            attachments=self._placed.paths,
        )

    def _load(self) -> tuple[Any, Any]:
        spec = self.spec
        agent = self.actor.code.agent(spec.bundle, spec.agent_id)
        value = unpack(spec.input) if spec.input is not None else None
        if isinstance(value, WithFiles):  # told apart here, so that agents need not know
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
            self._placed = place_files(self._state_dir(), self.spec, self._files)
            self._files = ()
        self._enter_folder(facts)

    def _state_dir(self) -> str:
        return self.actor.settings.state_dir

    def _enter_folder(self, facts: SessionFacts) -> None:
        enter_folder(facts)

    def _started(self, began: float) -> None:
        self.courier.post(Started(self.spec.run, self.spec.activation, time.monotonic() - began, self._heard))
        self._lasts = True  # a turn that is over at once pays nothing for what may be lost with it
        self._send_rows_soon()

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
            case _:
                self.requester.hear(message)

    def fail(self, error: Exception) -> None:
        """What the turn waits for fails; the turn itself goes on."""
        self.requester.fail(error)
        self.permits.fail(error)

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
            self._send_rows()  # a branch has all that was said until now
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

    def map_done(self, summary: str) -> None:
        """See `TurnPort.map_done`."""
        self._row_seq += 1
        self.courier.post(MapDone(self.spec.activation, f"{self.spec.activation}:{self._row_seq}", summary))

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

    def history(self, limit: int, offset: int) -> Future[list[Row]]:
        """See `TurnPort.history`."""
        from openclaw_ray.actors.names import find_actor

        with self._lock:
            own = [*self._recent, *self._rows]
        future: Future[list[Row]] = Future()
        hub = find_actor(self.actor.settings.runtime, "hub")
        if len(own) >= limit + offset:
            future.set_result(own[max(0, len(own) - offset - limit) : len(own) - offset])
            return future
        asked = hub.history.remote(self.spec.agent_id, self.spec.session_id, limit + offset, 0)

        def came(page: Future[list[Row]]) -> None:
            error = page.exception()
            if error is not None:
                future.set_exception(error)
                return
            known = {(row.activation, row.seq) for row in own}
            rows = [*(row for row in page.result() if (row.activation, row.seq) not in known), *own]
            future.set_result(rows[max(0, len(rows) - offset - limit) : len(rows) - offset])

        asked.future().add_done_callback(came)
        return future

    def limit(self, name: str, cost: float) -> tuple[str, Future[Permit]]:
        """See `TurnPort.limit`."""
        return self.permits.ask(name, cost)

    def limit_done(self, ask: str) -> None:
        """See `TurnPort.limit_done`."""
        self.permits.done(ask)

    def limit_back_off(self, name: str, seconds: float) -> None:
        """See `TurnPort.limit_back_off`."""
        self.permits.back_off(name, seconds)

    def look(self, what: str, limit: int = 100, target: str = "") -> Future[list[Any]]:
        """See `TurnPort.look`."""
        filters = {"requester": self.spec.session_key, "target": target}
        return self._query("view", what, filters, limit, 0, self.asker)

    def asked(self, what: str, given: Mapping[str, Any]) -> Future[SessionAnswer]:
        """See `TurnPort.asked`."""
        return self._query("asked", self.asker, what, dict(given))

    def patch(self, key: str, label: str, session_id: str | None, revision: int | None) -> Future[SessionAnswer]:
        """See `TurnPort.patch`."""
        return self._query("patch", self.asker, key, label, session_id, revision)

    def clear(self, what: str, key: str, session_id: str, revision: int) -> Future[str]:
        """See `TurnPort.clear`."""
        new = (RandomIds().session_id(),) if what == "reset" else ()
        return self._query(what, key, session_id, revision, *new, self.asker)

    def stop_session(self, key: str) -> Future[StopReport]:
        """See `TurnPort.stop_session`."""
        return self.requester.stop(key=key)

    def transcript(
        self, session: Mapping[str, Any], limit: int, offset: int = 0, anchor: str = ""
    ) -> Future[TranscriptPage]:
        """See `TurnPort.transcript`."""
        from openclaw_ray.actors.asking import ask_later
        from openclaw_ray.actors.names import find_actor

        runtime, place = self.actor.settings.runtime, (session["agentId"], session["sessionId"])
        own = self._own_rows(session["sessionId"], anchor)
        page = (limit + offset, 0, "") if own else (limit, offset, anchor)
        asked = ask_later(lambda: find_actor(runtime, "hub").transcript.remote(*place, *page), _LOOK_WITHIN)
        return with_own_rows(asked, own, limit, offset) if own else asked

    def _own_rows(self, session_id: str, anchor: str) -> list[Row]:
        """What this turn has said and may not be on disk, if it is about its own session."""
        if session_id != self.spec.session_id or anchor:
            return []
        with self._lock:
            return [*self._recent, *self._rows]

    @property
    def asker(self) -> Asker:
        """This turn, as the registry knows it."""
        return Asker(self.spec.session_key, self.spec.activation)

    def _query(self, method: str, *args: Any) -> Future[Any]:
        """A question to the registry that may be asked twice."""
        from openclaw_ray.actors.asking import ask_later

        return ask_later(lambda: getattr(self.courier.registry, method).remote(*args), _LOOK_WITHIN)

    def transcript_bytes(self) -> Future[int]:
        """See `TurnPort.transcript_bytes`."""
        from openclaw_ray.actors.asking import ask_later
        from openclaw_ray.actors.names import find_actor

        spec, runtime = self.spec, self.actor.settings.runtime
        with self._lock:
            named = (spec.agent_id, spec.session_id, self._row_bytes, self._said)
        return ask_later(lambda: find_actor(runtime, "hub").transcript_bytes.remote(*named), _LOOK_WITHIN)

    def auth(self, request: AuthAsk | AuthOutcome) -> Future[Any]:
        """See `TurnPort.auth`."""
        from openclaw_ray.actors.asking import ask_later
        from openclaw_ray.actors.auth_wire import unpack_answer

        spec, packed = self.spec, pack(request)
        future: Future[Any] = Future()

        def came(asked: Future[bytes]) -> None:
            try:
                future.set_result(unpack_answer(asked.result()))
            except OpenClawRayError as error:
                future.set_exception(error)
            except Exception as error:  # noqa: BLE001 - of Ray: the registry did not answer
                future.set_exception(RuntimeUnavailable("registry", _LOOK_WITHIN, str(error).splitlines()[0]))

        ask_later(
            lambda: self.courier.registry.auth.remote(spec.session_key, spec.activation, packed), _LOOK_WITHIN
        ).add_done_callback(came)
        return future

    def task(self, task: ToolTask) -> Future[Any]:
        """See `TurnPort.task`."""
        from openclaw_ray.actors.tool_task import run_as_task

        return run_as_task(task)

    def append(self, role: str, text: str, meta: dict[str, Any] | None = None) -> None:
        """See `TurnPort.append`; ``meta`` is the runtime's own word on the row."""
        spec = self.spec
        if spec.transcripts == "none":
            return
        with self._lock:
            self._rows.append(Row(spec.session_id, spec.number, self._row_seq, role, text, time.time(), None, meta))
            self._row_seq += 1
            self._row_bytes += len(text)
            self._said += len(text)
            full = self._row_bytes > _FLUSH_BYTES
        if full:
            self._send_rows()
        elif self._lasts:
            self._send_rows_soon()

    def _send_rows_soon(self) -> None:
        with self._lock:
            arm = self.spec.transcripts == "all" and bool(self._rows) and not self._rows_armed
            self._rows_armed = self._rows_armed or arm
        if arm:
            self.courier.alarm("rows", ROWS_WITHIN, self._send_rows)

    def _send_rows(self) -> None:
        """What was said so far goes up (4)."""
        with self._lock:
            self._rows_armed = False
            if self.spec.transcripts != "all" or not self._rows:
                return
            flush = tuple(self._rows)
            self._rows, self._row_bytes = [], 0
            self._recent.extend(flush)
        self.courier.post(Rows(self.spec.run, self.spec.activation, flush))

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


def with_own_rows(
    asked: Future[TranscriptPage], own: list[Row], limit: int, offset: int
) -> Future[TranscriptPage]:
    """A page of the newest rows on disk, with a turn's own ones after them."""
    future: Future[TranscriptPage] = Future()

    def came(done: Future[TranscriptPage]) -> None:
        if (error := done.exception()) is not None:
            future.set_exception(error)
            return
        page = done.result()
        mine = {(row.activation, row.seq) for row in own}
        rows = [*(row for row in page.rows if (row.activation, row.seq) not in mine), *own]
        end = max(0, len(rows) - offset)
        total = page.total + len(rows) - len(page.rows)
        future.set_result(TranscriptPage(tuple(rows[max(0, end - limit) : end]), total, offset))

    asked.add_done_callback(came)
    return future


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


def _not_started(error: BaseException, began: float) -> Ended:
    """The agent's code or input did not load here: this run fails, the process goes on."""
    outcome = failed(type(error).__name__, str(error) or repr(error), Cause.START_FAILED)
    return Ended(outcome, None, None, False, False, time.monotonic() - began)
