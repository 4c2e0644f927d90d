"""The simulator itself: one seed is one run, a broken invariant can be replayed, and its network has Ray's habits."""

from __future__ import annotations

import pytest
from simulated_rules import directed, setup, taken_out

from openclaw_ray.core.protocol.courier import Courier
from openclaw_ray.testing.simulator import (
    Fault,
    FaultKind,
    Habits,
    InvariantBroken,
    Join,
    Meddling,
    Plan,
    ScheduleBroken,
    Spawn,
    Weather,
    Work,
    describe,
    random_schedule,
    run_schedule,
    simulate,
)
from openclaw_ray.testing.simulator.network import Lost, Network
from openclaw_ray.testing.simulator.process import Process
from openclaw_ray.testing.simulator.world import World


class Listener(Process):
    """A process that remembers what it was told."""

    def __init__(self, world: World, name: str) -> None:
        super().__init__(world, name)
        self.heard: list[int] = []

    def on_tell(self, number: int) -> int:
        self.heard.append(number)
        return number

    def on_tell_twice(self, number: int) -> None:
        self.heard.append(number)


def two(habits: Habits, *meddling: Meddling, seed: int = 1) -> tuple[World, Network, Listener, Listener]:
    world = World(seed)
    network = Network(world, habits, list(meddling))
    processes = [Listener(world, name) for name in ("client-0", "session-1-1")]
    network.processes.update({p.name: p for p in processes})
    return world, network, processes[0], processes[1]


# --------------------------------------------------------------------------- schedules


@pytest.mark.parametrize("weather", list(Weather))
def test_the_same_seed_is_the_same_run(weather: Weather) -> None:
    first, second = (simulate(17, weather, trace=True) for _ in range(2))
    assert first == second
    assert first.log
    assert random_schedule(17, weather) == random_schedule(17, weather)


def test_another_seed_is_another_run() -> None:
    assert simulate(1, "calm", trace=True).log != simulate(2, "calm", trace=True).log


def test_a_trace_is_kept_only_if_it_is_asked_for() -> None:
    assert simulate(1).log == ()


def test_a_broken_schedule_says_what_broke_and_how_to_replay_it() -> None:
    def some_break() -> None:
        for seed in range(50):
            simulate(seed, Weather.CALM, trace=True)

    with taken_out((Courier, "idle", lambda self: True)), pytest.raises(ScheduleBroken) as caught:
        some_break()
    broken = caught.value
    text = str(broken)
    assert broken.rule == "everything ends"
    assert f"simulate(seed={broken.schedule.origin}, weather='calm', trace=True)" in text
    assert describe(broken.schedule.program) in text
    assert broken.log[-1] in text
    assert isinstance(broken.__cause__, InvariantBroken)


def test_a_schedule_counts_what_it_did() -> None:
    [schedule] = directed(
        {1: Plan(((Spawn((2, 2)), Join()),)), 2: Plan(((Work(0.1),),))},
        (Spawn((1,)), Join()),
        faults=[Fault(FaultKind.SESSION, at=100.0)],
    )()
    outline = run_schedule(schedule)
    assert (outline.runs, outline.starts, outline.turns, outline.faults) == (3, 3, 3, 1)
    assert [state.value for state in outline.states.values()] == ["succeeded"] * 3
    assert 0.1 < outline.seconds < 1.0


def test_a_program_is_shown_as_a_tree() -> None:
    [schedule] = directed({1: Plan(((Spawn((2,)),),)), 2: Plan(deaf=True)}, (Spawn((1,)),))()
    assert describe(schedule.program).splitlines() == [
        "client 0",
        "  Spawn(plans=(1,), timeout=None, expects=True, thread='')",
        "      plan 1 (worker)",
        "        Spawn(plans=(2,), timeout=None, expects=True, thread='')",
        "            plan 2 (worker deaf)",
    ]


