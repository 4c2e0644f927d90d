"""Running schedules: to the end, with all invariants looked at, and a report that lets a broken one be replayed."""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from dataclasses import dataclass

from openclaw_ray.core.lifecycle import Cause, DeliveryState, RunState
from openclaw_ray.testing.simulator.audit import leftovers
from openclaw_ray.testing.simulator.cluster import Cluster
from openclaw_ray.testing.simulator.history import InvariantBroken, RunView
from openclaw_ray.testing.simulator.plans import describe
from openclaw_ray.testing.simulator.pool import PoolProcess
from openclaw_ray.testing.simulator.setup import Schedule

__all__ = ["Outline", "ScheduleBroken", "run_schedule"]


@dataclass(frozen=True, slots=True)
class Outline:
    """What a schedule did.

    Attributes:
        events: things that happened in virtual time. ``calls``: between processes.
        transactions: of the registry. ``faults``: that had an effect.
        runs: admitted. ``starts``: sent by the registry. ``turns``: begun. ``maps``: handed out.
        reports: stops reported. ``forced``: runs in them whose process had to be ended.
        states: of the runs that are over, by id.
        seconds: virtual time at which the last client was done.
        log: the trace, if one was kept.
        refused_maps: of a name under which another map was at work.
        archived: transcripts renamed. ``resets``: sessions that began anew.
        messages: between sessions, that were accepted. ``steered``: of them, taken by the turn that ran. ``replies``:
            heard by who waited. ``turns_of_replies``: of ping-pongs. ``heard_later``: ends told with a later turn.
        words: of users, that were accepted. ``answers``: said by a channel. ``bindings``: of conversations, that began.
            ``unbound``: of them, that are over.
    """

    events: int
    calls: int
    transactions: int
    faults: int
    runs: int
    starts: int
    turns: int
    maps: int
    reports: int
    forced: int
    states: Mapping[str, RunState]
    seconds: float
    log: tuple[str, ...] = ()
    refused_maps: int = 0
    archived: int = 0
    resets: int = 0
    messages: int = 0
    steered: int = 0
    replies: int = 0
    turns_of_replies: int = 0
    heard_later: int = 0
    words: int = 0
    answers: int = 0
    bindings: int = 0
    unbound: int = 0


class ScheduleBroken(AssertionError):
    """An invariant broke: ``rule`` says which, ``schedule`` replays it, ``log`` is the trace if one was kept."""

    def __init__(self, rule: str, detail: str, schedule: Schedule, log: tuple[str, ...]) -> None:
        self.rule = rule
        self.detail = detail
        self.schedule = schedule
        self.log = log
        super().__init__(rule, detail)

    def __str__(self) -> str:
        s = self.schedule
        lines = [
            f"{self.rule}: {self.detail}",
            f"replay: simulate(seed={s.origin}, weather={s.weather!r}, trace=True)" if s.origin >= 0 else repr(s),
            f"setup: {s.setup}",
            f"faults: {list(s.faults)}",
            f"meddling: {list(s.meddling)}",
            describe(s.program),
            *self.log[-400:],
        ]
        return "\n".join(lines)


def run_schedule(schedule: Schedule, *, trace: bool = False, looks: float = 0.01) -> Outline:
    """Run a schedule to its end.

    Args:
        trace: keep a line for everything that happens.
        looks: share of the registry's transactions after which everything is counted anew.

    Raises:
        ScheduleBroken: an invariant does not hold.
    """
    cluster: Cluster | None = None
    try:
        cluster = Cluster(schedule, trace=trace, looks=looks)
        until = cluster.faults.last + schedule.limit
        if not cluster.world.run(lambda: _finished(cluster), until):
            raise InvariantBroken("everything ends", "; ".join(_open(cluster)) or "something goes on for ever")
        _last_look(cluster)
    except InvariantBroken as broken:
        log = tuple(cluster.world.log or ()) if cluster is not None else ()
        raise ScheduleBroken(broken.rule, broken.detail, schedule, log) from broken
    world, monitor = cluster.world, cluster.monitor
    return Outline(
        world.events,
        cluster.network.calls,
        cluster.transactions,
        cluster.faults.struck,
        sum(1 for v in monitor.runs.values() if v["route"] != "driver"),
        monitor.starts,
        len(monitor.begun),
        monitor.maps,
        monitor.reports,
        monitor.forced,
        {run: v.state for run, v in monitor.runs.items() if v["route"] != "driver"},
        max((client.left_at for client in cluster.clients), default=0.0),
        tuple(world.log or ()),
        monitor.refused_maps,
        len(monitor.archives.archived),
        monitor.archives.resets,
        monitor.talks.sent,
        monitor.talks.steered,
        monitor.talks.replies,
        monitor.talks.turns_of_replies,
        monitor.talks.heard_later,
        monitor.threads.words,
        monitor.threads.answers,
        monitor.threads.bindings,
        monitor.threads.ends,
    )


def _finished(cluster: Cluster | None) -> bool:
    """True once nothing more can happen by itself."""
    assert cluster is not None
    if cluster.faults.active and cluster.schedule.faults:
        return False
    return all(client.left for client in cluster.clients) and not _open(cluster)


