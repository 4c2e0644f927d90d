"""What things weigh: a session process (private memory, against a bare actor), a passive session, 1,000 records.

A passive session is one that waits for a message: it has a record and a transcript, no process. Records are those of
no-op sessions that have ended. For both it is the registry that could grow; the journal on disk is told, too.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from openclaw_ray.bench.figures import Better, of_rounds
from openclaw_ray.bench.result import Measured, Skipped
from openclaw_ray.bench.rig import noop_agent, uss_mb, wait_until

if TYPE_CHECKING:
    from openclaw_ray.bench.rig import Rig
    from openclaw_ray.runtime.runtime import Runtime

__all__ = ["FULL", "QUICK", "measure"]

FULL = {"processes": 8, "records": [500, 1_000, 2_000, 5_000, 10_000], "passive": [100, 250, 500, 1_000]}
QUICK = {"processes": 4, "records": [500, 1_000, 2_000], "passive": [50, 100, 200]}
_PARK = 0.2
_WIDTH = 4


def measure(rig: Rig, config: Mapping[str, Any]) -> Measured:
    """All figures of one run."""
    if min(len(config["records"]), len(config["passive"])) < 2:
        raise ValueError("memory needs at least two numbers of records and of passive sessions: it measures slopes")
    processes = int(config["processes"])
    found = Measured()
    pool = {"prewarm": processes, "max": max(processes, 8), "parkSeconds": _PARK, "idleSeconds": 600}
    limits = {"maxConcurrent": 8, "maxChildrenPerAgent": 20}
    with rig.runtime([noop_agent(), _waiter()], subagents=limits, ray={"pool": pool}) as rt:
        rig.settled(rt, processes)
        _of_processes(rig, rt, processes, found)
        _of_records(rig, rt, config["records"], found)
        _of_passive(rig, rt, config["passive"], found)
    return found


def _of_processes(rig: Rig, rt: Runtime, processes: int, found: Measured) -> None:
    ray = rig.ray()
    fresh = uss_mb(_pids(rt))
    rt.map("noop", ["x"] * (processes * 10), width=processes)
    used = uss_mb(_pids(rt))
    with rig.bare(2) as bare:
        alone = uss_mb(ray.get([each.pid.remote() for each in bare]))
    for name, value in (("session_process_new", fresh), ("session_process_used", used), ("bare_actor", alone)):
        found.figures[name] = of_rounds([value], "MB", Better.LESS)
    found.budget["idle_actor_extra_mb"] = used - alone
    found.figures["session_process_over_bare"] = of_rounds([used - alone], "MB", Better.LESS)
    rig.look(rt)
    rig.say(f"  a session process {used:.1f} MB, a bare actor {alone:.1f} MB, private")


def _of_records(rig: Rig, rt: Runtime, counts: list[int], found: Measured) -> None:
    """The registry as sessions end: it should not grow, but for what it keeps of the newest."""
    done = 0
    disk: list[int] = []
    for count in counts:
        rt.map("noop", ["x"] * (count - done), width=_WIDTH)
        done = count
        _point(rig, rt, "ended", count, _registry_mb(rt), found)
        disk.append(_journal_bytes(rt))
    each = _each(found, "ended") * 1000
    found.figures["registry_per_1000_records"] = of_rounds([each], "MB", Better.LESS)
    more = (disk[-1] - disk[0]) / 2**20 * 1000 / (counts[-1] - counts[0])
    found.figures["journal_per_1000_records"] = of_rounds([more], "MB", Better.LESS)
    rig.say(f"  1,000 records: {each:.2f} MB in the registry, {more:.2f} MB in the journal")


def _of_passive(rig: Rig, rt: Runtime, counts: list[int], found: Measured) -> None:
    """The registry as sessions wait for a message."""
    top = 0
    for count in counts:
        for _ in range(count - top):
            rt.spawn("x", "waiter")
        top = count
        if not wait_until(lambda c=count: _passive(rt, c), 60.0, every=0.1):  # type: ignore[misc]
            raise Skipped(f"{count} sessions did not passivate within 60 s: {rt.stats().actors}")
        _point(rig, rt, "passive", count, _registry_mb(rt), found)
    each = _each(found, "passive") * 1024
    found.figures["registry_per_passive_session"] = of_rounds([each], "KB", Better.LESS)
    rig.say(f"  a passive session: {each:.1f} KB in the registry")
    report = rt.stop(rt.root_key)
    assert report.failed == 0


def _point(rig: Rig, rt: Runtime, kind: str, sessions: int, registry: float, found: Measured) -> None:
    row = {"kind": kind, "sessions": sessions, "registry_mb": round(registry, 2), "total_mb": round(rig.look(rt), 1)}
    found.curves.setdefault("memory", []).append(row)


def _each(found: Measured, kind: str) -> float:
    """MB of the registry for one more session: from the first point to the last, as before it caches fill."""
    rows = [row for row in found.curves["memory"] if row["kind"] == kind]
    more = float(rows[-1]["registry_mb"]) - float(rows[0]["registry_mb"])
    return more / float(rows[-1]["sessions"] - rows[0]["sessions"])


def _passive(rt: Runtime, count: int) -> bool:
    """Whether that many wait, none of them with a process."""
    actors = rt.stats().actors
    if actors.get("idle", 0) + actors.get("free", 0) != sum(actors.values()):
        return False
    return len(rt.runs(agent="waiter", state="paused", limit=count + 1)) == count


def _pids(rt: Runtime) -> list[int]:
    pids: list[int] = rt._query("info")["counts"]["pids"]
    return pids


def _registry_mb(rt: Runtime) -> float:
    return uss_mb([rt._query("info")["pid"]])


def _journal_bytes(rt: Runtime) -> int:
    """The journal on disk; 0 if it is on another host."""
    path = rt.state_dir / "registry.sqlite"
    return os.path.getsize(path) if path.exists() else 0


def _waiter() -> Any:
    import openclaw_ray as oc

    @oc.agent(id="waiter", spawns=False)
    def waiter(turn: oc.SyncTurn) -> None:
        turn.yield_(wait_for="message")

    return waiter
