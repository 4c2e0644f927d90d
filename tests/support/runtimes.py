"""The runtime that nearly all Ray tests share, and what they steer agents with."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from openclaw_ray.testing.eventually import eventually

if TYPE_CHECKING:
    import openclaw_ray as oc
    from openclaw_ray.testing.leaks import ProcessMark

__all__ = ["GRACE", "SHARED_CONFIG", "Gate", "gate", "mark", "shared"]

GRACE = 2.0
"""``ray.stopGraceSeconds`` of the shared runtime."""

SHARED_CONFIG: dict[str, Any] = {
    "agents": {
        "defaults": {"subagents": {"allowAgents": ["*"], "maxSpawnDepth": 5, "maxChildrenPerAgent": 5}},
        "entries": {
            "limited": {"subagents": {"allowAgents": ["echo"]}},
            "closed": {"subagents": {"allowAgents": []}},
            "strict": {"subagents": {"requireAgentId": True}},
        },
    },
    "ray": {"stopGraceSeconds": GRACE, "pool": {"max": 16}},
}


class Gate:
    """A folder through which a test sees and holds agents: see ``agents.enter`` and ``agents.pass_gate``."""

    def __init__(self, place: Path) -> None:
        self.place = place

    def __str__(self) -> str:
        return str(self.place)

    @property
    def entered(self) -> list[str]:
        """What the agents that came by have left, in order of name."""
        return sorted(path.name.removeprefix("in-") for path in self.place.glob("in-*"))

    def wait_for(self, count: int, timeout: float = 60.0) -> list[str]:
        """Wait until ``count`` agents have come by."""
        eventually(lambda: len(self.entered) >= count, timeout, what=f"{count} agents at the gate")
        return self.entered

    def open(self) -> None:
        """Let all through."""
        (self.place / "open").touch()

    def read(self, name: str) -> str:
        """What an agent wrote into a file here."""
        return (self.place / name).read_text()

    def lines(self, name: str) -> list[str]:
        """The lines of a file here; none if it is not there."""
        path = self.place / name
        return path.read_text().splitlines() if path.exists() else []


@pytest.fixture
def gate(tmp_path: Path) -> Iterator[Gate]:
    """A gate of its own for each test; open at the end, so that nobody waits for ever."""
    gate = Gate(tmp_path)
    yield gate
    gate.open()


@pytest.fixture(scope="session")
def mark() -> Iterator[ProcessMark]:
    """In the environment of the shared Ray and of all that its workers start."""
    from openclaw_ray.testing.leaks import ProcessMark

    mark = ProcessMark()
    before = os.environ.get(mark.name)
    os.environ[mark.name] = mark.value
    yield mark
    if before is None:
        del os.environ[mark.name]
    else:
        os.environ[mark.name] = before


@pytest.fixture(scope="session")
def shared(mark: ProcessMark) -> Iterator[oc.Runtime]:
    """An embedded runtime with the agents of ``tests/ray/agents.py``; others started beside it are its Ray's guests."""
    import agents

    import openclaw_ray as oc

    address = os.environ.pop("RAY_ADDRESS", None)
    runtime = oc.Runtime.start(agents=agents.ALL, config=SHARED_CONFIG)
    yield runtime
    runtime.close()
    if address is not None:
        os.environ["RAY_ADDRESS"] = address
    mark.assert_none(timeout=15.0)
