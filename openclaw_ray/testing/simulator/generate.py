"""Random schedules: a tree of programs, a runtime that is tight for it, and things that go wrong.

`choose` is any `random.Random`, so that a property test can draw the same schedules and shrink them.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random

from openclaw_ray.core.limits import PoolReuse, RuntimeLimits
from openclaw_ray.core.visibility import SessionRules, Visibility
from openclaw_ray.testing.simulator.generate_chat import chatting
from openclaw_ray.testing.simulator.network import Habits
from openclaw_ray.testing.simulator.plans import (
    Ask,
    Die,
    Fail,
    Hang,
    Join,
    Map,
    Operation,
    Plan,
    Program,
    Reset,
    Say,
    Send,
    Spawn,
    Stop,
    Take,
    Use,
    Work,
    Yield,
)
from openclaw_ray.testing.simulator.setup import Fault, FaultKind, Schedule, Setup, Weather

__all__ = ["random_schedule", "schedule_by"]

_FAULTS: dict[Weather, tuple[FaultKind, ...]] = {
    Weather.CALM: (),
    Weather.REGISTRY: (FaultKind.REGISTRY, FaultKind.BETWEEN, FaultKind.COMMIT, FaultKind.STALL),
    Weather.ACTORS: (FaultKind.SESSION, FaultKind.SESSION, FaultKind.SILENCE, FaultKind.CUT_OFF),
    Weather.EVERYTHING: tuple(FaultKind),
    Weather.HOSTILE: tuple(FaultKind),
}


def random_schedule(seed: int, weather: Weather | str = Weather.CALM) -> Schedule:
    """The schedule of a seed."""
    weather = Weather(weather)
    return replace(schedule_by(Random(f"{weather.value}-{seed}"), weather), origin=seed)


def schedule_by(choose: Random, weather: Weather) -> Schedule:
    """The schedule that these dice make."""
    setup = random_setup(choose, weather)
    program = random_program(choose, setup.limits.max_spawn_depth)
    if program.endless or choose.random() < 0.1:
        setup = replace(setup, patience=choose.choice((0.3, 3.0, 20.0)))
    faults = random_faults(choose, weather)
    setup, program = _archiving(setup, program)
    seed = choose.randrange(1 << 32)
    setup, program = talking(Random(f"talk-{seed}"), setup, program)
    setup, program = chatting(Random(f"chat-{seed}"), setup, program)
    return Schedule(seed, program, setup, faults, weather=weather.value)


def talking(choose: Random, setup: Setup, program: Program) -> tuple[Setup, Program]:
    """Have the programs of a third of the schedules send messages; with dice of its own, so that the others fall as
    they do without it."""
    if choose.random() > 0.35:
        return setup, program
    rules = SessionRules(visibility=Visibility.ALL, max_ping_pong_turns=choose.choice((0, 1, 2, 5, 5)))
    limits = replace(setup.limits, sessions=rules, ping_pong_with_subagents=choose.random() < 0.7)
    plans, first = dict(program.plans), max(program.plans, default=0) + 1
    answers = tuple(range(first, first + 3))
    for number in answers:
        ops: list[Operation] = [Work(round(choose.choice((0.0, 0.01, 0.1)) * choose.random(), 4))]
        if choose.random() < 0.4:
            ops.append(_message(choose, answers))
        if choose.random() < 0.5:
            ops.append(Take(choose.choice((0.0, 0.05, 0.3))))
        plans[number] = Plan((tuple(ops),), unclean=choose.random() < 0.05)
    for number, plan in program.plans.items():
        if choose.random() < 0.5:
            plans[number] = replace(plan, turns=tuple(_with_messages(choose, turn, answers) for turn in plan.turns))
    clients = tuple(_with_messages(choose, ops, answers, client=True) for ops in program.clients)
    return replace(setup, limits=limits), Program(plans, clients)


def _with_messages(
    choose: Random, ops: tuple[Operation, ...], answers: tuple[int, ...], *, client: bool = False
) -> tuple[Operation, ...]:
    found = list(ops)
    for _ in range(choose.choice((0, 1, 1, 2))):
        found.insert(choose.randint(0, len(found)), _message(choose, answers))
    if not client and choose.random() < 0.4:
        found.insert(choose.randint(0, len(found)), Take(choose.choice((0.0, 0.02, 0.3))))
    return tuple(found)


def _message(choose: Random, answers: tuple[int, ...]) -> Send:
    return Send(
        choose.choice(("worker", "worker", "other")),
        choose.choice(answers),
        choose.choice((0.0, 0.0, 0.05, 0.5, 5.0)),
        choose.choice(("", "", "", "steer", "steer", "steer", "notify", "resume")),
        choose.choice((-1, -1, 0, 0, 1)),
    )


def _archiving(setup: Setup, program: Program) -> tuple[Setup, Program]:
    """Have most runtimes archive soon, some sessions at once, and some clients reset what they or another one asked; by
    the program's size, so that the dice fall as they do without it."""
    limits = replace(setup.limits, archive_after_minutes=1, archive_minute=(0.05, 0.5, 60.0)[program.size % 3])
    plans = {n: replace(plan, cleanup="delete") if n % 4 == 0 else plan for n, plan in program.plans.items()}
    clients = program.clients
    if program.size % 2:
        asked = any(isinstance(op, Ask) for ops in clients for op in ops)
        clients = tuple(
            (*(Reset() if isinstance(op, Stop) and op.key else op for op in ops), *[Reset()] * asked) for ops in clients
        )
    return replace(setup, limits=limits), Program(plans, clients)