def test_the_setup_of_a_directed_schedule_is_what_its_registry_is_told() -> None:
    assert setup(pool_max=7, max_concurrent=2).limits.max_concurrent == 2


# --------------------------------------------------------------------------- network and processes


def test_calls_of_one_sender_to_one_group_arrive_in_order() -> None:
    world, network, client, session = two(Habits(slow=0.5))
    for number in range(50):
        network.tell(client, session.name, "control", Listener.on_tell, number)
    world.run(lambda: False, 10.0)
    assert session.heard == list(range(50))


def test_calls_to_different_groups_overtake_each_other() -> None:
    world, network, client, session = two(Habits(slow=0.5))
    for number in range(50):
        network.tell(client, session.name, ("turn", "control")[number % 2], Listener.on_tell, number)
    world.run(lambda: False, 10.0)
    assert sorted(session.heard) == list(range(50)) != session.heard


def test_a_hostile_network_reorders_and_doubles() -> None:
    world, network, client, session = two(Habits(slow=0.5, hostile=True, copies=0.3))
    for number in range(50):
        network.tell(client, session.name, "control", Listener.on_tell, number)
    world.run(lambda: False, 10.0)
    assert set(session.heard) == set(range(50))
    assert len(session.heard) > 50
    assert session.heard != sorted(session.heard)


def test_a_call_runs_although_its_caller_has_died_long_ago_or_goes_down_with_it() -> None:
    ran = []
    for seed in range(20):
        world, network, client, session = two(Habits(slow=0.0), seed=seed)
        network.tell(client, session.name, "control", Listener.on_tell, 1)
        client.kill("test")
        world.run(lambda: False, 1.0)
        ran.append(bool(session.heard))
    assert set(ran) == {True, False}


def test_a_lost_answer_is_unavailable_and_the_call_ran() -> None:
    world, network, client, session = two(Habits(slow=0.0), Meddling("tell", lose_answer=True))
    answers: list[int | Lost] = []
    for number in (1, 2):
        network.ask(client, session.name, "control", answers.append, Listener.on_tell, number)
    world.run(lambda: False, 1.0)
    assert session.heard == [1, 2]
    assert set(answers) == {Lost.UNAVAILABLE, 2}


def test_a_dead_session_is_dead_and_a_dead_named_process_is_unavailable() -> None:
    world, network, client, session = two(Habits(slow=0.0))
    session.kill("test")
    answers: list[int | Lost] = []
    network.ask(client, session.name, "control", answers.append, Listener.on_tell, 1)
    network.ask(client, "registry", "control", answers.append, Listener.on_tell, 1)
    world.run(lambda: False, 1.0)
    assert sorted(answers) == [Lost.DIED, Lost.UNAVAILABLE]


def test_what_reaches_a_silent_process_waits_and_is_lost_if_it_dies() -> None:
    world, network, client, session = two(Habits(slow=0.0))
    session.pause(1.0)
    network.tell(client, session.name, "control", Listener.on_tell, 1)
    world.run(lambda: False, 0.5)
    assert session.heard == []
    world.run(lambda: False, 2.0)
    assert session.heard == [1]
    session.pause(1.0)
    answers: list[int | Lost] = []
    network.ask(client, session.name, "control", answers.append, Listener.on_tell, 2)
    world.run(lambda: False, world.now + 0.5)
    session.kill("test")
    world.run(lambda: False, 9.0)
    assert (session.heard, answers) == ([1], [Lost.DIED])


def test_meddling_takes_the_nth_call_of_its_kind() -> None:
    meddling = (Meddling("tell", nth=2, drop=True), Meddling("tell_twice", copies=2))
    world, network, client, session = two(Habits(slow=0.0), *meddling)
    for number in (1, 2, 3):
        network.tell(client, session.name, "control", Listener.on_tell, number)
    network.tell(client, session.name, "control", Listener.on_tell_twice, 9)
    world.run(lambda: False, 1.0)
    assert sorted(session.heard) == [1, 3, 9, 9, 9]
