"""Archiving in numbers, and over kills (SPEC.md H6, SCENARIOS.md 54).

1. A minute of ``archiveAfterMinutes`` is made short in the registry's limits (`RuntimeLimits.archive_minute`); nothing
   else is different from a runtime at work.
2. The short form has 2 rounds of 40 sessions; with ``OPENCLAW_RAY_LONG=1`` it is 5 rounds of 300, and prints its
   figures::

       OPENCLAW_RAY_LONG=1 pytest -s tests/faults/test_archive.py
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest
import ray
from fault_tier import LONG, Log

import openclaw_ray as oc
from openclaw_ray.testing.chaos import Victim, kill
from openclaw_ray.testing.eventually import eventually

pytestmark = [pytest.mark.faults, pytest.mark.ray, pytest.mark.timeout(300, method="signal")]

SESSIONS, ROUNDS = (300, 5) if LONG else (40, 2)
BLOWS = ((0.02, Victim.REGISTRY), (0.3, Victim.HUB), (0.5, Victim.REGISTRY), (0.7, Victim.HUB))[: 4 if LONG else 2]
GROWTH_MB = 4.0
"""Most that the registry may grow after the first rounds, besides the cache of its journal's pages: that one holds what
the journal has, up to 16 MB, with or without archives."""


@pytest.fixture(scope="module")
def config() -> dict[str, object]:
    return {"pool": {"max": 6, "prewarm": 6, "idleSeconds": 1000}}


@contextmanager
def minute_of(rt: oc.Runtime, seconds: float, **more: Any) -> Iterator[None]:
    before = rt._query("info")["settings"].limits
    short = replace(before, archive_after_minutes=1, archive_minute=seconds, **more)
    ray.get(rt._registry().reload.remote(short, {}))
    try:
        yield
    finally:
        ray.get(rt._registry().reload.remote(before, {}))


def files(rt: oc.Runtime) -> list[Path]:
    return [path for path in (rt.state_dir / "agents").glob("*/sessions/*.jsonl*") if ":" not in path.name]


def base(rt: oc.Runtime) -> dict[str, Any]:
    """What the registry has in memory, and the session processes by what they do."""
    counts = rt._query("info")["counts"]
    return {name: counts[name] for name in ("runs", "sessions", "queued", "slots", "actors_by_state")}


def registry_mb(rt: oc.Runtime) -> tuple[float, float]:
    """Megabytes of the registry that nobody shares, and of its journal."""
    used = psutil.Process(rt._query("info")["pid"]).memory_full_info().uss
    return round(used / 1e6, 1), round((rt.state_dir / "registry.sqlite").stat().st_size / 1e6, 1)


def one_round(rt: oc.Runtime, log: Log, number: int) -> set[str]:
    """Sessions of all kinds: a map's, kept ones, ones to be deleted, trees. Gives their session ids."""
    mapped = rt.map("count", [(log.path, f"m{number}.{i}", 0) for i in range(SESSIONS // 2)], width=4)
    spawned = [
        rt.spawn(agent_id="count", input=(log.path, f"s{number}.{i}", 0), cleanup="delete" if i % 2 else "keep")
        for i in range(SESSIONS // 4)
    ]
    trees = [rt.spawn(agent_id="parent", input=(log.path, f"p{number}.{i}", 4, 0)) for i in range(SESSIONS // 20)]
    ends = [rt.result(receipt, timeout=60).raise_for_status() for receipt in (*spawned, *trees)]
    keys = [result.session_key for result in (*mapped, *ends)]
    below = [row["key"] for tree in trees for row in rt.sessions(requester=tree.session_key)]
    rows = [rt.session(key) for key in (*keys, *below)]
    assert len(rows) == SESSIONS
    return {row["sessionId"] for row in rows if row is not None}


@pytest.mark.long
def test_sessions_are_archived_and_memory_is_flat(rt: oc.Runtime, log: Log) -> None:
    eventually(lambda: base(rt)["actors_by_state"] == {"idle": 6}, 30)
    before, figures = base(rt), []
    with minute_of(rt, 0.5):
        for number in range(ROUNDS):
            ids = one_round(rt, log, number)
            eventually(lambda i=ids: renamed(rt, i) == i, 60, what="all of them archived")
            assert rt.sessions(state="ended", root=rt.root_key, limit=10) == []
            mine = [path.name for path in files(rt) if path.name.split(".")[0] in ids]
            assert len(mine) == len(ids)  # one file each, under its new name
            assert all(".jsonl.deleted." in name and "+" not in name for name in mine)
            eventually(lambda: base(rt) == before, 20, what="registry and session processes as before")
            figures.append(registry_mb(rt))
    print(
        f"\n{ROUNDS} rounds of {SESSIONS} sessions archived: in memory {base(rt)}, files {len(files(rt))}, "
        f"registry and its journal after each round {figures} MB"
    )
    first = figures[1 if LONG else 0]  # of many rounds, the first one is to warm up
    grown, journal = (figures[-1][i] - first[i] for i in (0, 1))
    assert grown < GROWTH_MB + min(16.8, journal), figures
    with minute_of(rt, 0.5, pool_idle_seconds=0.1, pool_prewarm=0):
        eventually(lambda: base(rt)["actors_by_state"] == {}, 20, what="no session process")


def renamed(rt: oc.Runtime, ids: set[str]) -> set[str]:
    """Those that have a file under its new name."""
    names = (path.name.split(".") for path in files(rt))
    return {name[0] for name in names if "deleted" in name} & ids


@pytest.mark.long
def test_kills_during_archiving_lose_nothing_and_rename_nothing_twice(rt: oc.Runtime, log: Log) -> None:
    with minute_of(rt, 3.0 if LONG else 1.0):
        results = rt.map("count", [(log.path, f"k{i}", 0) for i in range(SESSIONS)], width=4)
        rows = [rt.session(result.session_key) for result in results]
        texts = {row["sessionId"]: f"rk{i}" for i, row in enumerate(rows) if row is not None}
        ids, killed, seen = set(texts), [], []

        def blow(share: float, victim: Victim) -> None:
            eventually(lambda: len(renamed(rt, ids)) >= share * len(ids), 60, every=0.001)
            seen.append(len(renamed(rt, ids)))
            killed.extend(eventually(lambda: kill(rt, victim), 20, every=0.001))

        for share, victim in BLOWS:
            blow(share, victim)
        assert len(killed) == len(BLOWS)
        eventually(lambda: renamed(rt, ids) == ids, 60, what="all of them archived")
        eventually(lambda: rt.sessions(state="ended", root=rt.root_key, limit=10) == [], 20)
    mine = [path for path in files(rt) if path.name.split(".")[0] in ids]
    print(f"\n{len(killed)} kills, with {seen} of {SESSIONS} archived by then: {len(mine)} files")
    assert len(mine) == len(ids)
    for path in mine:
        assert "+" not in path.name
        assert path.read_text().count(texts[path.name.split(".")[0]]) >= 1  # its last words are in it
