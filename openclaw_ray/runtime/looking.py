"""What can be asked of a runtime: runs, sessions, transcripts, events, figures (DESIGN.md 7)."""

from __future__ import annotations

import pickle
import time
from collections.abc import Iterator
from typing import Any, cast

from openclaw_ray.core.audience import Audience, Denial
from openclaw_ray.core.errors import AudienceDenied, RuntimeClosed, RuntimeUnavailable
from openclaw_ray.core.events import Event
from openclaw_ray.core.keys import normalise_key
from openclaw_ray.core.limits import RuntimeLimits
from openclaw_ray.core.protocol.messages import Row
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
        self._peak = 0

    @property
    def name(self) -> str:
        """The runtime's name."""
        return self._name

    def runs(self, *, limit: int = 100, offset: int = 0, **filters: Any) -> list[dict[str, Any]]:
        """Runs, newest first. Filters: ``root``, ``session``, ``requester``, ``agent``, ``state``."""
        found: list[dict[str, Any]] = self._query("view", "runs", filters, limit, offset)
        return found

    def run(self, run_id: str) -> dict[str, Any] | None:
        """One run as `runs` shows it; `None` if there is none of that id."""
        found: list[dict[str, Any]] = self._query("view", "run", {"run": run_id}, 1, 0)
        return found[0] if found else None

    def sessions(self, *, limit: int = 100, offset: int = 0, **filters: Any) -> list[dict[str, Any]]:
        """Sessions, newest first. Filters: ``root``, ``requester``, ``agent``, ``state``."""
        found: list[dict[str, Any]] = self._query("view", "sessions", filters, limit, offset)
        return found

    def session(self, key: str) -> dict[str, Any] | None:
        """One session as `sessions` shows it; `None` if there is none of that key."""
        found: dict[str, Any] | None = self._query("session", normalise_key(key))
        return found

    def history(self, key: str, limit: int = 100, offset: int = 0) -> list[dict[str, Any]]:
        """A page of a session's transcript, newest last: ``role``, ``text``, ``at``, and what else a row has.

        Raises:
            KeyError: there is no such session.
        """
        from openclaw_ray.actors.asking import ask
        from openclaw_ray.actors.names import find_actor

        key = normalise_key(key)
        session = self._query("session", key)
        if session is None:
            raise KeyError(key)
        hub = find_actor(self.name, "hub")
        rows: list[Row] = ask(
            lambda: hub.history.remote(session["agentId"], session["sessionId"], limit, offset), QUERY_WITHIN
        )
        return [{"role": r.role, "text": r.text, "at": r.at, **(r.meta or {})} for r in rows]

    def audience(self, key: str) -> Audience:
        """Whose memory a session may see now (SPEC.md I3); what its own ``turn.audience()`` would give.

        Raises:
            AudienceDenied: it may see none; the reason says why.
        """
        [found] = self._query("view", "audience", {"requester": normalise_key(key)}, 1, 0)
        if isinstance(found, Denial):
            raise AudienceDenied(found.reason.value, found.at, found.text)
        return cast("Audience", found)

    def events(self, after: int | None = None) -> Iterator[Event]:
        """Events as they are journaled, from now on or from above number ``after``, until the runtime closes."""
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
        )

    # ------------------------------------------------------------------ inside

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
