"""One turn of a local session: the real one, without what only a process of its own can have."""

from __future__ import annotations

import time
from concurrent.futures import Future
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from openclaw_ray.actors.session_turn import STARTED_AFTER, SessionTurn
from openclaw_ray.agents.pickling import dumps
from openclaw_ray.agents.run_turn import Ended
from openclaw_ray.core.protocol.messages import CleanCheck, Row, Spec, Started
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

    def _end_tools(self) -> None:
        """Nothing: a process below this one may be anybody's."""

    def history(self, limit: int, offset: int) -> Future[list[Row]]:
        """See `TurnPort.history`."""
        with self._lock:
            own = list(self._rows)
        rows = [*self.local.registry.rows(self.spec.session_id, max(0, limit + offset - len(own)), 0), *own]
        future: Future[list[Row]] = Future()
        future.set_result(rows[max(0, len(rows) - offset - limit) : max(0, len(rows) - offset)])
        return future

    def look(self, what: str, limit: int = 100, target: str = "") -> Future[list[Any]]:
        """What the registry knows of this session: ``children``, ``agents`` that it may name, or ``kin``."""
        filters = {"requester": self.spec.session_key, "target": target}
        future: Future[list[Any]] = Future()
        try:
            future.set_result(self.local.registry.view(what, filters, limit, 0))
        except Exception as error:  # noqa: BLE001 - it is for whoever waits for the answer
            future.set_exception(error)
        return future


def _whole(ended: Ended) -> Ended:
    """With its value in the message, however large: there is no other process to keep it in."""
    if ended.held is None:
        return ended
    return replace(ended, outcome=replace(ended.outcome, value=dumps(ended.held), held=0), held=None)
