"""The port of a turn whose children are made up: what it spawns is recorded, and answered at once by the test."""

from __future__ import annotations

import copy
import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from openclaw_ray.agents.info import MARK
from openclaw_ray.agents.outcome import failed, outcome_of_return
from openclaw_ray.agents.pickling import dumps
from openclaw_ray.agents.port import SpawnRequest, ToolTask
from openclaw_ray.agents.tools import TOOLS
from openclaw_ray.agents.tools.function_tool import plain_task
from openclaw_ray.channels import BindWish, CannotBind, Channel
from openclaw_ray.core.announce import idempotency_key
from openclaw_ray.core.announce_text import announce_status, status_label
from openclaw_ray.core.auth import (
    AuthAsk,
    AuthOutcome,
    AuthRules,
    Credential,
    FailureReason,
    after_failure,
    after_success,
    choose,
    credential_of,
    held_profile,
    looked_at,
)
from openclaw_ray.core.errors import NoCredential, SpawnError, SpawnForbidden
from openclaw_ray.core.ids import RandomIds
from openclaw_ray.core.keys import mint_child, normalise_agent_id
from openclaw_ray.core.lifecycle import Cause, RunState, result_status
from openclaw_ray.core.limits import RuntimeLimits
from openclaw_ray.core.policy import ToolView, effective_tools
from openclaw_ray.core.protocol.batch import Told
from openclaw_ray.core.protocol.messages import Outcome, Permit, Row, Spec
from openclaw_ray.core.results import Completion, Receipt, Result, StopReport, Usage
from openclaw_ray.core.sent import Sent, replied
from openclaw_ray.core.session_asks import SessionAnswer
from openclaw_ray.core.subagent_rows import ChildFacts
from openclaw_ray.core.transcript_pages import TranscriptPage
from openclaw_ray.store.secrets import SecretReader
from openclaw_ray.testing.local.memory import ProcessMemory

__all__ = ["AnsweringPort", "ProgressSaid", "result_of"]


_STATES = {result_status(state): state for state in RunState if state.terminal}


@dataclass(frozen=True, slots=True)
class ProgressSaid:
    """One call of ``turn.progress``."""

    text: str | None = None
    done: float | None = None
    total: float | None = None


