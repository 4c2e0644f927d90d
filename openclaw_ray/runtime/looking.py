"""What can be asked of a runtime: runs, sessions, transcripts, events, figures (DESIGN.md 7)."""

from __future__ import annotations

import pickle
import time
from collections.abc import Iterator, Mapping
from typing import Any, cast

from openclaw_ray.core.audience import Audience, Denial
from openclaw_ray.core.errors import AudienceDenied, RuntimeClosed, RuntimeUnavailable, SessionForbidden
from openclaw_ray.core.events import Event
from openclaw_ray.core.keys import normalise_agent_id, normalise_key
from openclaw_ray.core.limits import RuntimeLimits
from openclaw_ray.core.policy import Sender, ToolView
from openclaw_ray.core.session_asks import Asker
from openclaw_ray.core.transcript_pages import TranscriptPage
from openclaw_ray.runtime.stats import RuntimeStats, memory_of
from openclaw_ray.runtime.watching import Watching

__all__ = ["QUERY_WITHIN", "RuntimeView"]

QUERY_WITHIN = 30.0
"""Seconds for one question to the hub, or to a registry whose limits are not known yet."""
_PAGE = 1_000


class RuntimeView:
    """The reading half of a runtime; its registry answers, or is waited for while it is started again."""

    def __init__(self, name: str, limits: RuntimeLimits) -> None:
        self._name = name
        self._limits = limits
        self._closed = False
        self._watching = Watching()
        self._asker: Asker | None = None
        self._peak = 0

    @property
    def name(self) -> str:
        """The runtime's name."""
        return self._name

    def runs(self, *, limit: int = 100, offset: int = 0, **filters: Any) -> list[dict[str, Any]]:
        """Runs, newest first. Filters: ``root``, ``session``, ``requester``, ``agent``, ``state``.

        A runtime that is bound to a session gives the runs of sessions that it may see.
        """
        found: list[dict[str, Any]] = self._query("view", "runs", filters, limit, offset, *self._bound)
        return found

    def run(self, run_id: str) -> dict[str, Any] | None:
        """One run as `runs` shows it; `None` if there is none of that id."""
        found: list[dict[str, Any]] = self._query("view", "run", {"run": run_id}, 1, 0, *self._bound)
        return found[0] if found else None

    def sessions(self, *, limit: int = 100, offset: int = 0, **filters: Any) -> list[dict[str, Any]]:
        """Sessions, newest first. Filters: ``root``, ``requester``, ``agent``, ``state``.

        A runtime that is bound to a session gives those that it may see (``tools.sessions.visibility``).
        """
        found: list[dict[str, Any]] = self._query("view", "sessions", filters, limit, offset, *self._bound)
        return found

    def session(self, key: str) -> dict[str, Any] | None:
        """One session as `sessions` shows it; `None` if there is none of that key.

        Raises:
            SessionForbidden: this runtime is bound to a session that may not see it.
        """
        found: dict[str, Any] | None = self._query("session", normalise_key(key), *self._bound)
        return found

    def tools(self, key: str, *, sender: Sender | Mapping[str, Any] | None = None) -> ToolView:
        """What a session may call, as the rules now are: each tool with the rule that decided (SPEC.md E3).

        A turn that runs keeps the rules of its first look at its tools.

        Args:
            key: its key; or an agent id, for that agent's main session, which need not be there yet.
            sender: what it might call in a turn that answers this sender. Not given, it is about the turn that runs or
                is next, and who is behind that.

        Raises:
            KeyError: there is no such session or agent.
            SessionForbidden: this runtime is bound to another session.
            ValueError: ``sender`` does not say who it is.
        """
        wrote = {} if sender is None else {"sender": Sender.of(sender)}
        [found] = self._query("view", "tools", {"requester": normalise_key(key), **wrote}, 1, 0, *self._bound)
        view: ToolView = found
        return view

    def auth(self, target: str) -> dict[str, Any]:
        """Which credentials an agent, or the agent of a session, has in reach: for each provider the profiles in the
        order in which they are tried, where each comes from, until when one rests, and why others are left out.
        ``next`` is what a turn would get now, ``fallback`` whether that is not its own. Never a secret.

        Args:
            target: agent id or session key.

        Raises:
            KeyError: there is no such session.
            UnknownAgent: there is no such agent.
        """
        found: dict[str, Any] = self._query("auth_view", normalise_agent_id(target) or normalise_key(target))
        return found

    def history(self, key: str, limit: int = 100, offset: int = 0) -> list[dict[str, Any]]:
        """A page of a session's transcript, newest last: ``role``, ``text``, ``at``, and what else a row has.

        The operator gets it as it is stored. A runtime that is bound to a session gets those of others with
        credentials masked; ``rt.call("sessions.history", …)`` gives the bounded view that models see.

        Raises:
            KeyError: there is no such session.
            SessionForbidden: this runtime is bound to a session that may not see it.
        """
        from openclaw_ray.core.history import masked

        key = normalise_key(key)
        session = self.session(key)
        if session is None:
            raise KeyError(key)
        found = self._transcript(session, limit, offset).rows
        rows = [{"role": r.role, "text": r.text, "at": r.at, **(r.meta or {})} for r in found]
        return rows if self._asker is None or self._asker.session == key else masked(rows)

    def _transcript(
        self, session: Mapping[str, Any], limit: int, offset: int = 0, anchor: str = ""
    ) -> TranscriptPage:
        """A page of a transcript as it is stored; of a session that this runtime has been told of."""
        from openclaw_ray.actors.asking import ask
        from openclaw_ray.actors.names import find_actor

        hub = find_actor(self.name, "hub")
        place = (session["agentId"], session["sessionId"])
        page: TranscriptPage = ask(lambda: hub.transcript.remote(*place, limit, offset, anchor), QUERY_WITHIN)
        return page

    def audience(self, key: str) -> Audience:
        """Whose memory a session may see now (SPEC.md I3); what its own ``turn.audience()`` would give.

        Raises:
            AudienceDenied: it may see none; the reason says why.
        """
        [found] = self._query("view", "audience", {"requester": normalise_key(key)}, 1, 0, *self._bound)
        if isinstance(found, Denial):
            raise AudienceDenied(found.reason.value, found.at, found.text)
        return cast("Audience", found)

    def events(self, after: int | None = None) -> Iterator[Event]:
        """Events as they are journaled, from now on or from above number ``after``, until the runtime closes.

        Raises:
            SessionForbidden: this runtime is bound to a session: the events of all are the operator's.
        """
        if self._asker is not None:
            raise SessionForbidden("control", "the events of all sessions are the operator's to watch", "")
        return self._events_from(self._query("last_event") if after is None else after)

    def _events_from(self, seq: int) -> Iterator[Event]:
        import ray
        from ray.exceptions import RayError

        while not self._closed:
            try:
                with self._watching:
                    events = self._events_after(seq, 1.0)
            except RuntimeClosed:
                return
            except (RayError, ValueError):
                if self._closed or not ray.is_initialized():
                    return
                time.sleep(0.1)
                continue
            for event in events:
                seq = event.seq
                yield event

    def _events_after(self, seq: int, wait: float) -> list[Event]:
        """The next events, waited for up to ``wait`` seconds; from the hub, older ones from the journal."""
        import ray

        held, events = ray.get(self._hub().events.remote(seq, wait), timeout=QUERY_WITHIN)
        return self._read_events(seq, held, events)

    def _hub(self) -> Any:
        from openclaw_ray.actors.names import find_actor

        return find_actor(self.name, "hub")

    def _read_events(self, seq: int, held: bool, events: list[bytes]) -> list[Event]:
        """What the hub answered; from the journal if that is older than its memory."""
        found: list[bytes] = events if held else self._query("view", "events", {"after": seq}, _PAGE, 0)
        return [pickle.loads(event) for event in found]

    def agents(self) -> dict[str, str]:
        """The agents that the runtime knows: id, and where each is defined."""
        return {agent: entry.origin for agent, entry in self._query("agents").items()}

    def facts(self) -> dict[str, Any]:
        """What it is: ``lifetime`` (``owner``, ``clients`` or ``service``), ``since`` (seconds since the epoch),
        ``stateDir``, ``configRev``, ``lanes`` (name, width, slots taken), ``stepCpuP99Ms``."""
        info = self._query("info")
        settings = info["settings"]
        return {
            "lifetime": settings.lifetime.value,
            "since": settings.since,
            "stateDir": settings.state_dir,
            "configRev": settings.limits.config_rev,
            "lanes": info["counts"]["lanes"],
            "stepCpuP99Ms": info["step"]["cpu_p99_ms"],
        }

    def stats(self) -> RuntimeStats:
        """Figures of the runtime."""
        info = self._query("info")
        counts = info["counts"]
        memory = memory_of([*counts["pids"], info["pid"]])
        self._peak = max(self._peak, memory)
        return RuntimeStats(
            counts["started"],
            counts["warm"],
            counts["cold"],
            counts["refused"],
            counts["queued"],
            info["waiting"],
            counts["runs"],
            counts["actors_by_state"],
            counts["pool_max"],
            counts["slots"],
            info["retired"],
            memory,
            self._peak,
            info["incarnation"],
            {name: {"held": held, "waiting": waiting} for name, (held, waiting) in counts["limits"].items()},
            {name: {"width": width, "taken": taken} for name, width, taken in counts["lanes"]},
        )

    # ------------------------------------------------------------------ inside

    @property
    def _bound(self) -> tuple[Asker, ...]:
        """What a question to the registry ends with: the turn that this runtime is bound to, if it is."""
        return () if self._asker is None else (self._asker,)

    def _open(self) -> None:
        import ray

        # asking a Ray that was shut down would start a new one
        if self._closed or not ray.is_initialized():
            raise RuntimeClosed(self.name)

    def _query(self, method: str, *args: Any) -> Any:
        """Ask the registry, also over a restart of it. What the question itself is answered with is raised as it is.

        Raises:
            RuntimeClosed: there is no registry any more; one that is started again keeps its name.
            RuntimeUnavailable: no answer for ``ray.registryTimeoutSeconds``.
        """
        from ray.exceptions import ActorDiedError, RayError, RayTaskError

        from openclaw_ray.actors.asking import ask
        from openclaw_ray.actors.names import find_actor

        self._open()
        within = self._limits.registry_timeout_seconds
        try:
            registry = find_actor(self.name, "registry")
        except ValueError:
            raise RuntimeClosed(self.name) from None
        try:
            return ask(lambda: getattr(registry, method).remote(*args), within)
        except RayTaskError as error:
            raise error.cause from None
        except ActorDiedError:
            raise RuntimeClosed(self.name) from None
        except RayError as error:
            raise RuntimeUnavailable("registry", within, str(error).splitlines()[0]) from error
