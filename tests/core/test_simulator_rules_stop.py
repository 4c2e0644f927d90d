"""The simulator finds the fault when a rule of PROTOCOL.md 6 or 7 (stop; pool, hub, death) is taken out.

Not here, as they are about Ray and the system, and tested in `tests/faults`: that a cancel is no `ray.cancel`
(6.5), process groups (6.9), how fast a death notice comes and that a new incarnation's call queues behind the old
one (7.2), restarts (7.3), what the clean check finds (7.6), concurrency groups (7.7). That rows of a lower activation
are refused (7.4) is the transcripts' (`tests/store`): the registry's own fence lets none through.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from simulated_rules import Rule, check, directed, hunt, setup, taken_out

from openclaw_ray.core import lineage
from openclaw_ray.core.protocol import stopping
from openclaw_ray.core.protocol.activation import Activation
from openclaw_ray.core.protocol.birth import Birth
from openclaw_ray.core.protocol.courier import Courier
from openclaw_ray.core.protocol.crew import Crew
from openclaw_ray.core.protocol.ending import Ending
from openclaw_ray.core.protocol.messages import ReportAsk
from openclaw_ray.core.protocol.orphans import Orphans
from openclaw_ray.core.protocol.records import Mark
from openclaw_ray.core.protocol.registry import Registry
from openclaw_ray.core.protocol.state import State
from openclaw_ray.core.protocol.turns import Turns
from openclaw_ray.testing.simulator import (
    Ask,
    Fault,
    FaultKind,
    Hang,
    Join,
    Meddling,
    Plan,
    Schedule,
    Spawn,
    Stop,
    Weather,
    Work,
    run_schedule,
)
from openclaw_ray.testing.simulator.family import Family

_short, _long, _hang = Plan(((Work(0.01),),)), Plan(((Work(0.3),),)), Plan(((Hang(),),))
_one = (Spawn((1,)), Join())
_stop = (Spawn((1,)), Work(0.5), Stop(0, wait=True))
_asked = {1: Plan(((Spawn((2,)), Join()),)), 2: Plan(((Work(0.8),),))}
_alone = Stop(wait=True, key="agent:worker:main", scope="run")
_roomy = setup(pool_max=5, max_spawn_depth=2)
_touch, _progress, _hello = State.touch, Ending.mark_progress, Crew.hello


def touch_no_mark(self: State, record: Any) -> None:
    """Keep marks in memory alone."""
    if not isinstance(record, Mark):
        _touch(self, record)


def only_through_the_living(runs: Any, top: str) -> Any:
    """A walk that ends at a run that has ended."""
    level = [top]
    while level:
        yield from level
        level = [c for r in level if r in runs and not runs[r].terminal for c in runs[r].children]


def whatever_the_sign(runs: Any, run: Any) -> int:
    """Bind what is below by every mark."""
    own = abs(run.mark) if run.mark and run.route != "driver" else 0
    return own or next((abs(a.mark) for a in lineage.ancestors(runs, run) if a.mark and a.route != "driver"), 0)


def count_without_rows(self: Ending, mark: Mark, run: Any) -> None:
    """Forget what became of a run under a mark."""
    _progress(self, mark, run)
    mark.rows = ()


def any_is_welcome(self: Crew, event: Any) -> bool:
    """Answer an actor that nobody wants as if it were wanted."""
    return _hello(self, event) if event.actor in self.s.actors else True


def any_idle_actor(self: Birth, idle: Any, waiting: Any) -> Any:
    """Do not look at the class."""
    return next((actors for actors in idle.values() if actors), [])


def use_again(self: Ending, actor: Any) -> None:
    """Do not look at what the clean check found."""
    actor.state, actor.activation, actor.kill_why = "idle", "", ""


def a_grant_is_lost() -> list[Schedule]:
    """The registry dies between some commit and what was to be done about it."""
    return [
        schedule
        for nth in range(2, 14)
        for schedule in directed({1: _long}, _one, faults=[Fault(FaultKind.BETWEEN, nth=nth)])()
    ]


RULES = [
    Rule(
        "6.1 a mark is durable",
        ((State, "touch", touch_no_mark),),
        directed(
            {1: Plan(((Hang(),),), deaf=True)}, _stop, faults=[Fault(FaultKind.REGISTRY, at=1.0)]
        ),
        ("everything ends",),
    ),
    Rule(
        "6.1 a stop passes through runs that have ended",
        ((lineage, "subtree", only_through_the_living),),
        directed(
            {1: Plan(((Spawn((2,)), Work(0.1), Hang()),)), 2: _hang},
            (Spawn((1,), timeout=0.2), Work(1.0), Stop(0, wait=True)),
        ),
    ),
    Rule(
        "6.1 a stop of a run alone binds nothing below it",
        ((lineage, "bound_by_mark", whatever_the_sign),),
        directed(_asked, (Ask("worker", 1, 0.4), _alone, Work(1.0)), on=_roomy),
        ("a stop wins over what a turn did", "only a stop cancels", "a stop's counts add up"),
    ),
    Rule(
        "6.4 a stop that overtakes its start holds",
        ((Activation, "is_stopped", lambda self, activation: False),),
        directed({1: _long}, (Spawn((1,)), Work(0.3), Stop(0, wait=True)), meddling=[Meddling("start", delay=0.6)]),
        ("a stop that overtakes its start holds",),
    ),
    Rule(
        "6.4 couriers drop what they have admitted and not sent",
        ((Courier, "drop_unsent", lambda self, activation: []),),
        hunt(),
        ("nothing asked for before a stop is born after it",),
    ),
    Rule(
        "6.6 die_if names the run",
        ((Activation, "dies_for", lambda self, run: True),),
        directed(
            {1: Plan(((Work(0.7),),), deaf=True), 2: Plan(((Work(2.0),),))},
            (Spawn((1,), timeout=0.1), Spawn((2,)), Join()),
            on=setup(pool_max=1, max_spawn_depth=1, prewarm=1, stop_grace_seconds=0.5),
            meddling=[Meddling("die_if", delay=0.2)],
        ),
        ("an innocent successor is never hit",),
    ),
    Rule(
        "6.6 who does not end within the grace is asked to die",
        ((Turns, "_ask_to_die", lambda self, run, now: None),),
        directed({1: Plan(((Hang(),),), deaf=True)}, _stop),
        ("everything ends",),
    ),
    Rule(
        "6.6 who does not answer that is killed",
        ((Turns, "_fence_and_kill", lambda self, run: None),),
        directed({1: Plan(((Hang(),),), deaf=True)}, _stop, meddling=[Meddling("die_if", drop=True)]),
        ("everything ends",),
    ),
    Rule(
        "6.7 the report counts what became of each run",
        ((Ending, "mark_progress", count_without_rows),),
        directed({1: Plan(((Spawn((2, 2)), Join()),)), 2: _hang}, _stop),
        ("a stop's counts add up",),
    ),
    Rule(
        "7.1 an actor that nobody wants is told to exit",
        ((Crew, "hello", any_is_welcome),),
        directed(
            {1: _long},
            _one,
            on=setup(prewarm=1),
            meddling=[Meddling("step", sender="session", delay=100.0), Meddling("kill", drop=True)],
        ),
        ("everything ends",),
    ),
    Rule(
        "7.2 a death notice ends what the actor ran",
        # nor may the sweeper come to it, which would find it a minute later
        ((Crew, "_end_of", lambda self, run, actor, detail: None), (Orphans, "sweep", lambda self: None)),
        directed({1: Plan(((Work(1.0),),))}, _one, on=setup(prewarm=1), faults=[Fault(FaultKind.SESSION, at=0.5)]),
    ),
    Rule(
        "7.4 a new hub gets all that is unacknowledged",
        ((Registry, "hub_again", lambda self, clients=None: ()),),
        directed(
            {1: _long},
            _one,
            faults=[Fault(FaultKind.HUB, at=0.8)],
            meddling=[Meddling("poll", nth=2, delay=1.5)],
        ),
        ("everything ends",),
    ),
    Rule(
        "7.5 after a crash the actors are asked what they run",
        ((Crew, "reported", lambda self, report: self.awaited.discard(report.actor)),),
        a_grant_is_lost,
        ("everything ends",),
    ),
    Rule(
        "7.6 one re-use class for each process",
        ((Birth, "_of_class", any_idle_actor),),
        directed(
            {1: _long, 2: Plan(agent="other")},
            (Spawn((1,)), Join(), Spawn((2,)), Join()),
            on=setup(pool_max=1, max_spawn_depth=1, prewarm=1),
        ),
        ("one re-use class for each process",),
    ),
    Rule(
        "7.6 a process that is not clean is not used again",
        ((Ending, "free", use_again),),
        hunt(Weather.CALM, Weather.ACTORS),
        ("an unclean process is not used again",),
    ),
]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.number)
def test_a_schedule_needs_the_rule(rule: Rule) -> None:
    check(rule)


def test_a_stop_goes_down_the_handles() -> None:
    """6.2: the registry's own word is late; the handle that the client holds is quicker."""
    [schedule] = directed({1: _hang}, _stop, meddling=[Meddling("stop", nth=0, sender="registry", delay=8.0)])()
    assert run_schedule(schedule).forced == 0
    with taken_out((Family, "_tell_stop", lambda self, child, mark: None)):
        assert run_schedule(schedule).forced == 1


def test_a_stop_goes_from_the_registry_too() -> None:
    """6.3: the middle run has ended, nobody holds a handle of what is below it."""
    plans = {1: Plan(((Spawn((2,)), Work(0.1), Hang()),)), 2: _hang}
    [schedule] = directed(plans, (Spawn((1,), timeout=0.3), Work(1.0), Stop(0, wait=True)))()
    assert run_schedule(schedule).forced == 0
    with taken_out((stopping, "Stop", lambda actor, *rest: ReportAsk(actor))):
        assert run_schedule(schedule).forced == 1


@pytest.mark.parametrize("kind", [FaultKind.REGISTRY, FaultKind.HUB, FaultKind.SESSION])
def test_a_stop_of_less_holds_whatever_fails(kind: FaultKind) -> None:
    """6.1: of a run alone and of a session without its line, while registry, hub or a session process dies."""
    for scope in ("run", "session"):
        stop = replace(_alone, scope=scope)
        asks = (Ask("worker", 1, 0.4), Ask("worker", 2, 0.0), stop, Work(1.0), stop)
        for at in (0.3, 0.5, 0.6, 0.7):
            for schedule in directed(_asked, asks, on=_roomy, faults=[Fault(kind, at=at)])():
                run_schedule(schedule)
