"""What an operator does to sessions and runs that are there: stop, clear, deliver again, maintain (SPEC.md G, H)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from openclaw_ray.agents._asking import accepted
from openclaw_ray.core.errors import DeliveryRefused, ProtocolRefused, UnknownRun
from openclaw_ray.core.keys import normalise_key
from openclaw_ray.core.lifecycle import DeliveryState
from openclaw_ray.core.results import Receipt, StopReport
from openclaw_ray.runtime.client import TurnClient
from openclaw_ray.runtime.sending import Sending

if TYPE_CHECKING:
    from openclaw_ray.runtime.cleanup import Seen

__all__ = ["Operating"]


class Operating(Sending):
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

    def steer(self, target: str, message: str) -> Receipt:
        """Interrupt a sub-agent, and have it go on with ``message`` in its session, as another run (SPEC.md G4). What
        waits for it waits for that run; what it has spawned goes on.

        Args:
            target: run id, or session key.
            message: what it is to do instead, or besides; up to 4,000 characters.

        Returns:
            ``accepted`` with the run that goes on; ``done`` with the run, if it has ended: nothing is begun.

        Raises:
            SpawnForbidden: the session whose runtime this is does not control it.
            SpawnError: there is no such run, or it is none to steer; or it was steered less than two seconds ago
                (``receipt.status`` is ``rate_limited``).
        """
        self._open()
        receipt = self._client.requester.steer(normalise_key(target) if ":" in target else target, message).result()
        return receipt if receipt.status == "done" else accepted(receipt)

    def threads(self) -> list[dict[str, Any]]:
        """The conversations that sessions are bound to: ``sessionKey``, ``conversation``, ``channel``, ``mode``,
        ``state``, ``boundAt``, ``usedAt`` (milliseconds since the epoch); ``boundBy``, ``idleHours`` and
        ``maxAgeHours`` where users have set them."""
        rows: list[dict[str, Any]] = self._query("conversations")
        return rows

    def unbind(self, key: str) -> int:
        """Drop the conversations that a session is bound to; it lives on without. Gives how many there were.

        Raises:
            ProtocolRefused: in a session's turn.
        """
        self._open()
        if isinstance(self._client, TurnClient):
            raise ProtocolRefused("unbind", "conversations are the operator's, and their users'")
        count: int = self._query("unbind", normalise_key(key))
        return count

    def patch(
        self, key: str, *, label: str | None, session_id: str | None = None, lifecycle_revision: int | None = None
    ) -> dict[str, Any]:
        """Change a session's label; `None` or an empty one takes it away.

        Args:
            label: at most 512 characters; no other live session of the same requester may have it.
            session_id, lifecycle_revision: only if the session is the one that had these still.

        Returns:
            the session's row, as ``rt.call("sessions.list")`` shows it.

        Raises:
            KeyError: there is no such session.
            PatchRefused: it is as it was.
            SessionForbidden: this runtime is bound to a session that may not change it.
        """
        from openclaw_ray.agents.tools.session_steps import change_session
        from openclaw_ray.runtime.session_port import RuntimePort, done_or_raised, driven

        self._open()
        values = {"key": key, "label": label or "", "sessionId": session_id, "lifecycleRevision": lifecycle_revision}
        entry: dict[str, Any] = done_or_raised(driven(change_session(RuntimePort(self), "patch", values)), key)["entry"]
        return entry

    def delete(
        self,
        key: str,
        *,
        timeout: float | None = None,
        session_id: str | None = None,
        lifecycle_revision: int | None = None,
    ) -> StopReport:
        """Stop a session and everything below it, then delete it (SPEC.md G3): its transcript is renamed to
        ``*.deleted.<timestamp>``, its entry leaves memory and is listed as archived. What its children did stays.

        Args:
            timeout: seconds for the stop; 15 more than ``ray.stopGraceSeconds`` if not given.
            session_id, lifecycle_revision: only if the session is the one that had these still, as a list showed them.

        Returns:
            what the stop did.

        Raises:
            KeyError: there is no such session.
            DeleteRefused: it is a main session or a client's root; something could not be stopped in time; or it
                changed meanwhile. Nothing was deleted.
            SessionForbidden: this runtime is bound to a session that it is not below.
        """
        from openclaw_ray.runtime.cleanup import delete_session

        seen = self._clearing(key, timeout, session_id, lifecycle_revision)
        return delete_session(self._query, self.stop, *seen)

    def reset(
        self,
        key: str,
        *,
        timeout: float | None = None,
        session_id: str | None = None,
        lifecycle_revision: int | None = None,
    ) -> StopReport:
        """Stop a session and everything below it, then begin it anew (SPEC.md G3): same key, depth and lineage, a new
        session id, an empty transcript and state. What waited for it is dropped; the old transcript is renamed to
        ``*.deleted.<timestamp>``. What its children did stays. Arguments and result as for `delete`.

        Raises:
            KeyError: there is no such session.
            ResetRefused: it is a client's root, or was deleted; something could not be stopped in time; or it changed
                meanwhile. The conversation is as it was.
            SessionForbidden: this runtime is bound to a session that it is not below.
        """
        from openclaw_ray.runtime.cleanup import reset_session

        seen = self._clearing(key, timeout, session_id, lifecycle_revision)
        return reset_session(self._query, self.stop, *seen)

    def _clearing(
        self, key: str, timeout: float | None, session_id: str | None, revision: int | None
    ) -> tuple[str, float, Seen]:
        from openclaw_ray.runtime.cleanup import RELEASE_WITHIN, Seen

        self._open()
        within = self._limits.stop_grace_seconds + RELEASE_WITHIN if timeout is None else timeout
        return normalise_key(key), within, Seen(session_id, revision, self._asker)

    def call(
        self, name: str, params: Mapping[str, Any] | None = None, *, timeout: float | None = None
    ) -> dict[str, Any]:
        """One of OpenClaw's RPC calls by its name, as ``rt.call("sessions.abort", {"key": key})``.

        There are chat.abort, chat.history, sessions.abort, sessions.delete, sessions.history, sessions.list,
        sessions.patch, sessions.reset and sessions.send, whose answer has the words of the tool ``sessions_send``. A
        stop is answered with ``aborted``, ``runIds`` and the whole report as ``stop``. Histories are masked and bounded
        as models see them; ``includeRaw`` gives the operator what is stored.

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
        if isinstance(self._client, TurnClient):
            raise ProtocolRefused("clear_tombstones", "tombstones are the operator's to clear")
        found: tuple[str, ...] = self._query("clear_tombstones", key)
        return found