class AnsweringPort:
    """A `TurnPort` for one turn, used by its thread or loop.

    Attributes:
        spawned: what was asked for, in order, map items included.
        unexpected: the first spawn that ``children`` has no answer for, or the assertion that an answer raised.
    """

    def __init__(
        self,
        spec: Spec,
        children: Mapping[str, Any],
        before: Sequence[Row],
        memory: ProcessMemory,
        auth: Mapping[str, Any] | None = None,
        steered: Sequence[str] = (),
        channel: Channel | None = None,
    ) -> None:
        self.spec = spec
        self.spawned: list[SpawnRequest] = []
        self.stopped: list[str] = []
        self.said: list[ProgressSaid] = []
        self.rows: list[Row] = []
        self.usage = Usage()
        self.unexpected: AssertionError | None = None
        self._children = children
        self._before = list(before)
        self._memory = memory
        self._auth: dict[str, Any] = copy.deepcopy(dict(auth or {}))
        self.credentials_said: list[AuthOutcome] = []
        self._steered = [Told(text, "", f"steered-{number}") for number, text in enumerate(steered)]
        self._ids = RandomIds()
        self._channel = channel
        self._born: dict[str, Receipt] = {}
        self._ends: dict[str, Future[Completion]] = {}
        self._asked: dict[str, SpawnRequest] = {}
        self._sent: set[str] = set()

    # ------------------------------------------------------------------ children

    def spawn(self, requests: Sequence[SpawnRequest]) -> list[Future[Receipt]]:
        """See `TurnPort.spawn`."""
        futures = []
        for request in requests:
            future: Future[Receipt] = Future()
            self.spawned.append(request)
            try:
                future.set_result(self._answered(request))
            except AssertionError as error:
                self.unexpected = self.unexpected or error
                future.set_exception(error)
            futures.append(future)
        return futures

    def _answered(self, request: SpawnRequest) -> Receipt:
        agent = normalise_agent_id(request.agent_id or self.spec.agent_id) or "unknown"
        named = request.agent_id or self.spec.agent_id
        ask = request.send
        names = (named, agent) if ask is None else (ask.target, ask.label, ask.agent_id)
        key = next((key for key in (request.task, *names) if key in self._children), None)
        if key is None:
            raise AssertionError(_not_foreseen(request, agent, self._children))
        answer = self._children[key]
        if callable(answer) and not _is_error(answer):
            if hasattr(answer, MARK) or isinstance(answer, type):
                raise AssertionError(
                    f"children[{key!r}] is the agent {answer.__name__}: run_turn runs one turn of one agent. Give what "
                    "that one returns, or a function of the SpawnRequest; LocalRuntime runs whole trees"
                )
            try:
                answer = answer(request)
            except AssertionError:
                raise
            except Exception as error:  # noqa: BLE001 - a child that raises
                answer = error
        if isinstance(answer, SpawnForbidden | SpawnError):
            return answer.receipt
        run, child = self._ids.run_id(), mint_child(agent, self._ids.uuid())
        conversation = ""
        if request.binds and self._channel is not None:
            wish = BindWish(child, agent, request.label, request.task, self.spec.session_key, None)
            try:
                conversation = self._channel.bind(wish)
            except CannotBind as cannot:
                return Receipt("error", error=f"thread: {cannot}", limit="thread")
        receipt = Receipt("accepted", run, child, agent)
        result = replace(_result(answer, self._memory), run_id=run, session_key=child, index=request.index)
        label = status_label(announce_status(result.status), result.error.message if result.error else None)
        if conversation and self._channel is not None and result.text:
            self._channel.send(conversation, result.text)
        end: Future[Completion] = Future()
        end.set_result(
            Completion(
                idempotency_key(child, run), result, child, self._ids.session_id(), run, agent, request.label, label, ""
            )
        )
        if ask is None:
            self._born[run] = receipt
        else:
            self._sent.add(run)
        self._asked[run] = request
        self._ends[run] = end
        return receipt

    def reply(self, send: str) -> Future[Sent]:
        """See `TurnPort.reply`; it is there at once."""
        result = self._ends[send].result().result
        future: Future[Sent] = Future()
        sent = replied(Receipt("accepted", send, result.session_key), result)
        future.set_result(replace(sent, result=None, ended="one way"))
        return future

    def leave_send(self, send: str) -> bool:
        """See `TurnPort.leave_send`."""
        return True

    def steered(self) -> Future[None]:
        """See `TurnPort.steered`; what there is, is there from the beginning."""
        future: Future[None] = Future()
        if self._steered:
            future.set_result(None)
        return future

    def take_steered(self) -> list[Future[Told | None]]:
        """See `TurnPort.take_steered`."""
        taken: list[Future[Told | None]] = []
        for told in self._steered:
            self.append("user", told.text)
            future: Future[Told | None] = Future()
            future.set_result(told)
            taken.append(future)
        self._steered.clear()
        return taken

    def adopt(self, done: Completion) -> None:
        """An end of a child of an earlier turn, which this one is started with."""
        self._born[done.run_id] = Receipt("accepted", done.run_id, done.child_session_key, done.agent_id)
        self._ends[done.run_id] = Future()
        self._ends[done.run_id].set_result(done)

    def completion(self, run_id: str) -> Future[Completion]:
        """See `TurnPort.completion`."""
        if run_id not in self._ends:
            raise AssertionError(
                f"the turn waits for run {run_id}, which it has not spawned: children of earlier turns are given as "
                "completions=…"
            )
        return self._ends[run_id]

    def children(self) -> list[Receipt]:
        """See `TurnPort.children`."""
        return list(self._born.values())

    def consume(self, run_ids: Sequence[str]) -> None:
        """See `TurnPort.consume`."""
        for run_id in run_ids:
            self._born.pop(run_id, None)

    def unheard(self) -> tuple[Completion, ...]:
        """Ends that the program was not given."""
        return tuple(self._ends[run].result() for run in self._born)

    def pause(self) -> None:
        """See `TurnPort.pause`."""

    def resume(self) -> Future[None]:
        """See `TurnPort.resume`."""
        future: Future[None] = Future()
        future.set_result(None)
        return future

    def stop(self, run_ids: Sequence[str]) -> list[Future[StopReport]]:
        """See `TurnPort.stop`; all of them have ended already."""
        self.stopped += run_ids
        futures = []
        for run_id in run_ids:
            future: Future[StopReport] = Future()
            future.set_result(StopReport(self._ends[run_id].result().child_session_key, 0, 0, 1, 0))
            futures.append(future)
        return futures

    # ------------------------------------------------------------------ what is recorded

    def steer(self, run_id: str, message: str) -> Future[Receipt]:
        """Its children have ended when they are asked for: there is nobody to steer."""
        future: Future[Receipt] = Future()
        future.set_result(Receipt("done", run_id))
        return future

    def map_done(self, summary: str) -> None:
        """See `TurnPort.map_done`."""
        self.append("system", summary)

    def progress(self, text: str | None, done: float | None, total: float | None) -> None:
        """See `TurnPort.progress`."""
        self.said.append(ProgressSaid(text, done, total))

    def add_usage(self, usage: Usage) -> None:
        """See `TurnPort.add_usage`."""
        self.usage = self.usage.plus(usage)

    def blocked(self, tool: str, rule: str) -> None:
        """See `TurnPort.blocked`: nobody counts here."""

    def history(self, limit: int, offset: int) -> Future[list[Row]]:
        """See `TurnPort.history`."""
        rows = [*self._before, *self.rows]
        future: Future[list[Row]] = Future()
        future.set_result(rows[max(0, len(rows) - offset - limit) : max(0, len(rows) - offset)])
        return future

    def transcript_bytes(self) -> Future[int]:
        """See `TurnPort.transcript_bytes`."""
        future: Future[int] = Future()
        future.set_result(sum(len(row.text) for row in [*self._before, *self.rows]))
        return future

    def append(self, role: str, text: str) -> None:
        """See `TurnPort.append`."""
        self.rows.append(Row(self.spec.session_id, self.spec.number, len(self.rows), role, text, self.spec.created))

    def limit(self, name: str, cost: float) -> tuple[str, Future[Permit]]:
        """See `TurnPort.limit`; everybody is let in at once."""
        future: Future[Permit] = Future()
        future.set_result(Permit(name))
        return name, future

    def limit_done(self, ask: str) -> None:
        """See `TurnPort.limit_done`."""

    def limit_back_off(self, name: str, seconds: float) -> None:
        """See `TurnPort.limit_back_off`."""

    def look(self, what: str, limit: int = 100, target: str = "") -> Future[list[Any]]:
        """There is no registry that could know: the test is told. Tools are those of the session by default, children
        those that the turn was given or has spawned; all of them have ended."""
        if what in ("tools", "children"):
            known: Future[list[Any]] = Future()
            known.set_result([_tools(self.spec)] if what == "tools" else self._children_facts()[:limit])
            return known
        error = AssertionError(f"the turn looks at its {what}: there is nothing to see in run_turn; use LocalRuntime")
        self.unexpected = self.unexpected or error
        future: Future[list[Any]] = Future()
        future.set_exception(error)
        return future

    def _children_facts(self) -> list[ChildFacts]:
        now = round(time.time() * 1000)
        found = []
        for number, (run, end) in enumerate(self._ends.items()):
            done, asked = end.result(), self._asked.get(run)
            if run in self._sent or (asked is not None and asked.route != "spawn"):
                continue
            result = done.result
            state = _STATES[result.status]
            found.append(
                ChildFacts(
                    run,
                    done.child_session_key,
                    done.agent_id,
                    state.value,
                    "" if asked is None else asked.task,
                    now - result.runtime_ms + number,
                    "pending" if run in self._born else "delivered",
                    done.label,
                    None if asked is None else asked.task_name,
                    ended_at=now + number,
                    error=None if result.error is None else result.error.message,
                )
            )
        return found[::-1]

    def asked(self, what: str, given: Mapping[str, Any]) -> Future[SessionAnswer]:
        """See `look`."""
        return self._not_here(f"asks for sessions ({what})")

    def patch(self, key: str, label: str, session_id: str | None, revision: int | None) -> Future[SessionAnswer]:
        """See `look`."""
        return self._not_here(f"changes session {key}")

    def clear(self, what: str, key: str, session_id: str, revision: int) -> Future[str]:
        """See `look`."""
        return self._not_here(f"would {what} session {key}")

    def stop_session(self, key: str) -> Future[StopReport]:
        """See `look`."""
        return self._not_here(f"stops session {key}")

    def transcript(
        self, session: Mapping[str, Any], limit: int, offset: int = 0, anchor: str = ""
    ) -> Future[TranscriptPage]:
        """See `look`."""
        return self._not_here("reads another session's transcript")

    def _not_here(self, what: str) -> Future[Any]:
        error = AssertionError(f"the turn {what}: there is no other session in run_turn; use LocalRuntime")
        self.unexpected = self.unexpected or error
        future: Future[Any] = Future()
        future.set_exception(error)
        return future

    def task(self, task: ToolTask) -> Future[Any]:
        """See `TurnPort.task`; there is no Ray."""
        return plain_task(task)

    def auth(self, request: AuthAsk | AuthOutcome) -> Future[Any]:
        """See `TurnPort.auth`; out of the test's own store."""
        future: Future[Any] = Future()
        try:
            future.set_result(self._credential(request))
        except NoCredential as error:
            future.set_exception(error)
        return future

    def _credential(self, request: AuthAsk | AuthOutcome) -> Credential | None:
        rules = AuthRules(shared="auth=… of run_turn")
        now = round(time.time() * 1000)
        if isinstance(request, AuthOutcome):
            self.credentials_said.append(request)
            held = held_profile(request.profile, {}, self._auth)
            if held is None:
                raise NoCredential(self.spec.agent_id, "", looked_at(rules), ((request.profile, "profile_missing"),))
            stats = self._auth.setdefault("usageStats", {})
            entry, reason = stats.get(request.profile, {}), FailureReason(request.reason)
            failed_so = partial(after_failure, reason=reason, cooldown=request.cooldown)
            stats[request.profile] = (after_success if request.worked else failed_so)(entry, now)
            return None
        secrets = SecretReader(rules.secrets, os.environ)
        held = choose(
            self.spec.agent_id,
            request.provider,
            request.profile,
            agent_store={},
            shared_store=self._auth,
            rules=rules,
            now=now,
            pin=None,
            resolves=secrets.reachable,
            missing=secrets.missing,
        )
        return credential_of(held, secrets.secret)

    @property
    def cancelled(self) -> str | None:
        """See `TurnPort.cancelled`."""
        return None

    def on_cancel(self, callback: Callable[[str], None]) -> None:
        """See `TurnPort.on_cancel`; nobody cancels this turn."""


