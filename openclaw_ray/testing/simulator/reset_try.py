"""A client's reset of a session: look, stop, clear, as the runtime's client does it (SPEC.md G3)."""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING, Any

from openclaw_ray.core.protocol.cleanup import CleanupWord
from openclaw_ray.testing.simulator.network import Lost

if TYPE_CHECKING:
    from openclaw_ray.testing.simulator.client import ClientProcess

__all__ = ["ResetTry"]

_ASK_EVERY = 0.2


class ResetTry:
    """One try; ``word`` is what the registry said, `None` until then or if there is no such session."""

    def __init__(self, process: ClientProcess, key: str) -> None:
        self.process = process
        self.key = key
        self.word: CleanupWord | None = None
        self._answer: list[Any] = []

    def run(self) -> Generator[Any, None, None]:
        """Do it; nothing of it fails but by its word."""
        from openclaw_ray.testing.simulator.registry import RegistryProcess

        yield from self._ask(RegistryProcess.on_session, self.key)
        seen = self._answer.pop()
        if seen is None:
            return
        family = self.process.script.family
        stop = family.stop(key=self.key)
        yield lambda: family.stopped(stop)
        new = self.process.world.mint("s")
        yield from self._ask(RegistryProcess.on_reset, self.key, *seen, new)
        self.word = self._answer.pop()
        self.process.world.note(f"{self.process.name} resets {self.key}: {self.word}")

    def _ask(self, method: Any, *args: Any) -> Generator[Any, None, None]:
        """Ask until there is an answer."""

        def came(answer: Any) -> None:
            self._answer.append(answer)
            self.process.script.poke()

        while True:
            self.process.cluster.network.ask(self.process, "registry", "query", came, method, *args)
            yield lambda: bool(self._answer)
            if not isinstance(self._answer[-1], Lost):
                return
            self._answer.clear()
            yield _ASK_EVERY
