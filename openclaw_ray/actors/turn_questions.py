"""What a turn asks: of the registry, who is what to it and what it may know; of the hub, what was said."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any

from openclaw_ray.actors.wire import pack
from openclaw_ray.core.errors import OpenClawRayError, RuntimeUnavailable
from openclaw_ray.core.ids import RandomIds
from openclaw_ray.core.protocol.messages import Row
from openclaw_ray.core.session_asks import Asker, SessionAnswer
from openclaw_ray.core.transcript_pages import TranscriptPage

if TYPE_CHECKING:
    from openclaw_ray.actors.courier_thread import CourierThread
    from openclaw_ray.actors.turn_rows import TurnRows
    from openclaw_ray.core.auth import AuthAsk, AuthOutcome
    from openclaw_ray.core.protocol.messages import Spec

__all__ = ["TurnQuestions", "with_own_rows"]

_WITHIN = 30.0


class TurnQuestions:
    """The asking part of a turn's port: every answer is a future, and may be asked for twice."""

    spec: Spec
    courier: CourierThread
    rows: TurnRows

    @property
    def asker(self) -> Asker:
        """This turn, as the registry knows it."""
        return Asker(self.spec.session_key, self.spec.activation)

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

    def transcript(
        self, session: Mapping[str, Any], limit: int, offset: int = 0, anchor: str = ""
    ) -> Future[TranscriptPage]:
        """See `TurnPort.transcript`."""
        from openclaw_ray.actors.asking import ask_later
        from openclaw_ray.actors.names import find_actor

        runtime, place = self.courier.runtime, (session["agentId"], session["sessionId"])
        own = self._own_rows(session["sessionId"], anchor)
        page = (limit + offset, 0, "") if own else (limit, offset, anchor)
        branched = self._branched(session["sessionId"])
        asked = ask_later(
            lambda: find_actor(runtime, "hub").transcript.remote(*place, *page, branched=branched), _WITHIN
        )
        return with_own_rows(asked, own, limit, offset) if own else asked

    def _branched(self, session_id: str) -> bool:
        """It is about its own session, which begins as a branch: the hub may not have made it yet."""
        facts = self.spec.facts
        return session_id == self.spec.session_id and facts is not None and facts.context == "fork"

    def _own_rows(self, session_id: str, anchor: str) -> list[Row]:
        """What this turn has said and may not be on disk, if it is about its own session."""
        if session_id != self.spec.session_id or anchor:
            return []
        return self.rows.own()

    def _query(self, method: str, *args: Any) -> Future[Any]:
        """A question to the registry that may be asked twice."""
        from openclaw_ray.actors.asking import ask_later

        return ask_later(lambda: getattr(self.courier.registry, method).remote(*args), _WITHIN)

    def transcript_bytes(self) -> Future[int]:
        """See `TurnPort.transcript_bytes`."""
        from openclaw_ray.actors.asking import ask_later
        from openclaw_ray.actors.names import find_actor

        spec, runtime = self.spec, self.courier.runtime
        named = (spec.agent_id, spec.session_id, *self.rows.sizes())
        return ask_later(lambda: find_actor(runtime, "hub").transcript_bytes.remote(*named), _WITHIN)

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
                future.set_exception(RuntimeUnavailable("registry", _WITHIN, str(error).splitlines()[0]))

        ask_later(
            lambda: self.courier.registry.auth.remote(spec.session_key, spec.activation, packed), _WITHIN
        ).add_done_callback(came)
        return future

    def history(self, limit: int, offset: int) -> Future[list[Row]]:
        """See `TurnPort.history`."""
        from openclaw_ray.actors.names import find_actor

        own = self.rows.own()
        future: Future[list[Row]] = Future()
        hub = find_actor(self.courier.runtime, "hub")
        if len(own) >= limit + offset:
            future.set_result(own[max(0, len(own) - offset - limit) : len(own) - offset])
            return future
        branched = self._branched(self.spec.session_id)
        asked = hub.history.remote(self.spec.agent_id, self.spec.session_id, limit + offset, 0, branched=branched)

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
