"""Schedules that found something, kept: by seed as they were found, and directed so that they stay what they are."""

from __future__ import annotations

import pytest
from simulated_rules import breaks, directed, setup

from openclaw_ray.core.protocol import ending
from openclaw_ray.core.protocol.ending import Ending
from openclaw_ray.core.thread_rules import Bindings, ThreadRules
from openclaw_ray.testing.simulator import (
    Ask,
    Die,
    Fault,
    FaultKind,
    Join,
    Meddling,
    Plan,
    Serve,
    Spawn,
    Weather,
    Work,
    Yield,
    run_schedule,
    simulate,
)
from openclaw_ray.testing.simulator.pool import PoolProcess
from openclaw_ray.testing.simulator.registry import RegistryProcess

LARGE = 1_000_000


@pytest.mark.parametrize(
    ("weather", "seed"),
    [
        (Weather.HOSTILE, 727),
        (Weather.HOSTILE, 1027),
        (Weather.HOSTILE, 2145),
        (Weather.ACTORS, 258),
        (Weather.HOSTILE, 465),
        (Weather.REGISTRY, 872),
        (Weather.REGISTRY, 996),
    ],
)
def test_no_invariant_breaks_in_schedules_in_which_one_did(weather: Weather, seed: int) -> None:
    assert simulate(seed, weather).runs


def test_a_child_that_talks_with_users_holds_nobody_up_when_its_conversation_is_over_either() -> None:
    """5.2: its end is told to nobody, so nobody was called when it came."""
    bindings = ThreadRules(Bindings(idle_hours=0.0, max_age_hours=0.1 / 3600))
    on = setup(pool_max=18, prewarm=16, max_children=12, max_concurrent=12, threads=bindings)
    for children in (12, 1):
        plans = {1: Plan(((Spawn((2,) * children, thread="session"), Work(1.5)),)), 2: Plan(((Work(4.0),),))}
        [schedule] = directed(plans, (Serve(), Spawn((1,)), Join()), on=on)()
        outline = run_schedule(schedule, looks=1.0)
        assert (outline.seconds < 4.0) is (children == 1), "where they are many it goes on with the end of some"
    broken = breaks(schedule, (ending, "_holds_nobody_up", lambda child: False))
    assert broken is not None
    assert broken.rule in ("everything ends", "what is counted is what is there")


def said_once(self: PoolProcess, run: str, actor: str) -> None:
    """To whichever registry is there now, if one is."""
    self.cluster.network.tell(self, "registry", "main", RegistryProcess.on_value_held, run, actor)


def test_a_value_that_the_pool_took_while_there_was_no_registry_does_not_stay_there() -> None:
    """4.3: the actor that had it dies, too, before the next registry: only the pool knows."""
    plans = {
        1: Plan(((Spawn((2,)), Spawn((3,)), Yield()),), follow_up=True),
        2: Plan(((Work(0.3),),), held=LARGE),
        3: Plan(((Work(3.0),),)),
    }
    [schedule] = directed(
        plans,
        (Ask("worker", 1),),
        on=setup(pool_max=6, prewarm=3),
        faults=(Fault(FaultKind.REGISTRY, at=0.9), Fault(FaultKind.SESSION, at=1.0)),
        meddling=(Meddling("take", delay=0.5),),
    )()
    run_schedule(schedule)
    broken = breaks(schedule, (PoolProcess, "_say_held", said_once))
    assert broken is not None
    assert "the pool keeps the value" in broken.detail


def test_a_large_value_that_nobody_is_to_hear_of_keeps_no_process() -> None:
    """4.3, DESIGN.md 8: a top-level session that died is activated once more; what it says is for nobody."""
    plans = {
        1: Plan(((Spawn((2,)), Work(0.05), Die()), ()), follow_up=True, held=LARGE),
        2: Plan(((Work(0.3),),)),
    }
    [schedule] = directed(plans, (Ask("worker", 1), Work(1.0)), on=setup(pool_max=6, prewarm=3))()
    outline = run_schedule(schedule)
    assert any(run.startswith("revival-") for run in outline.states)
    dropped = Ending.drop_value
    broken = breaks(schedule, (Ending, "drop_value", lambda self, run: dropped(self, run) if run.deliver_to else None))
    assert broken is not None
    assert "releasing" in broken.detail
