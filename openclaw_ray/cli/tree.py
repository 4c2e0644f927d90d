"""The session tree as events tell it: a row for each inner session, counts for the many below. Pure.

Sessions of *folded* agents (the leaves) have no row: each is counted under the session that spawned it, so
that a tree of 10,000 leaves is a handful of rows, and takes memory for the leaves that have not ended alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field

from openclaw_ray.core.events import Event
from openclaw_ray.core.lifecycle import RunState

__all__ = ["Branch", "SessionTree"]

_WAITING = frozenset({RunState.QUEUED})
_AT_WORK = frozenset({RunState.RUNNING, RunState.PAUSED})


@dataclass(slots=True)
class Branch:
    """One inner session.

    Attributes:
        key: its session key.
        agent_id: its agent, ``""`` while unknown.
        requester_key: the session that spawned it, `None` for a root.
        text: its newest progress text, else its label.
        state: where its run stands.
        queued, running, done, failed: how many folded sessions below it stand where; ``failed`` are the
            terminal ones that did not succeed.
        total: how many it said there will be, 0 while unknown.
    """

    key: str
    agent_id: str = ""
    requester_key: str | None = None
    text: str = ""
    state: RunState | None = None
    queued: int = 0
    running: int = 0
    done: int = 0
    failed: int = 0
    total: int = 0

    @property
    def ended(self) -> bool:
        """True once its run is terminal."""
        return self.state is not None and self.state.terminal


@dataclass(slots=True)
class SessionTree:
    """All inner sessions.

    Args:
        fold: ids of the agents whose sessions are only counted.
    """

    fold: Collection[str] = ()
    branches: dict[str, Branch] = field(default_factory=dict)
    _open: dict[str, tuple[str, str]] = field(default_factory=dict)
    _seq: int = -1

    def apply(self, event: Event) -> None:
        """Take in one event; one that was seen already changes nothing."""
        if event.seq <= self._seq:
            return
        self._seq = event.seq
        if event.session_key is None:
            return
        if event.kind == "run" and event.agent_id in self.fold:
            self._count(event)
        elif event.kind == "run":
            branch = self._branch(event)
            if event.state is not None:
                branch.state = RunState(event.state)
        elif event.kind == "progress" and event.agent_id not in self.fold:
            branch = self._branch(event)
            branch.text = event.text or branch.text
            branch.total = branch.total if event.total is None else int(event.total)

    def counts(self) -> Counter[str]:
        """Folded sessions of the whole tree: ``queued``, ``running``, ``done``, ``failed``; all, if none is folded."""
        whole: Counter[str] = Counter()
        for branch in self.branches.values():
            whole.update(queued=branch.queued, running=branch.running, done=branch.done, failed=branch.failed)
            if not self.fold and branch.state is not None:
                whole[_place(branch.state)] += 1
        return whole

    def walk(self) -> Iterator[tuple[int, Branch]]:
        """Every branch with its level, parents before children, in the order of their birth."""
        below: dict[str | None, list[Branch]] = {}
        for branch in self.branches.values():
            parent = branch.requester_key if branch.requester_key in self.branches else None
            below.setdefault(parent, []).append(branch)
        waiting = [(0, branch) for branch in reversed(below.get(None, []))]
        while waiting:
            level, branch = waiting.pop()
            yield level, branch
            waiting.extend((level + 1, child) for child in reversed(below.get(branch.key, [])))

    def _branch(self, event: Event) -> Branch:
        assert event.session_key is not None
        branch = self.branches.setdefault(event.session_key, Branch(event.session_key))
        branch.agent_id = event.agent_id or branch.agent_id
        branch.requester_key = event.requester_key or branch.requester_key
        branch.text = branch.text or event.label or ""
        return branch

    def _count(self, event: Event) -> None:
        if event.run_id is None or event.state is None or event.requester_key is None:
            return
        state = RunState(event.state)
        parent = event.requester_key
        place = _place(state)
        branch = self.branches.setdefault(parent, Branch(parent))
        before = self._open.pop(event.run_id, None)
        if before is not None:
            setattr(branch, before[1], getattr(branch, before[1]) - 1)
        setattr(branch, place, getattr(branch, place) + 1)
        if not state.terminal:
            self._open[event.run_id] = (parent, place)


def _place(state: RunState) -> str:
    """Where a run in this state is counted."""
    if state in _WAITING:
        return "queued"
    if state in _AT_WORK:
        return "running"
    return "done" if state is RunState.SUCCEEDED else "failed"