def _open(cluster: Cluster) -> list[str]:
    """What is not over yet."""
    out = [f"{client.name} waits" for client in cluster.clients if not client.left]
    registry = cluster.registry
    if registry is None or registry.paused:
        return [*out, "there is no registry"]
    s = registry.core.s
    if s.recovering:
        out.append("the registry recovers")
    out += [
        f"run {run.id} is {run.state} (actor {run.actor!r}, activation {run.activation!r})"
        for run in s.runs.values()
        if not run.terminal and run.route != "driver"
    ]
    out += [f"{r.id} has not confirmed {list(r.unacked.values())}" for r in s.receivers.values() if r.unacked]
    out += [f"{a.id} is {a.state}" for a in s.actors.values() if a.state not in ("idle", "growing")]
    out += [f"{m.stop} is not complete" for m in s.marks.values() if not m.done]
    out += [f"exchange {x.id} is at {x.phase}, run {x.run!r}" for x in s.exchanges.values() if not x.over]
    out += cluster.monitor.threads.owed(s)
    if cluster.setup.limits.archive_minute < 60:
        due = [pickle.loads(data)[0] for _, data in cluster.journal.after("due", 0, limit=1_000)]
        out += [f"{key} is to be archived" for key in due if key and key not in s.sessions]
    if cluster.journal.after("rows", 0, limit=1):
        out.append("rows are on their way to the hub")
    out += [
        f"{name} lives and nobody knows it"
        for name, process in cluster.network.processes.items()
        if name.startswith("session-") and process.alive and name not in s.actors
    ]
    out += [
        f"{client.name} is dead and the registry does not know it"
        for client in cluster.clients
        if not client.alive and cluster.setup.leased and client.name in s.clients
    ]
    pool = cluster.network.find("pool")
    if isinstance(pool, PoolProcess):
        parked = {run.id for run in s.runs.values() if run.held_by == "pool"}
        out += [f"the pool keeps the value of {run}" for run in pool.values if run not in parked]
    return out


def _last_look(cluster: Cluster) -> None:
    core = cluster.core
    assert core is not None
    monitor = cluster.monitor
    monitor.look(core)
    dead = {view["session"] for view in monitor.runs.values() if _left_pending(view)}
    found = leftovers(core.s, dead)
    if cluster.setup.limits.archive_minute < 60:
        found += monitor.archives.unarchived(set(core.s.sessions))
    if found:
        raise InvariantBroken("nothing is left over", "; ".join(found))
    _announces(cluster, dead)
    _transcripts(cluster)
    if twice := monitor.talks.last_look(list(cluster.transcripts.rows.values())):
        raise InvariantBroken("a requester hears once", "; ".join(twice))
    usage = monitor.usage_faults()
    if usage:
        raise InvariantBroken("usage counts once", "; ".join(usage))


def _left_pending(view: RunView) -> bool:
    """Whether completions may stay pending for this run's session: its process died, or it may take another message."""
    outcome = view["outcome"]
    died = outcome is not None and outcome.error is not None and outcome.error.cause == Cause.PROCESS_DIED
    return view["route"] == "ask" or (view.state is RunState.FAILED and died)


def _announces(cluster: Cluster, dead: set[str]) -> None:
    """Each delivered completion has its row once in the transcripts, each other none; none is left pending."""
    rows: dict[str, int] = {}
    for transcript in cluster.transcripts.rows.values():
        for row in transcript:
            if row.key is not None and row.key.startswith("announce:"):
                rows[row.key] = rows.get(row.key, 0) + 1
    for run_id, view in cluster.monitor.runs.items():
        count = rows.pop(f"announce:v1:{view['session']}:{run_id}", 0)
        wanted = 1 if view["delivery"] is DeliveryState.DELIVERED else 0
        if count and view.state is RunState.CANCELLED:
            raise InvariantBroken("a stopped run is silent", f"{run_id} was stopped and has {count} rows")
        if count != wanted:
            raise InvariantBroken(
                "each announce once", f"{run_id} is {view['delivery']}, {count} rows in the transcripts"
            )
        if view["delivery"] is DeliveryState.PENDING and view["deliver_to"] not in dead:
            raise InvariantBroken("each announce is delivered", f"{run_id} is pending for {view['deliver_to']!r}")
    if rows:
        raise InvariantBroken("each announce once", f"rows of unknown runs: {rows}")


def _transcripts(cluster: Cluster) -> None:
    """What a run that succeeded was asked and has said is in its transcript, once, in order."""
    for run_id, view in cluster.monitor.runs.items():
        if view["route"] == "driver":
            continue
        rows = cluster.transcripts.rows.get(view["session_id"], [])
        own = [(row.activation, row.seq) for row in rows if row.key is None]
        if own != sorted(set(own)):
            raise InvariantBroken("a transcript is in order", f"{view['session_id']}: {own}")
        said = view["outcome"].text if view["outcome"] is not None else None
        if said == "REPLY_SKIP":
            continue  # several turns of a session may say so
        count = sum(row.text == said and row.role == "assistant" for row in rows)
        if view.state is RunState.SUCCEEDED and said is not None and count != 1:
            raise InvariantBroken("the outcome's rows are kept", f"{run_id} said {said!r}, in {rows}")