def random_setup(choose: Random, weather: Weather) -> Setup:
    """A runtime with tight limits."""
    r = choose.random
    depth = choose.choice((1, 2, 3, 3, 4, 5))
    limits = RuntimeLimits(
        max_spawn_depth=depth,
        max_children=choose.choice((2, 3, 5)),
        max_concurrent=choose.choice((1, 1, 2, 3, 8)),
        main_lane=choose.choice((1, 2, 8)),
        global_lane=r() < 0.15,
        max_active_sessions=choose.choice((None, None, None, 1, 2)),
        pool_max=None,
        pool_prewarm=0,
        pool_reuse=choose.choice((PoolReuse.CLASS,) * 5 + (PoolReuse.AGENT, PoolReuse.TREE, PoolReuse.NEVER)),
        pool_idle_seconds=choose.choice((0.5, 5.0, 30.0)),
        stop_grace_seconds=choose.choice((0.3, 1.0, 2.0)),
        client_lease_seconds=choose.choice((6.0, 15.0)),
    )
    bad = weather in (Weather.EVERYTHING, Weather.HOSTILE)
    stormy = weather is not Weather.CALM
    habits = Habits(
        slow=choose.choice((0.0, 0.02, 0.2)),
        stuck=choose.choice((0.0, 0.01)) if stormy else 0.0,
        lost_answers=choose.choice((0.0, 0.02, 0.1)) if stormy else 0.0,
        hostile=weather is Weather.HOSTILE,
        copies=choose.choice((0.0, 0.05, 0.2)) if weather is Weather.HOSTILE else 0.0,
    )
    return Setup(
        limits,
        pool_max=depth + choose.choice((1, 1, 2, 4)),
        cpus=choose.choice((1, 2, 4)),
        prewarm=choose.choice((0, 1, 2)),
        habits=habits,
        leased=r() < 0.8 or bad,
        failing_births=choose.choice((0.0, 0.1)) if bad else 0.0,
        notice=choose.choice((0.012, 0.012, 1.0)) if stormy else 0.012,
    )


def random_faults(choose: Random, weather: Weather) -> tuple[Fault, ...]:
    """What goes wrong, a few things in a short time."""
    kinds = _FAULTS[weather]
    if not kinds:
        return ()
    span = choose.choice((0.1, 0.5, 2.0, 6.0))
    faults = []
    for _ in range(choose.choice((1, 1, 2, 3, 5))):
        kind = choose.choice(kinds)
        faults.append(
            Fault(
                kind,
                at=round(span * choose.random(), 4),
                nth=choose.randrange(1, 80),
                target=choose.randrange(0, 4),
                lasts=choose.choice((0.05, 0.6, 2.5, 8.0))
                if kind in (FaultKind.SILENCE, FaultKind.STALL, FaultKind.CUT_OFF)
                else choose.choice((1.0, 10.0, 25.0))
                if kind is FaultKind.CLIENT_SILENCE
                else 0.0,
            )
        )
    return tuple(faults)


def random_program(choose: Random, depth_cap: int) -> Program:
    """Trees of plans for one or two clients."""
    builder = _Builder(choose, depth_cap)
    clients = tuple(builder.client() for _ in range(choose.choice((1, 1, 1, 2))))
    return Program(builder.plans, clients)


