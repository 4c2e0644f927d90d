"""Trees of joining sessions, played by a loop: each spawns its children, waits for all of them, and ends."""

from __future__ import annotations

from openclaw_ray.core.protocol.messages import Consumed, Start
from rules.hand import Hand
from rules.turn import Turn

__all__ = ["Forest"]


class Forest:
    """Sessions down to ``depth``, ``fan`` children each. `ended` fills up until nothing moves any more."""

    def __init__(self, hand: Hand, *, depth: int, fan: int) -> None:
        self.hand = hand
        self.depth, self.fan = depth, fan
        self.ended: list[str] = []
        self._waiting: dict[str, Turn] = {}

    def play(self) -> None:
        """Move whatever can move, until nothing can."""
        while self._begin() or self._go_on():
            pass

    def _begin(self) -> bool:
        hand = self.hand
        hand.grow()
        starts = hand.take(Start)
        for start in starts:
            hand.deliver(start)
            turn = hand.turns[start.spec.run]
            if turn.spec.depth < self.depth:
                assert all(r.accepted for r in turn.spawn_all(self._children(turn)))
                turn.pause()
                self._waiting[turn.run] = turn
            else:
                self._end(turn)
        return bool(starts)

    def _go_on(self) -> bool:
        moved = False
        for turn in list(self._waiting.values()):
            if turn.goes_on:
                turn.say(Consumed(turn.activation, tuple(self._children(turn))))
                del self._waiting[turn.run]
                self._end(turn)
                moved = True
            elif not turn.asked and set(self._children(turn)) <= set(turn.hears()):
                turn.resume()
                moved = True
        return moved

    def _children(self, turn: Turn) -> list[str]:
        return [f"{turn.run}.{i}" for i in range(self.fan)]

    def _end(self, turn: Turn) -> None:
        verdict = turn.settle()
        self.ended.append(turn.run)
        if verdict.deliver is not None:
            self.hand.call(verdict.deliver)
