"""A program that waits in virtual time: a generator of waits, driven by what happens.

It yields seconds to be busy for, or a condition to wait for; conditions are looked at again whenever its family has
news.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import TypeAlias

from openclaw_ray.core.mapping import MapWindow
from openclaw_ray.core.message import SendAsk
from openclaw_ray.core.results import Result
from openclaw_ray.testing.simulator.family import Child, Family, Sending
from openclaw_ray.testing.simulator.named_try import NamedTry
from openclaw_ray.testing.simulator.plans import Map, Send
from openclaw_ray.testing.simulator.talker import Talker

__all__ = ["Script", "Steps", "Wait"]

Wait: TypeAlias = float | Callable[[], bool]
Steps: TypeAlias = Generator[Wait, None, None]


class Script:
    """One running program with its children."""

    def __init__(self, host: Talker, key: str, receiver: str, activation: str) -> None:
        self.host = host
        self.family = Family(host, self, key, receiver, activation)
        self.over = False
        self.spawned: list[Child] = []
        self._steps: Steps | None = None
        self._condition: Callable[[], bool] | None = None
        self._going = False
        self._window: MapWindow | None = None

    # ------------------------------------------------------------------ driving

    def drive(self, steps: Steps) -> None:
        """Begin."""
        self._steps = steps
        self._go()

    def close(self) -> None:
        """Go no further."""
        self.over = True
        self._condition = None
        steps, self._steps = self._steps, None
        if steps is not None and not self._going:
            steps.close()

    def poke(self) -> None:
        """Something happened that the program may wait for."""
        condition = self._condition
        if condition is not None and not self._going and condition():
            self._condition = None
            self._go()

    def _go(self) -> None:
        steps = self._steps
        if self.over or steps is None:
            return
        self._going = True
        wait = next(steps, None)
        while wait is not None and not self.over:
            if isinstance(wait, (int, float)):
                self.host.after(wait, self._woken, steps)
                break
            if not wait():
                self._condition = wait
                break
            wait = next(steps, None)
        self._going = False
        if wait is None and not self.over:
            self.finished()

    def _woken(self, steps: Steps) -> None:
        if steps is self._steps:
            self._go()

    def finished(self) -> None:
        """The program has come to its end."""

    # ------------------------------------------------------------------ news of children

    def receipt(self, child: Child) -> None:
        """A receipt came."""
        if self._window is not None and child.ticket is not None and child.receipt is not None:
            self._window.receipt(child.ticket, child.receipt)
        self.poke()

    def ended(self, child: Child) -> None:
        """A child's end came, its value included."""
        if self._window is not None and child.end is not None:
            if child.ticket is not None:
                self._window.settled(child.run, child.end.completion.result)
            else:
                self._window.place_freed()
        self.poke()

    # ------------------------------------------------------------------ operations that turns and clients share

    def spawn(self, plans: Sequence[int], *, timeout: float | None, expects: bool, thread: str = "") -> Steps:
        """Spawn and wait for the receipts. Of a child that talks with users alone, a session hears nothing more."""
        born = [self.family.spawn(plan, timeout=timeout, expects=expects, thread=thread) for plan in plans]
        self.host.pump()
        yield lambda: all(child.receipt is not None for child in born)
        if thread != "session" or not self.family.activation:
            self.spawned += [child for child in born if child.accepted]

    def steer(self, child: int, plan: int) -> Steps:
        """Steer one that was spawned, and wait for the answer."""
        if child < len(self.spawned):
            new = self.family.steer(self.spawned[child], plan)
            self.host.pump()
            yield lambda: new.receipt is not None

    def send(self, op: Send) -> Generator[Wait, None, Sending]:
        """Send a message and wait for the answer to that; not for its reply."""
        target = f"agent:{op.agent}:main"
        if 0 <= op.child < len(self.spawned) and (receipt := self.spawned[op.child].receipt) is not None:
            target = receipt.session_key
        sent = self.family.send(op.plan, SendAsk(target, wait=op.wait > 0 and op.mode != "notify", mode=op.mode))
        self.host.pump()
        yield lambda: sent.receipt is not None
        return sent

    def waits_for(self, sent: Sending) -> bool:
        """Whether a reply may come to this program."""
        receipt = sent.receipt
        return sent.ask.wait and receipt is not None and receipt.accepted and not receipt.told

    def waiting_for(self) -> list[Child]:
        """Spawned children whose ends the program has not been given."""
        return [child for child in self.spawned if not child.handed]

    def map(self, op: Map, *, lane: str = "", named: NamedTry | None = None) -> Steps:
        """Map, handing results on as they come (PROTOCOL.md 4.6)."""
        known = None if named is None else named.known
        window = self._window = MapWindow(op.plans, op.width, known=known)
        results: list[Result[object]] = []
        while True:
            self.family.hand([c for c in self.family.asked if c.ticket is not None])
            results += window.results()
            tickets = window.admit()
            for ticket in tickets:
                self.family.spawn(
                    ticket.item,
                    route="map",
                    timeout=op.timeout,
                    ticket=ticket,
                    item=None if named is None else named.item(ticket.item),
                    lane=lane,
                    lane_width=op.width if lane else 0,
                )
            if tickets:
                self.host.pump()
            if window.done:
                break
            before = window.statistics()
            if not window.in_flight:
                yield 0.05  # back-pressure from children that nobody waits for: look again
                window.place_freed()
                continue
            yield lambda: window.statistics() != before  # noqa: B023 - looked at before the next round only
        self._window = None
        self.host.cluster.monitor.mapped(self.family.receiver, len(op.plans), results)
