"""A process of the simulated runtime: it can die or fall silent; what reaches it meanwhile waits or is lost."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from openclaw_ray.testing.simulator.world import World

__all__ = ["Process"]


class Process:
    """One life of one process. A restarted one is a new object under the same name.

    Attributes:
        killable: False while nobody can reach it to end it: on a node that is cut off.
        was_silent: True once it has been silent for a while.
    """

    def __init__(self, world: World, name: str) -> None:
        self.world = world
        self.name = name
        self.alive = True
        self.died_at = 0.0
        self.killable = True
        self.was_silent = False
        self._paused = 0
        self._backlog: list[tuple[Callable[..., object], tuple[Any, ...], Callable[[], None] | None]] = []

    @property
    def paused(self) -> bool:
        """True while it is silent."""
        return self._paused > 0

    def receive(self, call: Callable[..., object], *args: Any, lost: Callable[[], None] | None = None) -> None:
        """Something reaches this process: it happens now, when it is awake again, or never; then ``lost`` is called."""
        if not self.alive:
            if lost is not None:
                lost()
        elif self._paused:
            self._backlog.append((call, args, lost))
        else:
            call(*args)

    def after(self, delay: float, call: Callable[..., object], *args: Any) -> None:
        """A timer of this process."""
        self.world.after(delay, self.receive, call, *args)

    def pause(self, seconds: float) -> None:
        """Fall silent, as under SIGSTOP."""
        if self.alive:
            self.world.note(f"{self.name} falls silent for {seconds:.2f} s")
            self._paused += 1
            self.was_silent = True
            self.world.after(seconds, self._wake)

    def _wake(self) -> None:
        self._paused -= 1
        if self._paused or not self.alive:
            return
        self.world.note(f"{self.name} is awake again")
        backlog, self._backlog = self._backlog, []
        for call, args, lost in backlog:
            self.receive(call, *args, lost=lost)

    def kill(self, why: str) -> None:
        """End at once, as under SIGKILL."""
        if not self.alive:
            return
        self.world.note(f"{self.name} dies: {why}")
        self.alive = False
        self.died_at = self.world.now
        backlog, self._backlog = self._backlog, []
        for _, _, lost in backlog:
            if lost is not None:
                lost()
        self.gone()

    def gone(self) -> None:
        """What the rest of the world sees of a death; for subclasses."""
