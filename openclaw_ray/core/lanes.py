"""Lanes, the reserve rule and the waiting queue: who may start next (DESIGN.md 9, PROTOCOL.md 3.2, 3.3; SPEC.md J).

1. A slot belongs to (run, generation); to take it twice is to take it once, to give it back twice is harmless.
2. Of N actors, a run at depth d starts only while fewer than N − (D − d) are bound, D being the depth cap. So the last
   actors are kept for the deeper runs that the bound ones may be waiting for.
3. The queue is scanned in order of (fairness between roots, age). What may not start is skipped, never waited for.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass

__all__ = ["LaneStatistics", "Lanes", "Waiting", "WaitingQueue", "may_bind"]


def may_bind(bound: int, actors: int, depth: int, depth_cap: int) -> bool:
    """The reserve rule: True if a run at ``depth`` may take one of ``actors``, ``bound`` of which are taken."""
    return bound < actors - max(0, depth_cap - depth)


@dataclass(frozen=True, slots=True)
class LaneStatistics:
    """A lane now: its width (0: unbounded) and the slots taken."""

    lane: str
    width: int
    taken: int


class Lanes:
    """Slots by lane. A lane of width 0 is unbounded."""

    def __init__(self) -> None:
        self._taken: dict[str, dict[str, int]] = {}
        self._width: dict[str, int] = {}

    def free(self, lane: str, width: int) -> bool:
        """True if the lane has a slot left."""
        return not lane or width <= 0 or len(self._taken.get(lane, ())) < width

    def acquire(self, lane: str, width: int, run: str, generation: int) -> None:
        """Take a slot; a second time for the same (run, generation) changes nothing."""
        if lane:
            self._taken.setdefault(lane, {})[run] = generation
            self._width[lane] = width

    def release(self, lane: str, run: str, generation: int) -> bool:
        """Give the slot back; True if (run, generation) held it."""
        holders = self._taken.get(lane)
        if holders is None or holders.get(run) != generation:
            return False
        del holders[run]
        if not holders:
            del self._taken[lane], self._width[lane]
        return True

    def taken(self, lane: str) -> int:
        """Slots taken in a lane."""
        return len(self._taken.get(lane, ()))

    @property
    def total(self) -> int:
        """Slots taken in all lanes."""
        return sum(len(holders) for holders in self._taken.values())

    def statistics(self) -> tuple[LaneStatistics, ...]:
        """A snapshot of the lanes in use."""
        return tuple(LaneStatistics(lane, self._width[lane], len(h)) for lane, h in sorted(self._taken.items()))


@dataclass(frozen=True, slots=True)
class Waiting:
    """One entry of the queue. Entries of one ``group`` are alike to every rule, so only the oldest is looked at."""

    run: str
    root: str
    lane: str
    lane_width: int
    depth: int
    klass: Hashable
    age: int
    resume: bool = False
    """A turn that has its process and wants a slot back: ahead of new starts."""

    @property
    def group(self) -> tuple[object, ...]:
        """What the rules look at."""
        return (self.resume, self.root, self.lane, self.depth, self.klass)


class WaitingQueue:
    """Runs that wait for a slot or an actor, scanned and never blocked by a head that cannot start."""

    def __init__(self) -> None:
        self._groups: dict[tuple[object, ...], OrderedDict[str, Waiting]] = {}
        self._of: dict[str, tuple[object, ...]] = {}

    def __len__(self) -> int:
        return len(self._of)

    def __contains__(self, run: object) -> bool:
        return run in self._of

    def add(self, waiting: Waiting) -> None:
        """Queue a run once; a second time is no change."""
        if waiting.run in self._of:
            return
        members = self._groups.setdefault(waiting.group, OrderedDict())
        late = bool(members) and next(reversed(members.values())).age > waiting.age
        members[waiting.run] = waiting
        self._of[waiting.run] = waiting.group
        if late:  # a further turn of an older run: it goes before the first turns of newer ones
            self._groups[waiting.group] = OrderedDict(sorted(members.items(), key=lambda member: member[1].age))

    def remove(self, run: str) -> None:
        """Take a run out; harmless if it is not there."""
        group = self._of.pop(run, None)
        if group is not None:
            members = self._groups[group]
            del members[run]
            if not members:
                del self._groups[group]

    def heads(self) -> Iterator[Waiting]:
        """The oldest run of each group, in no order."""
        for members in self._groups.values():
            yield next(iter(members.values()))

    def waiting(self) -> Iterator[Waiting]:
        """All of them."""
        for members in self._groups.values():
            yield from members.values()

    def by_lane(self) -> Iterator[tuple[str, int]]:
        """A lane's name and how many wait in it; a lane may come several times."""
        for members in self._groups.values():
            yield next(iter(members.values())).lane, len(members)

    def pick(self, may_start: Callable[[Waiting], bool], load: Callable[[str], int]) -> Waiting | None:
        """The next run that may start, by (resumes first, fewest bound of its root, age); `None` if none may."""
        best: tuple[tuple[bool, int, int], Waiting] | None = None
        for head in self.heads():
            rank = (not head.resume, load(head.root), head.age)
            if (best is None or rank < best[0]) and may_start(head):
                best = (rank, head)
        return best[1] if best else None
