"""Have users talk in random schedules: conversations that are bound, spoken in and unbound (`chat`)."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from openclaw_ray.core.thread_rules import Bindings, ThreadRules
from openclaw_ray.testing.simulator.plans import Ask, Chat, Operation, Plan, Program, Rebind, Serve, Spawn, Work
from openclaw_ray.testing.simulator.setup import Setup

__all__ = ["chatting"]

_SHARE = 0.3
"""Of the schedules."""
_HOURS = 1 / 3600


def chatting(choose: Random, setup: Setup, program: Program) -> tuple[Setup, Program]:
    """Have the first client of some schedules serve a channel, and ask sessions of its own making; with dice of its
    own, so that the others fall as they do without it."""
    if choose.random() > _SHARE or not program.clients:
        return setup, program
    bindings = Bindings(
        idle_hours=choose.choice((0.0, 0.0, 0.2, 1.0)) * _HOURS,
        max_age_hours=choose.choice((0.0, 0.0, 0.0, 0.4)) * _HOURS,
    )
    limits = replace(setup.limits, threads=ThreadRules(bindings))
    plans: dict[int, Plan] = {}
    for number, plan in program.plans.items():
        plans[number] = replace(plan, turns=tuple(_bound(choose, ops) for ops in plan.turns))
    first = max(plans, default=0) + 1
    for number in (first, first + 1):
        plans[number] = Plan(((Work(round(choose.choice((0.0, 0.02, 0.2)) * choose.random(), 4)),),))
    ops = [*_bound(choose, program.clients[0])]
    for _ in range(choose.choice((2, 3, 5, 8))):
        ops.insert(choose.randint(0, len(ops)), _said(choose, (first, first + 1)))
    return replace(setup, limits=limits), Program(plans, ((Serve(), *ops), *program.clients[1:]))


def _bound(choose: Random, ops: tuple[Operation, ...]) -> tuple[Operation, ...]:
    """Some of the children get a conversation each."""
    return tuple(
        replace(op, thread=choose.choice(("session", "run"))) if isinstance(op, Spawn) and choose.random() < 0.5 else op
        for op in ops
    )


def _said(choose: Random, answers: tuple[int, ...]) -> Operation:
    dice, conversation = choose.random(), choose.choice((0, 1, 1, 2, 3))
    if dice < 0.45:
        return Chat(conversation, choose.choice(answers))
    if dice < 0.75:
        what = choose.choice(("focus", "focus", "unfocus", "leave", "unbind", "idle"))
        return Rebind(what, conversation, choose.choice((0, 0, 1)))
    if dice < 0.85:
        return Ask("worker", choose.choice(answers), choose.choice((0.02, 60.0)), choose.choice(("one", "two")))
    return Work(round(choose.choice((0.05, 0.3, 0.8)) * choose.random(), 4))
