"""What an operator does to sessions and runs that are there: stop, clear, deliver again, maintain (SPEC.md G, H)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from openclaw_ray.core.errors import DeliveryRefused, ProtocolRefused, UnknownRun
from openclaw_ray.core.keys import normalise_key
from openclaw_ray.core.lifecycle import DeliveryState
from openclaw_ray.core.results import StopReport
from openclaw_ray.runtime.client import TurnClient
from openclaw_ray.runtime.requests import Requests

__all__ = ["Operating"]


class Operating(Requests):
    """The operating half of a runtime."""

    def stop(self, key: str, *, timeout: float | None = None) -> StopReport:
        """Stop a session and everything below it; returns when all of it is terminal, with the counts.

        Raises:
            FutureTimeout: not complete within ``timeout`` seconds (a process that nobody can reach).
        """
        return self._stopping(key=key).result(timeout)

    def stop_run(self, run_id: str, *, timeout: float | None = None) -> StopReport:
        """Stop one run and everything below it."""
        return self._stopping(run=run_id).result(timeout)

    def delete(self, key: str, *, timeout: float | None = None) -> StopReport:
        """Stop a session and everything below it, then delete it (SPEC.md G3): its transcript is renamed to
        ``*.deleted.<timestamp>``, its entry leaves memory and is listed as archived. What its children did stays.

        Args:
            timeout: seconds for the stop; 15 more than ``ray.stopGraceSeconds`` if not given.

        Returns:
            what the stop did.

        Raises:
            KeyError: there is no such session.
            DeleteRefused: it is a main session or a client's root; something could not be stopped in time; or it
                changed meanwhile. Nothing was deleted.
        """
        from openclaw_ray.runtime.cleanup import delete_session

        return delete_session(self._query, self.stop, *self._clearing("delete", key, timeout))

    def reset(self, key: str, *, timeout: float | None = None) -> StopReport:
        """Stop a session and everything below it, then begin it anew (SPEC.md G3): same key, depth and lineage, a new
        session id, an empty transcript and state. What waited for it is dropped; the old transcript is renamed to
        ``*.deleted.<timestamp>``. What its children did stays. Arguments and result as for `delete`.

        Raises:
            KeyError: there is no such session.
            ResetRefused: it is a client's root, or was deleted; something could not be stopped in time; or it changed
                meanwhile. The conversation is as it was.
        """
        from openclaw_ray.runtime.cleanup import reset_session

        return reset_session(self._query, self.stop, *self._clearing("reset", key, timeout))

    def _clearing(self, what: str, key: str, timeout: float | None) -> tuple[str, float]:
        from openclaw_ray.runtime.cleanup import RELEASE_WITHIN

        self._open()
        if isinstance(self._client, TurnClient):
            raise ProtocolRefused(what, f"to {what} sessions is the operator's")
        within = self._limits.stop_grace_seconds + RELEASE_WITHIN if timeout is None else timeout
        return normalise_key(key), within

    def call(
        self, name: str, params: Mapping[str, Any] | None = None, *, timeout: float | None = None
    ) -> dict[str, Any]:
        """One of OpenClaw's RPC calls by its name, as ``rt.call("sessions.abort", {"key": key})``.

        There are chat.abort, chat.history, sessions.abort, sessions.delete, sessions.history and sessions.list. A stop
        is answered with ``aborted``, ``runIds`` and the whole report as ``stop``.

        Args:
            timeout: seconds for a stop to be complete.

        Raises:
            UnknownCall: there is no such call; the text names the nearest.
            ToolInputError: a parameter is unknown, missing or of another type; nothing was done.
        """
        from openclaw_ray.runtime.calls import call

        self._open()
        return call(self, name, params, timeout)

    def redeliver(self, run_id: str) -> DeliveryState:
        """Begin the attempts to deliver a run's completion anew, if they were given up (``suspended``, ``failed``).

        Returns:
            where the delivery stands after that; one that is under way is left to it.

        Raises:
            UnknownRun: there is no such run.
            DeliveryRefused: it has not ended, its end was delivered, dismissed or is announced to nobody, or nobody is
                there to be told. Nothing was changed.
        """
        return self._delivery("redeliver", run_id)

    def dismiss(self, run_id: str) -> DeliveryState:
        """Give up the delivery of a run's completion that is pending, suspended or failed: nobody is told any more.

        Returns:
            where the delivery stands after that: ``discarded``.

        Raises:
            UnknownRun: there is no such run.
            DeliveryRefused: it has not ended, or its end was delivered or is announced to nobody. Nothing was changed.
        """
        return self._delivery("dismiss", run_id)

    def _delivery(self, change: str, run_id: str) -> DeliveryState:
        self._open()
        if isinstance(self._client, TurnClient):
            raise ProtocolRefused(change, "deliveries are the operator's to change")
        word = str(self._query(change, run_id))
        if word == "unknown":
            raise UnknownRun(run_id)
        if word != "done":
            raise DeliveryRefused(run_id, change, word)
        row = self.run(run_id)
        return DeliveryState.DISCARDED if row is None else DeliveryState(row["deliveryStatus"])

    def maintain(self, *, apply: bool = False) -> list[dict[str, Any]]:
        """Upkeep of the ledger, which is also done by itself: runs that nothing can end any more are ended as lost;
        records past their time are dropped: runs 7 days after their end (lost ones 24 hours), events after 7 days,
        ended sessions after ``session.maintenance.pruneAfter``. Without ``apply`` it is only said what would be done.
        """
        from openclaw_ray.runtime.upkeep import maintain

        self._open()
        if isinstance(self._client, TurnClient):
            raise ProtocolRefused("maintain", "maintenance is the operator's")
        return maintain(self._query, apply=apply)

    def clear_tombstones(self, key: str = "") -> tuple[str, ...]:
        """Let sessions that were resumed too often, or the one of ``key``, be resumed again by later starts.

        Returns:
            keys of those that were not to be.
        """
        found: tuple[str, ...] = self._query("clear_tombstones", key)
        return found
