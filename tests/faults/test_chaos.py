"""The killer itself, on processes that are only told of."""

from __future__ import annotations

import inspect
import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from types import SimpleNamespace

import psutil
import pytest
from fault_tier import LONG, Log

import openclaw_ray as oc
from openclaw_ray.testing import assert_at_rest, chaos
from openclaw_ray.testing.chaos import Blow, Killer, Victim, Way, processes
from openclaw_ray.testing.eventually import eventually

pytestmark = [pytest.mark.faults, pytest.mark.timeout(30)]
RUNTIME = SimpleNamespace(name="none")
MODULE = sys.modules[Killer.__module__]


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """Blows that would have been dealt: (pid, signal)."""
    blows: list[tuple[int, int]] = []
    monkeypatch.setattr(MODULE, "processes", lambda _, victim: [10, 11, 12] if victim is Victim.SESSION else [20])
    monkeypatch.setattr(MODULE, "_send", lambda pid, number: blows.append((pid, number)) or True)
    return blows


def _blows(seed: int) -> tuple[tuple[str, int, str], ...]:
    with Killer(
        RUNTIME,  # type: ignore[arg-type]
        [Victim.SESSION, Victim.HUB],
        rate=2_000,
        seed=seed,
        ways=["SIGKILL", "SIGSEGV"],
        most=50,
    ) as killer:
        eventually(lambda: len(killer.blows) == 50, 10)
    return tuple((blow.victim, blow.pid, blow.way) for blow in killer.blows)


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
def test_only_workers_of_ray_are_ever_killed(monkeypatch: pytest.MonkeyPatch, bystander: int, victim: Victim) -> None:
    monkeypatch.setattr(MODULE, "_ask", lambda *_: {"pid": bystander})
    assert processes(RUNTIME, victim) == []  # type: ignore[arg-type]
    monkeypatch.setattr(MODULE, "_ask", lambda *_: {"pid": os.getpid()})
    assert processes(RUNTIME, victim) == []  # type: ignore[arg-type]


def test_nobody_there_is_no_victim() -> None:
    assert processes(RUNTIME, Victim.SESSION) == []  # type: ignore[arg-type]


def test_what_it_does_not_know_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match=r"kinds: 'sesion' is not .* known are session, busy, registry, hub, pool"):
        chaos(RUNTIME, kinds={"sesion"})  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="ways: none is given; known are SIGKILL, SIGSEGV"):
        chaos(RUNTIME, ways=())  # type: ignore[arg-type]


def test_the_order_in_which_kinds_are_named_is_of_no_account() -> None:
    def chosen(*kinds: str) -> list[Victim]:
        return chaos(RUNTIME, kinds=kinds)._victims  # type: ignore[arg-type]

    assert chosen("session", "hub") == chosen("hub", "session") == [Victim.HUB, Victim.SESSION]


@pytest.mark.long
@pytest.mark.ray
@pytest.mark.timeout(120, method="signal")
def test_the_example_in_its_text_does_what_it_says(
    rt: oc.Runtime, log: Log, capsys: pytest.CaptureFixture[str]
) -> None:
    example = textwrap.dedent(inspect.getdoc(MODULE).split("\n\n")[1])  # type: ignore[union-attr]
    assert len(example.splitlines()) <= 10
    example = example.replace("rate=0.5", "rate=2.0, most=3")  # there is little time here
    items = [(log.path, i, 0.1) for i in range(60)]
    known: dict[str, object] = {"rt": rt, "items": items, "chaos": chaos, "assert_at_rest": assert_at_rest}
    exec(example, known)
    killer = known["killer"]
    assert isinstance(killer, Killer)
    printed = [line for line in capsys.readouterr().out.splitlines() if "raylet" not in line]
    assert len(printed) == len(killer.blows) > 0
    assert not killer._thread.is_alive()


@pytest.mark.ray
@pytest.mark.timeout(120, method="signal")
def test_each_way_ends_each_kind_of_process(rt: oc.Runtime, log: Log) -> None:
    parts = {Victim.HUB: [Way.EXIT], Victim.REGISTRY: [Way.EXIT, Way.SIGSEGV], Victim.POOL: Way} if LONG else {}
    for kind, ways in {Victim.SESSION: Way, **parts}.items():
        for way in ways:
            assert eventually(lambda k=kind: processes(rt, k), 20)
            [blow] = _one(rt, kind, way)
            assert (blow.victim, blow.way) == (kind, way)
            eventually(lambda pid=blow.pid: not psutil.pid_exists(pid), 10, what=f"end of {kind} by {way}")
    # what was given to a process that had just been killed is not known not to have begun
    assert rt.map("count", [(log.path, "after", 0)], retries=3)[0].ok


def _one(rt: oc.Runtime, kind: Victim, way: Way) -> tuple[Blow, ...]:
    with chaos(rt, rate=50, kinds=[kind], ways=[way], most=1) as killer:
        eventually(lambda: killer.blows, 20)
    return killer.blows
