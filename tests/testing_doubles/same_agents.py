"""Agents that run unchanged on a `LocalRuntime` and on Ray, and what a test sees of them: it must be the same.

A scenario is a function of a runtime that gives plain data, without ids and times.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import openclaw_ray as oc
from openclaw_ray.testing.eventually import eventually

__all__ = ["ALL", "SCENARIOS"]

seen = 0


@dataclass(frozen=True)
class Spot:
    """A class of this module, which travels by value."""

    x: int


class Ledger:
    """A class of this module that stays with the agents."""

    marks: ClassVar[list[str]] = []


@oc.agent(id="same_square", spawns=False)
def square(turn: oc.SyncTurn) -> int:
    if turn.input == 13:
        raise ValueError("thirteen is not liked")
    number: int = turn.input**2
    return number


@oc.agent(id="same_tree")
async def tree(turn: oc.Turn) -> dict[str, int]:
    """Two children a level, down to the level that the input names."""
    below: int = turn.input
    if below == 0:
        return {"sessions": 1, "deepest": turn.session.depth}
    for _ in range(2):
        await turn.spawn(input=below - 1)
    ends = [done.result.value for done in await turn.join()]
    return {"sessions": 1 + sum(e["sessions"] for e in ends), "deepest": max(e["deepest"] for e in ends)}


@oc.agent(id="same_yields")
def yields(turn: oc.SyncTurn) -> str:
    if turn.kind == "task":
        turn.state["asked"] = [2, 3]
        for number in turn.state["asked"]:
            turn.spawn(agent_id="same_square", input=number)
        turn.yield_("not seen")
    values = [done.result.value for done in turn.completions]
    return f"{turn.kind}: {turn.state['asked']} gave {values}"


class Counter(oc.Agent):
    id = "same_counter"

    def __init__(self) -> None:
        self.turns = 0

    async def on_turn(self, turn: oc.Turn) -> str:
        self.turns += 1
        turn.state["turns"] = turn.state.get("turns", 0) + 1
        return f"self {self.turns}, state {turn.state['turns']}"


@oc.agent(id="same_maps")
def maps(turn: oc.SyncTurn) -> list[Any]:
    return [
        result.value if result.ok else f"{result.error.type}: {result.error.message}"
        for result in turn.map("same_square", [1, 13, 3], width=2)
        if result.error is not None or result.ok
    ]


@oc.agent(id="same_many")
def many(turn: oc.SyncTurn) -> dict[str, Any]:
    """Spawns until it is refused."""
    born = 0
    try:
        while True:
            turn.spawn(agent_id="same_waits", task="wait")
            born += 1
    except oc.SpawnForbidden as error:
        receipt = error.receipt
        return {"born": born, "limit": receipt.limit, "maximum": receipt.maximum, "path": receipt.path}


@oc.agent(id="same_deeper")
async def deeper(turn: oc.Turn) -> Any:
    """As deep as it goes."""
    try:
        await turn.spawn("deeper")
    except oc.SpawnForbidden as error:
        return [turn.session.depth, error.receipt.limit, error.receipt.maximum]
    [done] = await turn.join()
    return done.result.value


@oc.agent(id="same_waits", spawns=False)
def waits(turn: oc.SyncTurn) -> str:
    while True:
        turn.check()
        time.sleep(0.005)


@oc.agent(id="same_first")
def first(turn: oc.SyncTurn) -> Any:
    turn.spawn("wait", agent_id="same_waits")
    turn.spawn(agent_id="same_square", input=4)
    [done] = turn.join(until="first")
    return done.result.value


@oc.agent(id="same_spot")
def spot(turn: oc.SyncTurn) -> Any:
    """What one session does to a class and a module, another does not see."""
    global seen
    seen += 1
    Ledger.marks.append("was here")
    given: Spot = turn.input
    return {"mine": isinstance(given, Spot), "seen": seen, "marks": list(Ledger.marks), "out": Spot(given.x + 1)}


@oc.agent(id="same_spot_parent")
def spot_parent(turn: oc.SyncTurn) -> Any:
    turn.spawn(agent_id="same_spot", input=Spot(1))
    [done] = turn.join()
    return isinstance(done.result.value["out"], Spot)


@oc.agent(id="same_bad_value")
def bad_value(turn: oc.SyncTurn) -> Any:
    return (number for number in range(3))


@oc.agent(id="same_bad_state")
def bad_state(turn: oc.SyncTurn) -> str:
    turn.state["spot"] = {1, 2}
    return "not reached"


@oc.agent(id="same_talks", spawns=False)
async def talks(turn: oc.Turn) -> str:
    turn.append("system", "a note")
    turn.progress("half", 1, 2)
    rows = await turn.history()
    return " / ".join(f"{row['role']}: {row['text']}" for row in rows)


@oc.agent(id="same_usage")
async def usage(turn: oc.Turn) -> str:
    if turn.text == "child":
        turn.add_usage(input_tokens=3, output_tokens=4)
        return "child"
    await turn.spawn("child")
    turn.add_usage(input_tokens=1)
    await turn.join()
    return "parent"


ALL = [
    square,
    tree,
    yields,
    Counter,
    maps,
    many,
    deeper,
    waits,
    first,
    spot,
    spot_parent,
    bad_value,
    bad_state,
    talks,
    usage,
]


# ---------------------------------------------------------------------- what a test sees


def _given(rt: oc.Runtime, agent: str, **options: Any) -> oc.Result[Any]:
    return rt.result(rt.spawn("go", agent, **options), timeout=30)


def _mapped(rt: oc.Runtime) -> Any:
    results = rt.map("same_square", [1, 13, 3])
    return [(r.index, r.status.value, r.value, r.error.message if r.error else None) for r in results]


def _counted(rt: oc.Runtime) -> Any:
    before = int(rt.ask("same_counter", "count").raise_for_status().text.split()[-1])  # type: ignore[union-attr]
    return [str(rt.ask("same_counter", "count").text).replace(str(before + more), f"+{more}") for more in (1, 2)]


def _running_below(rt: oc.Runtime, receipt: oc.Receipt, count: int) -> list[dict[str, Any]]:
    """Wait for so many running children."""
    eventually(lambda: len(rt.runs(requester=receipt.session_key, state="running")) == count)
    return rt.runs(requester=receipt.session_key, state="running")


def _refused(rt: oc.Runtime) -> Any:
    receipt = rt.spawn("go", "same_many")
    # a plain function that returns without join: its run goes on until its children have ended
    eventually(lambda: rt.runs(session=receipt.session_key, state="paused") != [])
    for row in _running_below(rt, receipt, 5):
        rt.stop_run(row["runId"])
    return rt.result(receipt, timeout=30).value


def _stopped(rt: oc.Runtime) -> Any:
    receipt = rt.spawn("go", "same_many")
    _running_below(rt, receipt, 5)
    report = rt.stop(receipt.session_key)
    states = {row["state"] for row in rt.runs(requester=receipt.session_key)}
    return [report.stopped, report.forced, report.failed, states, rt.result(receipt).status.value]


def _first(rt: oc.Runtime) -> Any:
    result = _given(rt, "same_first")
    return [result.value, sorted(row["state"] for row in rt.runs(requester=result.session_key))]


def _spots(rt: oc.Runtime) -> Any:
    first, second = (_given(rt, "same_spot", input=Spot(number)).value for number in (1, 2))
    for value in (first, second):
        out = value.pop("out")
        value["home"] = isinstance(out, Spot), out.x
    return [first, second, _given(rt, "same_spot_parent").value, Ledger.marks]


def _talked(rt: oc.Runtime) -> Any:
    result = _given(rt, "same_talks")
    first, said = str(result.text).split("[Subagent Task]\n")[1].split("\n\n", 1)
    return f"{first} / {said.split(' / ')[-1]}", [row["role"] for row in rt.history(result.session_key)]


def _bad(rt: oc.Runtime) -> Any:
    results = [_given(rt, agent) for agent in ("same_bad_value", "same_bad_state")]
    return [(r.status.value, r.error.type, r.error.cause) for r in results if r.error is not None]


def _used(rt: oc.Runtime) -> Any:
    usage = _given(rt, "same_usage").usage
    return usage.input_tokens, usage.output_tokens, usage.partial


SCENARIOS: dict[str, tuple[Callable[[oc.Runtime], Any], Any]] = {
    "a tree that joins": (lambda rt: _given(rt, "same_tree", input=3).value, {"sessions": 15, "deepest": 4}),
    "yield and wake": (lambda rt: _given(rt, "same_yields").text, "wake: [2, 3] gave [4, 9]"),
    "a class and its state": (_counted, ["self 1, state +1", "self 1, state +2"]),
    "a map with an item that fails": (
        _mapped,
        [(0, "ok", 1, None), (1, "error", None, "thirteen is not liked"), (2, "ok", 9, None)],
    ),
    "a map within a turn": (
        lambda rt: _given(rt, "same_maps").value,
        [1, "ValueError: thirteen is not liked", 9],
    ),
    "children up to the cap": (
        _refused,
        {
            "born": 5,
            "limit": "maxChildrenPerAgent",
            "maximum": 5,
            "path": "agents.defaults.subagents.maxChildrenPerAgent",
        },
    ),
    "depth up to the cap": (lambda rt: _given(rt, "same_deeper").value, [5, "maxSpawnDepth", 5]),
    "a stop of a subtree": (_stopped, [6, 0, 0, {"cancelled"}, "cancelled"]),
    "the first of two": (_first, [16, ["cancelled", "succeeded"]]),
    "sessions do not see each other": (
        _spots,
        [
            {"mine": True, "seen": 1, "marks": ["was here"], "home": (True, 2)},
            {"mine": True, "seen": 1, "marks": ["was here"], "home": (True, 3)},
            True,
            [],
        ],
    ),
    "a transcript": (
        _talked,
        ("go / system: a note", ["user", "system", "assistant"]),
    ),
    "what cannot travel": (_bad, [("error", "Unpicklable", "unpicklable"), ("error", "TypeError", "raised")]),
    "usage of a subtree": (_used, (4, 4, False)),
}
