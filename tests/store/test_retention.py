"""SPEC.md H4: a service that runs for long keeps its journal's size, over the SQLite journal and a clock of its own.

``OPENCLAW_RAY_LONG=1 pytest -s tests/store/test_retention.py`` has 50,000 runs and prints the figures.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from openclaw_ray.core.clock import FakeClock
from openclaw_ray.core.ledger import LOST_KEPT, TASK_KEPT
from openclaw_ray.core.lifecycle import RunState
from openclaw_ray.core.limits import AgentLimits, RuntimeLimits
from openclaw_ray.core.named_map import MapItem
from openclaw_ray.core.protocol.archiving import SWEEP
from openclaw_ray.core.protocol.messages import (
    Admit,
    Consumed,
    Effect,
    Event,
    Hello,
    Join,
    Outcome,
    Settled,
    Start,
    Step,
)
from openclaw_ray.core.protocol.registry import Registry
from openclaw_ray.core.protocol.retention import ROUND_EVERY, Cursor, Retention
from openclaw_ray.core.protocol.state import AgentEntry
from openclaw_ray.store.sqlite_journal import SqliteJournal

DAY = 86_400.0
DAYS = 174
RUNS = 50_000 if os.environ.get("OPENCLAW_RAY_LONG") == "1" else 2_000
ROOT = "agent:w:driver:d"


class Service:
    """One client that runs small runs on one actor, one after the other."""

    def __init__(self, path: Path, *, archive_after: int = 60, prune_after: float = 30 * DAY) -> None:
        self.clock = FakeClock()
        self.path = path
        self.limits = RuntimeLimits(pool_prewarm=1, archive_after_minutes=archive_after, prune_after=prune_after)
        self.journal = SqliteJournal(path)
        self.registry = self._registry()
        agent = AgentEntry("w", "b", "here", "hash", True, False, False, AgentLimits("w"))
        self.registry.register([agent], "b", b"code")
        self.seq = {"d": 0, "a": 0}
        self.step("d", Join("d", ROOT, "w", leased=False))
        self.registry.prewarm(1)
        [self.actor] = self.registry.s.actors
        self.step(self.actor, Hello(self.actor, "node", 1, "handle"))

    def _registry(self) -> Registry:
        return Registry(self.journal, self.limits, self.clock, pool_max=8, cpus=1)

    def step(self, client: str, *events: Event, admits: tuple[Admit, ...] = ()) -> tuple[Effect, ...]:
        self.seq[client] = self.seq.get(client, 0) + 1
        answer, effects = self.registry.step(Step(client, self.seq[client], events, admits))
        assert answer.word == "ok"
        if answer.start is not None:
            return (Start(client, *answer.start), *effects)
        return effects

    def run(self, name: str, state: RunState = RunState.SUCCEEDED, item: MapItem | None = None) -> None:
        """One run from its spawn to its being heard of."""
        key = f"agent:w:subagent:{name}"
        ask = Admit(name, key, f"s-{name}", "map" if item else "spawn", ROOT, "small task", index=0, item=item)
        effects = self.step("d", admits=(ask,))
        [start] = [each for each in effects if isinstance(each, Start)]
        self.step(self.actor, Settled(name, start.spec.activation, Outcome(state, "done")))
        self.step("d", Consumed("d", (name,)))
        self.hub()

    def hub(self) -> None:
        """Rows and events are on their way no longer."""
        batch = self.registry.take_batch()
        if batch is not None and batch.rows:
            self.journal.delete_upto("rows", batch.rows[-1][0])

    def pass_time(self, seconds: float) -> None:
        """All of it at once; then the registry looks as often as it wants to."""
        self.clock.advance(seconds)
        for _ in range(100_000):
            self.registry.tick()
            self.hub()
            wait = self.registry.next_due() - self.clock.mono()
            if wait > 0.5:
                return
            self.clock.advance(max(0.001, wait))
        raise AssertionError("it is never done")

    def count(self, table: str) -> int:
        if table == "events":
            return len(self.journal.after("events", 0, limit=1_000_000))
        return self.journal.count(table, {})


@pytest.mark.timeout(1800 if RUNS > 10_000 else 120)
def test_the_journal_of_a_long_lived_service_levels_out(tmp_path: Path) -> None:
    """Runs over half a year: after a month and a week nothing grows any more."""
    service = Service(tmp_path / "registry.sqlite")
    sizes: list[int] = []
    spacing = DAYS * DAY / RUNS
    for n in range(RUNS):
        service.run(f"r{n}")
        service.clock.advance(spacing)
        if n % 12 == 11:
            service.pass_time(0.0)
            service.journal.checkpoint()  # as the registry's process does every second
        if n % (RUNS // 10) == RUNS // 10 - 1:
            sizes.append(service.journal.statistics().pages)
    print(f"\npages after each tenth of {RUNS} runs: {sizes}; {service.path.stat().st_size >> 10} KiB")
    assert max(sizes[4:]) <= 1.1 * sizes[3], sizes  # a few pages are only partly full at a time
    per_day = RUNS / DAYS
    assert service.count("runs") <= 7 * per_day + 24
    assert service.count("sessions") <= 30 * per_day + 24
    assert service.count("events") <= 5 * (7 * per_day + 24)
    assert service.count("due") <= 24
    assert len(service.registry.s.runs) == 1


def test_without_the_sweeper_it_grows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Retention, "sweep", lambda self, now: None)
    service = Service(tmp_path / "registry.sqlite")
    for n in range(100):
        service.run(f"r{n}")
        service.clock.advance(DAY)
        service.pass_time(0.0)
    assert service.count("runs") == 100


@pytest.mark.parametrize(("state", "kept"), [(RunState.SUCCEEDED, TASK_KEPT), (RunState.LOST, LOST_KEPT)])
def test_a_record_goes_by_itself_when_its_time_is_over(tmp_path: Path, state: RunState, kept: float) -> None:
    service = Service(tmp_path / "registry.sqlite")
    service.run("r", state)
    service.pass_time(kept - 2 * ROUND_EVERY)
    assert service.count("runs") == 1
    service.pass_time(3 * ROUND_EVERY)
    assert service.count("runs") == 0


def test_an_item_of_a_named_map_stays(tmp_path: Path) -> None:
    service = Service(tmp_path / "registry.sqlite")
    service.run("item", item=MapItem("nightly", "claim", b""))
    service.run("other")
    service.pass_time(100 * DAY)
    assert service.count("runs") == 1


def test_a_session_goes_after_its_own_time_and_is_archived_before(tmp_path: Path) -> None:
    service = Service(tmp_path / "registry.sqlite", prune_after=3 * DAY, archive_after=0)
    service.run("r")
    before = service.registry.s.seq
    service.pass_time(3 * DAY - 2 * ROUND_EVERY)
    assert service.journal.get("sessions", "agent:w:subagent:r") is not None
    service.pass_time(3 * ROUND_EVERY)
    assert service.registry.s.seq > before
    service.pass_time(2 * ROUND_EVERY)
    assert service.journal.get("sessions", "agent:w:subagent:r") is None
    assert service.journal.get("sessions", ROOT) is not None


def test_one_look_takes_so_many_and_no_more(tmp_path: Path) -> None:
    service = Service(tmp_path / "registry.sqlite")
    for n in range(SWEEP * 3):
        service.run(f"r{n}")
    service.clock.advance(8 * DAY)
    cursor: Cursor | None = Cursor("runs")
    dropped = []
    while cursor is not None and cursor.table == "runs":
        (done, cursor), _ = service.registry.retention.look(cursor, apply=True), None
        dropped.append(len(done))
    assert sum(dropped) == SWEEP * 3
    assert max(dropped) <= SWEEP


def test_what_is_only_asked_about_stays(tmp_path: Path) -> None:
    service = Service(tmp_path / "registry.sqlite")
    service.run("r")
    service.clock.advance(40 * DAY)
    said, cursor = [], Cursor()
    while cursor is not None:
        (done, cursor), _ = service.registry.retain(cursor, apply=False)
        said += [(each.action, each.session.split(":")[-1], bool(each.run)) for each in done]
    assert [each for each in said if each[1] == "r"] == [("drop", "r", True), ("archive", "r", False)]
    assert (service.count("runs"), service.count("sessions")) == (1, 2)
