"""The killer itself, on processes that are only told of."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from types import SimpleNamespace

import pytest

from openclaw_ray.testing import chaos
from openclaw_ray.testing.chaos import Killer, Victim, processes
from openclaw_ray.testing.eventually import eventually

pytestmark = [pytest.mark.faults, pytest.mark.timeout(30)]
RUNTIME = SimpleNamespace(name="none")


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """Blows that would have been dealt: (pid, signal)."""
    blows: list[tuple[int, int]] = []
    monkeypatch.setattr(chaos, "processes", lambda _, victim: [10, 11, 12] if victim is Victim.SESSION else [20])
    monkeypatch.setattr(chaos, "_send", lambda pid, number: blows.append((pid, number)) or True)
    return blows


def _blows(seed: int) -> tuple[tuple[str, int, int], ...]:
    with Killer(
        RUNTIME,  # type: ignore[arg-type]
        [Victim.SESSION, Victim.HUB],
        rate=2_000,
        seed=seed,
        signals=[signal.SIGKILL, signal.SIGSEGV],
        most=50,
    ) as killer:
        eventually(lambda: len(killer.blows) == 50, 10)
    return tuple((blow.victim, blow.pid, blow.signal) for blow in killer.blows)


def test_the_same_seed_deals_the_same_blows(told: list[tuple[int, int]]) -> None:
    assert _blows(1) == _blows(1)
    assert _blows(1) != _blows(2)
    assert {pid for pid, _ in told} == {10, 11, 12, 20}
    assert {number for _, number in told} == {signal.SIGKILL, signal.SIGSEGV}


def test_a_rate_must_be_above_zero() -> None:
    with pytest.raises(ValueError, match="rate"):
        Killer(RUNTIME, rate=0)  # type: ignore[arg-type]


@pytest.fixture
def bystander() -> Iterator[int]:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        yield process.pid
        process.kill()


@pytest.mark.parametrize("victim", [Victim.REGISTRY, Victim.HUB, Victim.POOL])
def test_only_workers_of_ray_are_ever_killed(
    monkeypatch: pytest.MonkeyPatch, bystander: int, victim: Victim
) -> None:
    monkeypatch.setattr(chaos, "_ask", lambda *_: {"pid": bystander})
    assert processes(RUNTIME, victim) == []  # type: ignore[arg-type]
    monkeypatch.setattr(chaos, "_ask", lambda *_: {"pid": os.getpid()})
    assert processes(RUNTIME, victim) == []  # type: ignore[arg-type]


def test_nobody_there_is_no_victim() -> None:
    assert processes(RUNTIME, Victim.SESSION) == []  # type: ignore[arg-type]
