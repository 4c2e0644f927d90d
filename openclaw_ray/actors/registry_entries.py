"""What operators ask of the registry's process, beside the couriers' steps: code, settings, sessions, upkeep, maps."""

from __future__ import annotations

import threading
from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

import ray

from openclaw_ray.actors.wire import pack
from openclaw_ray.core.limits import AgentLimits, RuntimeLimits
from openclaw_ray.core.named_map import ClaimAnswer
from openclaw_ray.core.protocol.messages import Effect
from openclaw_ray.core.protocol.registry import Registry
from openclaw_ray.core.protocol.retention import Cursor
from openclaw_ray.core.protocol.state import AgentEntry
from openclaw_ray.core.protocol.thread_rows import thread_rows
from openclaw_ray.core.protocol.upkeep import Done
from openclaw_ray.core.session_asks import Asker, SessionAnswer

if TYPE_CHECKING:
    from openclaw_ray.actors.settings import RegistrySettings

__all__ = ["OperatorEntries"]

T = TypeVar("T")


class OperatorEntries:
    """The entries of group ``query`` that change something, or give out code; each is one change of the core."""

    settings: RegistrySettings
    core: Registry
    lock: threading.RLock
    ready: bool
    _code: dict[str, tuple[Any, tuple[str, ...]]]

    @abstractmethod
    def _change(self, change: Callable[[Registry], tuple[T, tuple[Effect, ...]]]) -> T:
        """One change of the core, and what is to be done after it."""

    @abstractmethod
    def _mend(self) -> tuple[Effect, ...]:
        """Begin anew from the journal, if memory is ahead of it."""

    @abstractmethod
    def perform(self, effects: tuple[Effect, ...]) -> None:
        """Do what was committed."""

    def register(self, entries: Iterable[AgentEntry], bundle: str, data: bytes, paths: tuple[str, ...]) -> None:
        """Agents that the runtime knows from now on (DESIGN.md 7).

        Raises:
            JournalFault: they were not kept.
        """
        known = tuple(entries)
        self._change(lambda core: (None, core.register(known, bundle, data, paths)))

    def reload(self, limits: RuntimeLimits, agents: Mapping[str, AgentLimits]) -> None:
        """New limits from now on, all or none; asked again it changes nothing.

        Raises:
            JournalFault: they were not kept; the old ones hold.
        """
        self._change(lambda core: (None, core.reload(limits, agents, self.settings.boot)))
        self.settings = replace(self.settings, limits=limits)

    def bundle(self, bundle: str) -> tuple[list[Any], tuple[str, ...]]:
        """An agents' bundle: its code by reference, put by this incarnation, and the folders for ``sys.path``.

        Raises:
            KeyError: there is no such bundle.
        """
        found = self._code.get(bundle)
        if found is None:
            data, paths = self.core.bundle(bundle)
            found = self._code[bundle] = (ray.put(data), paths)
        return [found[0]], found[1]

    def offer(self, bundle: str, data: bytes, paths: tuple[str, ...]) -> None:
        """Code that a session process is to try before its agents are known."""
        self._code.setdefault(bundle, (ray.put(data), paths))

    def opened(self) -> None:
        """The start of this runtime is complete: its agents are registered, and others may join."""
        self.ready = True

    def agents(self) -> dict[str, AgentEntry]:
        """The agents that the runtime knows."""
        with self.lock:
            return dict(self.core.s.agents)

    def unbind(self, key: str) -> int:
        """See `Registry.unbind`.

        Raises:
            JournalFault: nothing was changed.
        """
        return self._change(lambda core: core.unbind(key))

    def conversations(self) -> list[dict[str, Any]]:
        """The conversations that sessions have."""
        with self.lock:
            return thread_rows(self.core.s)

    def redeliver(self, run_id: str) -> str:
        """See `Registry.redeliver`; gives a word of `DeliveryWord`.

        Raises:
            JournalFault: nothing was changed.
        """
        return self._change(lambda core: core.redeliver(run_id)).value

    def dismiss(self, run_id: str) -> str:
        """See `Registry.dismiss`; gives a word of `DeliveryWord`.

        Raises:
            JournalFault: nothing was changed.
        """
        return self._change(lambda core: core.dismiss(run_id)).value

    def recover(self) -> dict[str, int]:
        """Decide what an older boot left un-ended, see `Registry.recover`; asked again, what is left of it.

        Raises:
            JournalFault: nothing was decided.
        """
        return self._change(lambda core: core.recover())

    def clear_tombstones(self, key: str) -> tuple[str, ...]:
        """Have sessions resumed again, see `Registry.clear_tombstones`.

        Raises:
            JournalFault: nothing was changed.
        """
        return self._change(lambda core: core.clear_tombstones(key))

    def delete(self, key: str, session_id: str, revision: int, asker: Asker | None = None) -> str:
        """Delete a session that was seen so, for a turn or the operator; gives a word of `CleanupWord`.

        Raises:
            JournalFault: nothing was changed.
        """
        return self._change(lambda core: core.delete(key, session_id, revision, asker)).value

    def reset(self, key: str, session_id: str, revision: int, new_id: str, asker: Asker | None = None) -> str:
        """Begin a session that was seen so anew under ``new_id``; gives a word of `CleanupWord`.

        Raises:
            JournalFault: nothing was changed.
        """
        return self._change(lambda core: core.reset(key, session_id, revision, new_id, asker)).value

    def patch(
        self, asker: Asker | None, key: str, label: str, session_id: str | None = None, revision: int | None = None
    ) -> SessionAnswer:
        """Change a session's label, for a turn or the operator, see `openclaw_ray.core.protocol.patching`.

        Raises:
            JournalFault: nothing was changed.
        """
        return self._change(lambda core: core.patch(asker, key, label, session_id, revision))

    def asked(self, asker: Asker | None, what: str, given: Mapping[str, Any]) -> SessionAnswer:
        """What a turn, or the operator, is told of sessions, see `openclaw_ray.core.protocol.session_views`."""
        with self.lock:
            return self.core.views.answer(asker, what, given)

    def maintain(self, runs: list[str], apply: bool) -> list[Done]:
        """Upkeep of the ledger, see `openclaw_ray.core.protocol.upkeep`; may be asked again.

        Raises:
            JournalFault: nothing was changed.
        """
        return self._change(lambda core: core.maintain(runs, apply=apply))

    def retain(self, cursor: Cursor, apply: bool) -> tuple[list[Done], Cursor | None]:
        """One look of a round of retention, see `openclaw_ray.core.protocol.retention`; may be asked again.

        Raises:
            JournalFault: nothing was changed.
        """
        return self._change(lambda core: core.retain(cursor, apply=apply))

    def claim_map(self, map_id: str, claim: str, client: str, receiver: str) -> ClaimAnswer:
        """A try at a map that has a name asks for it, see `openclaw_ray.core.named_map`; may be asked again.

        Raises:
            JournalFault: the journal refuses.
        """
        return self._change(lambda core: core.claim_map(map_id, claim, client, receiver))

    def map_page(self, map_id: str, page: int) -> bytes:
        """How the items of one page of a named map ended: the packed list of `ItemRow`.

        Raises:
            JournalFault: the journal refuses.
        """
        with self.lock:
            effects = self._mend()
            try:
                return pack(self.core.maps.page(map_id, page))
            finally:
                self.perform(effects)