class _Builder:
    def __init__(self, choose: Random, depth_cap: int) -> None:
        self.choose = choose
        self.depth_cap = depth_cap
        self.most = choose.choice((3, 6, 10, 16))
        self.plans: dict[int, Plan] = {}

    # ------------------------------------------------------------------ clients

    def client(self) -> tuple[Operation, ...]:
        r = self.choose.random
        ops: list[Operation] = []
        for _ in range(self.choose.choice((1, 1, 2))):
            dice = r()
            if dice < 0.35:
                width = self.choose.choice((1, 2, 4))
                ops.append(Map(self.some(1, 6), width, self.timeout()))
            elif dice < 0.85:
                ops.append(Spawn(self.some(1, 4), self.timeout()))
                if r() < 0.3:
                    ops.append(Work(self.time()))
                    ops.append(Stop(self.choose.choice((-1, 0, 1)), r() < 0.5))
                if r() < 0.4:
                    ops.append(Join(self.choose.choice(("all", "first"))))
            else:
                ops.append(Ask("worker", self.plan(0), self.choose.choice((0.02, 0.5, 60.0))))
                if r() < 0.3:
                    ops.append(Stop(wait=r() < 0.5, key="agent:worker:main"))
        return tuple(ops)

    # ------------------------------------------------------------------ plans

    def some(self, least: int, most: int, depth: int = 1) -> tuple[int, ...]:
        return tuple(self.plan(depth) for _ in range(self.choose.randint(least, most)))

    def plan(self, depth: int) -> int:
        """A new plan for a run at ``depth``; gives its number."""
        number = len(self.plans) + 1
        self.plans[number] = Plan()
        r = self.choose.random
        dice = r()
        if depth >= self.depth_cap or len(self.plans) >= self.most or dice < 0.3:
            self.plans[number] = self._leaf()
        else:
            self.plans[number] = self._parent(depth)
        return number

    def time(self) -> float:
        return round(self.choose.choice((0.0, 0.004, 0.02, 0.1, 0.6)) * (0.5 + self.choose.random()), 4)

    def timeout(self) -> float | None:
        return self.choose.choice((None, None, None, 0.05, 0.5, 3.0))

    def _agent(self) -> str:
        return self.choose.choice(("worker",) * 8 + ("leaf", "leaf", "other", "gpu"))

    def _leaf(self) -> Plan:
        choose, r = self.choose, self.choose.random
        ops: list[Operation] = []
        if r() < 0.8:
            ops.append(Work(self.time()))
        if r() < 0.1:
            ops.append(Say("on the way"))
        if r() < 0.1:
            ops.append(Use(7))
        dice = r()
        if dice < 0.08:
            ops.append(Fail())
        elif dice < 0.11:
            ops.append(Die())
        elif dice < 0.16:
            ops.append(Hang())
        return Plan(
            (tuple(ops),),
            agent=self._agent(),
            deaf=r() < 0.07,
            slow=choose.choice((0.0,) * 6 + (0.003, 0.3)),
            held=100_000 if r() < 0.12 else 0,
            unclean=r() < 0.06,
        )

    def _parent(self, depth: int) -> Plan:
        choose, r = self.choose, self.choose.random
        turns: list[tuple[Operation, ...]] = []
        follow_up = r() < 0.3
        for turn in range(choose.choice((1, 1, 1, 2, 3))):
            ops: list[Operation] = []
            if r() < 0.3:
                ops.append(Work(self.time()))
            if turn and r() < 0.4:
                turns.append(tuple(ops))
                continue
            if r() < 0.25:
                ops.append(Map(self.some(1, 4, depth + 1), choose.choice((1, 2, 3)), self.timeout()))
            else:
                ops.append(Spawn(self.some(1, 3, depth + 1), self.timeout(), r() < 0.9))
            if r() < 0.2:
                ops.append(Work(self.time()))
            if r() < 0.1:
                ops.append(Stop(choose.choice((-1, 0, 1)), r() < 0.5))
            dice = r()
            if dice < 0.45:
                ops.append(Join(choose.choice(("all", "all", "all", "first"))))
            elif dice < 0.65:
                ops.append(Yield())
            if r() < 0.05:
                ops.append(choose.choice((Fail(), Hang(), Die())))
            turns.append(tuple(ops))
        return Plan(
            tuple(turns),
            agent="worker" if r() < 0.9 else self._agent(),
            follow_up=follow_up,
            deaf=r() < 0.04,
            held=100_000 if r() < 0.06 else 0,
            unclean=r() < 0.04,
        )
