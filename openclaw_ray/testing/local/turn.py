"""One turn of a local session: the real one, without what only a process of its own can have."""

from __future__ import annotations

import time
from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from openclaw_ray.actors.session_turn import STARTED_AFTER, SessionTurn
from openclaw_ray.actors.turn_questions import with_own_rows
from openclaw_ray.agents.folders import make_folder
from openclaw_ray.agents.pickling import dumps
from openclaw_ray.agents.port import ToolTask
from openclaw_ray.agents.run_turn import Ended
from openclaw_ray.agents.tools.function_tool import plain_task
from openclaw_ray.core.auth import AuthAsk, AuthOutcome
from openclaw_ray.core.protocol.messages import CleanCheck, Row, Spec, Started
from openclaw_ray.core.session_facts import SessionFacts
from openclaw_ray.core.transcript_pages import TranscriptPage
from openclaw_ray.testing.local.courier import LocalRequester

if TYPE_CHECKING:
    from openclaw_ray.actors.session_actor import SessionActor
    from openclaw_ray.testing.local.session import LocalSession

__all__ = ["LocalTurn"]


class LocalTurn(SessionTurn):
    """One activation's turn."""

    def __init__(self, session: LocalSession, spec: Spec) -> None:
        super().__init__(cast("SessionActor", session), spec)
        self.local = session
        self.requester = LocalRequester(
            session.courier, spec.session_key, spec.activation, spec.activation, spec.agent_id
        )

    def run_here(self) -> None:
        """From start to outbox."""
        began = time.monotonic()
        self.courier.alarm("started", STARTED_AFTER, self._confirm)
        ended = _whole(self._program(began))
        # in this order: while the loop is tidied, the turn is still the one that runs
        clean = CleanCheck(tuple(self.local.runner.loop.tidy()))
        self._settle(ended, clean)

    def _confirm(self) -> None:
        # by the registry's clock, as that may be moved as soon as the run can be seen to run
        elapsed = self.local.registry.since_grant(self.spec.run)
        self.courier.post(Started(self.spec.run, self.spec.activation, elapsed, self._heard))

    def _load(self) -> tuple[Any, Any]:
        with self.local.memory.inside():
            return super()._load()

    def _state_dir(self) -> str:
        return ""  # nothing is kept on disk: a turn has a folder of its own for its attachments

    def _enter_folder(self, facts: SessionFacts) -> None:
        """A thread cannot be in a folder of its own; that there is one to be in can be seen."""
        if facts.cwd is not None:
            make_folder(facts)

    def transcript_bytes(self) -> Future[int]:
        """See `TurnPort.transcript_bytes`."""
        kept = sum(len(row.text) for row in self.local.registry.all_rows(self.spec.session_id))
        future: Future[int] = Future()
        unsent, said = self.rows.sizes()
        future.set_result(max(kept + unsent, said))
        return future

    def _end_tools(self) -> None:
        """Nothing: a process below this one may be anybody's."""

    def history(self, limit: int, offset: int) -> Future[list[Row]]:
        """See `TurnPort.history`."""
        own = self.rows.unsent()
        rows = [*self.local.registry.rows(self.spec.session_id, max(0, limit + offset - len(own)), 0), *own]
        future: Future[list[Row]] = Future()
        future.set_result(rows[max(0, len(rows) - offset - limit) : max(0, len(rows) - offset)])
        return future

    def task(self, task: ToolTask) -> Future[Any]:
        """In a thread: there is no Ray."""
        return plain_task(task)

    def transcript(
        self, session: Mapping[str, Any], limit: int, offset: int = 0, anchor: str = ""
    ) -> Future[TranscriptPage]:
        """See `TurnPort.transcript`."""
        own = self._own_rows(session["sessionId"], anchor)
        page = (limit + offset, 0, "") if own else (limit, offset, anchor)
        asked: Future[TranscriptPage] = self._query("transcript", session["sessionId"], *page)
        return with_own_rows(asked, own, limit, offset) if own else asked

    def _query(self, method: str, *args: Any) -> Future[Any]:
        """What the registry answers, at once."""
        future: Future[Any] = Future()
        try:
            future.set_result(getattr(self.local.registry, method)(*args))
        except Exception as error:  # noqa: BLE001 - it is for whoever waits for the answer
            future.set_exception(error)
        return future

    def auth(self, request: AuthAsk | AuthOutcome) -> Future[Any]:
        """See `TurnPort.auth`."""
        future: Future[Any] = Future()
        answer = self.local.registry.auth_desk.answer(self.spec.session_key, self.spec.activation, request)
        if isinstance(answer, Exception):
            future.set_exception(answer)
        else:
            future.set_result(answer)
        return future


def _whole(ended: Ended) -> Ended:
    """With its value in the message, however large: there is no other process to keep it in."""
    if ended.held is None:
        return ended
    return replace(ended, outcome=replace(ended.outcome, value=dumps(ended.held), held=0), held=None)