def _tools(spec: Spec) -> ToolView:
    """The tools of such a session where nothing is configured."""
    return effective_tools(
        None,
        None,
        agent_id=spec.agent_id,
        depth=spec.depth,
        max_spawn_depth=RuntimeLimits().max_spawn_depth,
        role=spec.role,
        universe=TOOLS,
        session_key=spec.session_key,
        inherited=spec.facts.inherited if spec.facts is not None else None,
    )


def result_of(outcome: Outcome, held: Any, memory: ProcessMemory) -> Result[Any]:
    """The result that a requester would be given of such an outcome, its value pickled and made again."""
    data = dumps(held) if held is not None else outcome.value
    return Result(
        result_status(outcome.state),
        outcome.text if outcome.state is RunState.SUCCEEDED else None,
        None if data is None else memory.loads(data),
        outcome.error,
        missing=outcome.missing,
        text_truncated=outcome.text_truncated,
    )


def _result(answer: Any, memory: ProcessMemory) -> Result[Any]:
    """What a child gives that returns this, or raises it."""
    if _is_error(answer):
        error = answer() if isinstance(answer, type) else answer
        outcome = failed(type(error).__name__, str(error), Cause.RAISED)
        return result_of(outcome, None, memory)
    outcome, held = outcome_of_return(answer)
    return result_of(outcome, held, memory)


def _is_error(answer: Any) -> bool:
    return isinstance(answer, BaseException) or (isinstance(answer, type) and issubclass(answer, BaseException))


def _not_foreseen(request: SpawnRequest, agent: str, children: Mapping[str, Any]) -> str:
    known = ", ".join(repr(key) for key in children) or "nothing"
    return (
        f"the turn spawned what this test does not expect: task {json.dumps(request.task[:200])} of agent {agent!r}. "
        f"children=… answers {known}; add {agent!r}: … for every task of that agent, or {request.task[:60]!r}: … for "
        "this one: what the child returns, an exception that it raises, or a function of the SpawnRequest"
    )
