"""The agents of this tier: small, and steered by files, so that a test knows what has happened without sleeping.

A place is a folder of the test's own, see ``support.runtimes.Gate``. Agents are given it as input or in one.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import openclaw_ray as oc
from openclaw_ray.core.errors import JoinTimeout, NothingPending, SpawnError, SpawnForbidden

# ---------------------------------------------------------------------- steering


def enter(place: str | Path, name: object) -> None:
    """Leave a sign of having been here."""
    (Path(place) / f"in-{name}").touch()


def write_line(place: str | Path, name: str, line: object) -> None:
    """Append a line, in one write."""
    with open(Path(place) / name, "a", encoding="utf-8") as file:
        file.write(f"{line}\n")


def pass_gate(turn: oc.SyncTurn, place: str | Path) -> None:
    """Wait for the test, or for a stop."""
    while not (Path(place) / "open").exists():
        turn.check()
        time.sleep(0.005)


def wait_for_files(turn: oc.SyncTurn, place: str | Path, pattern: str, count: int) -> None:
    """Wait until others have left their signs."""
    while len(list(Path(place).glob(pattern))) < count:
        turn.check()
        time.sleep(0.005)


def refusal(error: SpawnForbidden | SpawnError) -> dict[str, Any]:
    """A refusal in parts."""
    receipt = error.receipt
    return {
        "status": receipt.status,
        "limit": receipt.limit,
        "value": receipt.value,
        "maximum": receipt.maximum,
        "path": receipt.path,
        "text": str(error),
    }


# ---------------------------------------------------------------------- workers


@dataclass(frozen=True)
class Point:
    """A class of this module."""

    x: int
    y: int


@oc.agent
def main(turn: oc.SyncTurn) -> str:
    """The default agent."""
    return f"main: {turn.text}"


@oc.agent(spawns=False)
def echo(turn: oc.SyncTurn) -> str:
    """Its text."""
    return turn.text


@oc.agent(spawns=False)
async def async_echo(turn: oc.Turn) -> str:
    """Its text, from a coroutine."""
    await asyncio.sleep(0)
    return turn.text


@oc.agent(spawns=False)
def give_back(turn: oc.SyncTurn) -> Any:
    """Its input."""
    return turn.input


@oc.agent(spawns=False)
def input_kind(turn: oc.SyncTurn) -> dict[str, Any]:
    """What has arrived."""
    import ray

    given = ray.get(turn.input) if isinstance(turn.input, ray.ObjectRef) else turn.input
    columns = given.values() if isinstance(given, dict) else (given,)
    return {
        "type": type(given).__name__,
        "len": len(given) if hasattr(given, "__len__") else None,
        "text": turn.text,
        "writeable": any(getattr(getattr(column, "flags", None), "writeable", True) for column in columns),
        "in the store": all(lies_in_the_store(column) for column in columns),
    }


def lies_in_the_store(array: Any) -> bool:
    """Whether an array's own memory is the node's object store, which all its processes have mapped."""
    if not hasattr(array, "__array_interface__"):
        return False
    address = array.__array_interface__["data"][0]
    for line in Path("/proc/self/maps").read_text().splitlines():
        first, _, last = line.split()[0].partition("-")
        if int(first, 16) <= address < int(last, 16):
            return "plasma" in line
    return False


@oc.agent(spawns=False)
def resolve(turn: oc.SyncTurn) -> int:
    """The sum of what an ObjectRef stands for."""
    import ray

    return int(sum(ray.get(turn.input)))


@oc.agent(spawns=False)
def make_value(turn: oc.SyncTurn) -> Any:
    """A value of each kind that the rules name."""
    match turn.text:
        case "str":
            return "text"
        case "none":
            return None
        case "empty":
            return ""
        case "result":
            return oc.Result(text="own text", value=[1, 2])
        case "failed result":
            return oc.Result(status=oc.ResultStatus.ERROR, text="not this")
        case "dict":
            return {"a": 1, "b": [True, None]}
        case "array":
            import numpy as np

            return np.arange(100_000, dtype=np.int64)
        case "bytes":
            return b"x" * (1 << 20)
        case "long text":
            return "é" * 200_000
        case other:
            raise ValueError(other)


@oc.agent
def value_parent(turn: oc.SyncTurn) -> list[Any]:
    """A large value of a child."""
    turn.spawn(turn.text, agent_id="make_value")
    [done] = turn.join()
    value = done.result.raise_for_status().value
    return [int(value.sum()), bool(value.flags.writeable)]


@oc.agent
async def value_yielder(turn: oc.Turn) -> list[int] | None:
    """Two large values of children, over a yield; the first of them comes while the turn still runs."""
    if turn.kind == "task":
        first = await turn.spawn(turn.text, agent_id="make_value")
        while not turn._port.completion(first.run_id).done():
            await asyncio.sleep(0.005)
        await turn.spawn(turn.text, agent_id="make_value")
        turn.yield_()
    return [int(done.result.raise_for_status().value.sum()) for done in turn.completions]


@oc.agent(spawns=False)
def hold(turn: oc.SyncTurn) -> str:
    """Says that it is here, then waits at the gate; can be stopped."""
    enter(turn.input, turn.run_id)
    pass_gate(turn, turn.input)
    return "through"


@oc.agent(spawns=False)
def asked_hold(turn: oc.SyncTurn) -> str:
    """The same, told the place by a message."""
    enter(turn.text, turn.run_id)
    pass_gate(turn, turn.text)
    return "through"


@oc.agent(spawns=False)
def nap(turn: oc.SyncTurn) -> None:
    """Takes as long as its input says."""
    time.sleep(turn.input)


@oc.agent(spawns=False)
async def async_hold(turn: oc.Turn) -> str:
    """The same, awaiting."""
    enter(turn.input, turn.run_id)
    while not (Path(turn.input) / "open").exists():
        await asyncio.sleep(0.005)
    return "through"


@oc.agent(spawns=False)
def hand_over(turn: oc.SyncTurn) -> int:
    """Item i of four waits for item i + 1, so that they end in the opposite order."""
    place = Path(turn.input)
    assert turn.index is not None
    while turn.index % 4 != 3 and not (place / f"in-{turn.index + 1}").exists():
        turn.check()
        time.sleep(0.002)
    enter(place, turn.index)
    return turn.index


@oc.agent(spawns=False)
def meet(turn: oc.SyncTurn) -> list[float]:
    """Waits until ``count`` of its kind have come, and says from when to when it was here."""
    place, count = turn.input
    began = time.monotonic()
    enter(place, turn.run_id)
    wait_for_files(turn, place, "in-*", count)
    return [began, time.monotonic()]


@oc.agent(spawns=False)
def flaky(turn: oc.SyncTurn) -> str:
    """Fails the first ``failures`` times it is tried."""
    place, failures = turn.input
    write_line(place, f"tries-{turn.index}", turn.run_id)
    tried = len((Path(place) / f"tries-{turn.index}").read_text().splitlines())
    if tried <= failures:
        raise RuntimeError(f"try {tried}")
    return f"try {tried}"


@oc.agent(spawns=False)
def first_fails(turn: oc.SyncTurn) -> str:
    """Item 0 raises once the others are here; the others wait for a stop."""
    place, others = turn.input
    enter(place, turn.index)
    if turn.index == 0:
        wait_for_files(turn, place, "in-*", others + 1)
        raise LookupError("the first one")
    while True:
        turn.check()
        time.sleep(0.005)


@oc.agent(spawns=False)
def first_waits(turn: oc.SyncTurn) -> None:
    """Item 0 waits at the gate."""
    if turn.index == 0:
        pass_gate(turn, turn.input)


@oc.agent(spawns=False)
def first_goes(turn: oc.SyncTurn) -> None:
    """Item 0 returns once two others are here; the others wait at the gate."""
    enter(turn.input, turn.index)
    if turn.index == 0:
        wait_for_files(turn, turn.input, "in-*", 3)
    else:
        pass_gate(turn, turn.input)


@oc.agent(spawns=False)
def misfortune(turn: oc.SyncTurn) -> Any:
    """Four ways to fail at their own positions."""
    match turn.index:
        case 7:
            raise ValueError("boom at seven")
        case 8:
            sys.exit(3)
        case 9:
            os.kill(os.getpid(), signal.SIGKILL)
        case 10:
            return threading.Lock()
    return f"ok {turn.index}"


@oc.agent(spawns=False)
def end_as_told(turn: oc.SyncTurn) -> str:
    """Ends in the way that its input or text names; ``wait`` waits for a stop or deadline."""
    return end_as(turn, turn.input or turn.text)


@oc.agent(spawns=False)
def end_together(turn: oc.SyncTurn) -> str:
    """The same, once the parent has seen all five."""
    place, kind = turn.input
    wait_for_files(turn, place, "in-five", 1)
    return end_as(turn, kind)


def end_as(turn: oc.SyncTurn, kind: str) -> str:
    """The end of that kind."""
    match kind:
        case "ok":
            return "fine"
        case "raise":
            raise ValueError("as told")
        case "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        case "nothing":
            return ""
    while True:
        turn.check()
        time.sleep(0.005)


# ---------------------------------------------------------------------- hard to end


@oc.agent(spawns=False)
def deaf(turn: oc.SyncTurn) -> None:
    """Sleeps through everything."""
    turn.progress("asleep")
    enter(turn.input, turn.run_id)
    time.sleep(600)


@oc.agent(spawns=False)
async def stubborn(turn: oc.Turn) -> None:
    """Ignores that it is cancelled."""
    enter(turn.input, turn.run_id)
    while True:
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.sleep(600)


@oc.agent(spawns=False)
def with_tools(turn: oc.SyncTurn) -> None:
    """Has a tool's process with a child of its own at work."""
    tool = subprocess.Popen(["sh", "-c", "sleep 300 & sleep 300"])
    enter(turn.input, turn.run_id)
    while True:
        turn.check()
        time.sleep(0.005)
    tool.wait()


@oc.agent(spawns=False)
def reporting(turn: oc.SyncTurn) -> None:
    """Says how far it is, and is never done."""
    for step in range(1, 4):
        turn.progress(f"step {step}", done=step, total=9)
    enter(turn.input, turn.run_id)
    while True:
        turn.check()
        time.sleep(0.005)


# ---------------------------------------------------------------------- parents


@oc.agent
async def nested(turn: oc.Turn) -> list[Any]:
    """A map of maps, as deep as its input says."""
    depth = int(turn.input)
    if depth == 0:
        return [turn.session.depth]
    results = await turn.map("nested", [depth - 1] * 2)
    return [leaf for result in results for leaf in result.raise_for_status().value]


@oc.agent
def sync_map(turn: oc.SyncTurn) -> list[str | None]:
    """A map from a plain function, wider than the children cap."""
    return [result.text for result in turn.map("echo", [f"item {i}" for i in range(12)], width=12)]


@oc.agent
def failing_map(turn: oc.SyncTurn) -> list[str]:
    """A map with failures in place."""
    results = turn.map("end_as_told", ["ok", "raise", "kill", "ok"])
    return [result.status.value for result in results]


@oc.agent
def tree(turn: oc.SyncTurn) -> int:
    """``depth`` levels of ``fan`` children, each joined; gives the number of sessions below and itself."""
    depth, fan = turn.input
    if depth == 0:
        return 1
    for _ in range(fan):
        turn.spawn("go on", agent_id="tree", input=(depth - 1, fan))
    return 1 + sum(done.result.raise_for_status().value for done in turn.join())


@oc.agent
def holding_tree(turn: oc.SyncTurn) -> None:
    """``depth`` levels of ``fan`` children, joined at every level; the leaves wait for a stop."""
    place, depth, fan, leaves = turn.input
    enter(place, turn.run_id)
    for number in range(fan if depth else 0):
        if depth == 1:
            kind = leaves.pop() if leaves else "hold"
            turn.spawn("wait", agent_id=kind, input=place)
        else:
            share = leaves if number == 0 else []
            turn.spawn("go on", agent_id="holding_tree", input=(place, depth - 1, fan, share))
    turn.join()


@oc.agent
def half_done(turn: oc.SyncTurn) -> None:
    """One child that has ended, one that waits."""
    place = turn.input
    turn.join(turn.spawn("quick", agent_id="echo"))
    turn.spawn("wait", agent_id="hold", input=place)
    enter(place, turn.run_id)
    turn.join()


@oc.agent
def chain(turn: oc.SyncTurn) -> str:
    """The rest of the names, each joined by the one before: main → a → b."""
    names = turn.input
    if not names:
        return turn.session.agent_id
    turn.spawn("next", agent_id="chain", input=names[1:], label=names[0])
    [done] = turn.join()
    return f"{names[0]} < {done.text}"


@oc.agent(spawns=False)
def hold_at(turn: oc.SyncTurn) -> str:
    """Waits at the gate that its task names: what a model could ask for."""
    enter(turn.text, turn.run_id)
    pass_gate(turn, turn.text)
    return "held"


@oc.agent
def toolbox(turn: oc.SyncTurn) -> Any:
    """What a model would do with its tools: spawn, look, yield; look again when it is called again."""
    place = turn.input if turn.kind == "task" else turn.state["place"]
    child = {"task": str(place), "agentId": "hold_at", "label": "L", "taskName": "part"}
    if turn.kind == "task":
        turn.state["place"] = str(place)
        turn.state["said"] = [turn.call("sessions_yield").to_json()]
        answers = [turn.call("sessions_spawn", **child) for _ in range(2)]
        answers += [turn.tools.sessions_spawn(task="x", agent_id=name) for name in ("nobody", "Not A Name")]
        wait_for_files(turn, place, "in-*", 1)
        answers += [turn.call("subagents", action="list"), turn.call("subagents", action="cancel", taskId="x")]
        turn.state["said"] += [answer.to_json() for answer in answers]
        try:
            turn.call("agents_list")
        except oc.ToolDenied as error:
            turn.state["said"].append({"denied": error.tool, "rule": error.rule})
        enter(place, "yielding")
        turn.call("sessions_yield", message="look at what came")
    said = [*turn.state["said"], turn.call("subagents").to_json()]
    again = turn.call("sessions_spawn", **child)
    turn.join()
    rows = [json.loads(row["text"]) for row in turn.history(limit=50) if row["role"] == "tool"]
    ends = [(done.label, done.text) for done in turn.completions]
    return {"said": said, "again": again.status, "rows": rows, "ends": ends, "kind": str(turn.kind)}


@oc.agent
def lists_agents(turn: oc.SyncTurn) -> Any:
    """Whom a top-level session may name."""
    return turn.call("agents_list").to_json()


@oc.agent
async def async_toolbox(turn: oc.Turn) -> Any:
    """The same tools, awaited."""
    spawned = await turn.tools.sessions_spawn(task="hello", agentId="async_echo", expectsCompletionMessage=True)
    [done] = await turn.join([spawned.receipt])
    listed = await turn.call("subagents")
    try:
        await turn.call("sessions_search")
    except oc.UnknownTool as error:
        return {"text": done.text, "recent": listed["recent"], "unknown": str(error), "run": spawned["runId"]}


@oc.agent
def asked_tree(turn: oc.SyncTurn) -> str:
    """Takes messages: waits with a child, unless it is asked for something short."""
    if turn.text == "short":
        return "short"
    enter(turn.text, turn.run_id)
    turn.spawn("wait", agent_id="hold", input=turn.text)
    turn.join()
    return "through"


@oc.agent
def arming(turn: oc.SyncTurn) -> dict[str, Any]:
    """Two children: one that waits with a child, one that tries to end it and others; then ends the first itself."""
    place, stranger = turn.input
    sibling = turn.spawn("wait", agent_id="asked_tree_child", label="sibling", input=place)
    wait_for_files(turn, place, "in-*", 2)  # the stranger, and the sibling's child
    own = (turn.session.key, sibling.session_key, sibling.run_id, stranger)
    armed = turn.spawn("try", agent_id="armed", input=own)
    [done] = turn.join([armed])
    said = [turn.call("subagents", action="kill", target="sibling") for _ in range(2)]
    words = [(each.status, each["labels"], each["cascadeKilled"]) for each in said]
    return {**done.result.raise_for_status().value, "killed": words[0], "again": words[1]}


@oc.agent
def asked_tree_child(turn: oc.SyncTurn) -> None:
    """Waits with a child."""
    turn.spawn("wait", agent_id="hold", input=turn.input)
    pass_gate(turn, turn.input)


@oc.agent
def armed(turn: oc.SyncTurn) -> dict[str, Any]:
    """Tries to end what is not below it."""
    own = [*turn.input, turn.session.key]
    refused = [turn.call("subagents", action="kill", target=each).status for each in own]
    answers = [turn.call("subagents", action="kill", target=each).to_json() for each in ("all", "last", "1")]
    return {"refused": refused, "nobody": [(each["status"], each.get("killed")) for each in answers]}


@oc.agent
def no_join(turn: oc.SyncTurn) -> str:
    """Two children, and no wait for them."""
    write_line(turn.input, "calls", turn.kind)
    turn.spawn("one", agent_id="hold", input=turn.input)
    turn.spawn("two", agent_id="hold", input=turn.input)
    return "returned"


@oc.agent(follow_up=True)
def follower(turn: oc.SyncTurn) -> str:
    """The same, and wants to hear of them."""
    place = turn.input if turn.kind == "task" else turn.state["place"]
    write_line(place, "calls", turn.kind)
    if turn.kind == "task":
        turn.state["place"] = str(place)
        for number in range(2):
            turn.spawn(f"child {number}", agent_id="hold", input=place)
        return "first"
    return f"heard {[done.text for done in turn.completions]}"


class ClassFollower(oc.Agent):
    """The class form of it: told by default."""

    id = "class_follower"

    async def on_turn(self, turn: oc.Turn) -> str:
        place = turn.input if turn.kind == "task" else turn.state["place"]
        write_line(place, "calls", turn.kind)
        if turn.kind == "task":
            turn.state["place"] = str(place)
            for number in range(2):
                await turn.spawn(f"child {number}", agent_id="hold", input=place)
            return "first"
        return f"heard {[done.text for done in turn.completions]}"


@oc.agent
def relay(turn: oc.SyncTurn) -> str:
    """A child that does not wait for its own."""
    turn.spawn("go", agent_id="no_join", input=turn.input)
    [done] = turn.join()
    return f"the middle says: {done.text}"


@oc.agent
def one_child(turn: oc.SyncTurn) -> list[str]:
    """A child that says what this one was told."""
    turn.spawn(turn.text, agent_id="echo")
    [done] = turn.join()
    return [done.result.status.value, done.text]


@oc.agent(follow_up=True)
def joining_follower(turn: oc.SyncTurn) -> str:
    """Would hear of its children, but has joined them."""
    turn.spawn("a", agent_id="echo")
    turn.spawn("b", agent_id="echo")
    return f"joined {len(turn.join())}"


@oc.agent
async def yielding(turn: oc.Turn) -> Any:
    """Yields over one batch of children, and over a second one in the wake of the first."""
    seen = turn.state.setdefault("seen", [])
    seen.append([turn.kind.value, [done.result.status.value for done in turn.completions]])
    batches = turn.state.setdefault("batches", turn.input)
    if batches:
        for kind in batches.pop(0):
            await turn.spawn(kind, agent_id="end_as_told", input=kind)
        turn.yield_("waiting for them")
    return seen


@oc.agent
def yields_to_held(turn: oc.SyncTurn) -> str:
    """Told the place by a message: a child that waits at the gate, one with such a child of its own, and a yield."""
    if turn.kind == "message":
        turn.spawn("wait", agent_id="hold", input=turn.text)
        turn.spawn("go on", agent_id="holding_tree", input=(turn.text, 1, 1, []))
        turn.yield_()
    return "woken"


@oc.agent
def cleaning(turn: oc.SyncTurn) -> list[str]:
    """Two children that are to be archived once it has heard of them, and one that is to be kept."""
    keys = [turn.spawn(word, agent_id="echo", cleanup=word).session_key for word in ("delete", "keep")]
    said = turn.call("sessions_spawn", task="x", agentId="echo", cleanup="delete").to_json()
    turn.join()
    return [*keys, said["childSessionKey"]]


@oc.agent
async def late_yield(turn: oc.Turn) -> str:
    """Yields after its child has ended."""
    if turn.kind == "wake":
        return f"woken with {[done.text for done in turn.completions]}"
    receipt = await turn.spawn("quick", agent_id="echo")
    while not turn._port.completion(receipt.run_id).done():
        await asyncio.sleep(0.005)
    turn.yield_()
    return "not reached"


@oc.agent
def idle_yield(turn: oc.SyncTurn) -> str:
    """Yields with nothing to wait for."""
    try:
        turn.yield_()
    except NothingPending as error:
        return f"refused: {error}"
    return "not reached"


@oc.agent
async def joins(turn: oc.Turn) -> Any:
    """Join in its three forms."""
    place = turn.input
    match turn.text:
        case "all":
            for text in ("a", "b", "c"):
                await turn.spawn(text, agent_id="echo")
            first = [done.text for done in await turn.join()]
            return [first, [done.text for done in await turn.join()]]
        case "some":
            waits = await turn.spawn("wait", agent_id="hold", input=place)
            quick = await turn.spawn("quick", agent_id="echo")
            done = [done.text for done in await turn.join(quick)]
            (Path(place) / "open").touch()
            return [done, [done.run_id == waits.run_id for done in await turn.join()]]
        case "first":
            await turn.spawn("wait", agent_id="hold", input=place)
            quick = await turn.spawn("quick", agent_id="echo")
            done = await turn.join(until="first")
            return [[each.text for each in done], done[0].run_id == quick.run_id, len(await turn.join())]
        case "timeout":
            waits = await turn.spawn("wait", agent_id="hold", input=place)
            try:
                await turn.join(timeout=0.2)
            except JoinTimeout as error:
                named = error.unsettled == (waits.session_key,)
            (Path(place) / "open").touch()
            return [named, [done.text for done in await turn.join()]]


@oc.agent
async def crowd(turn: oc.Turn) -> dict[str, Any]:
    """``count`` spawns at once, of children that wait at the gate."""
    place, count = turn.input

    async def one() -> Any:
        try:
            return await turn.spawn("wait", agent_id="hold", input=place)
        except SpawnForbidden as error:
            return refusal(error)

    answers = await asyncio.gather(*(one() for _ in range(count)))
    enter(place, "asked")
    refused = [answer for answer in answers if isinstance(answer, dict)]
    done = await turn.join()
    return {"refused": refused, "accepted": [each.text for each in done]}


@oc.agent
def five_ends(turn: oc.SyncTurn) -> dict[str, Any]:
    """Five children that end in five ways, then at once five more."""
    place = turn.input
    for kind in ("ok", "raise", "timeout", "stop", "kill"):
        turn.spawn(
            kind,
            agent_id="end_together",
            input=(place, kind),
            label=kind,
            run_timeout_seconds=1 if kind == "timeout" else None,
        )
    full = ""
    try:
        turn.spawn("one too many", agent_id="echo")
    except SpawnForbidden as error:
        full = error.receipt.limit or ""
    enter(place, "five")
    ends = {done.label: done.result.status.value for done in turn.join()}
    for number in range(5):
        turn.spawn(f"again {number}", agent_id="echo")
    return {"full": full, "ends": ends, "again": [done.text for done in turn.join()]}


@oc.agent
def abandoning(turn: oc.SyncTurn) -> str:
    """Five children of which one is a parent that has returned; then one more."""
    place = turn.input
    turn.spawn("go", agent_id="no_join", input=place)
    quick = [turn.spawn(f"quick {number}", agent_id="echo") for number in range(4)]
    turn.join(quick)
    for _ in range(4):
        turn.spawn("quick", agent_id="hold", input=place)
    try:
        turn.spawn("one too many", agent_id="echo")
        answer = "accepted"
    except SpawnForbidden as error:
        answer = f"{error.receipt.limit} {error.receipt.value}"
    (Path(place) / "answer").write_text(answer)
    turn.join()
    return answer


@oc.agent
def digger(turn: oc.SyncTurn) -> dict[str, Any]:
    """Spawns itself downwards until it is refused."""
    try:
        turn.spawn("deeper", agent_id="digger")
    except SpawnForbidden as error:
        return {"depth": turn.session.depth, "role": turn.session.role, **refusal(error)}
    [done] = turn.join()
    deepest: dict[str, Any] = done.result.raise_for_status().value
    return deepest


def _asker(name: str) -> Any:
    @oc.agent(id=name)
    def ask(turn: oc.SyncTurn) -> list[Any]:
        """Asks for each target that its input names; `None` leaves the name out."""
        answers: list[Any] = []
        for target in turn.input:
            try:
                receipt = turn.spawn("do it", agent_id=target)
            except (SpawnForbidden, SpawnError) as error:
                answers.append(refusal(error))
            else:
                answers.append(receipt.agent_id)
                turn.join()
        return answers

    return ask


open_asker = _asker("open_asker")
limited = _asker("limited")
closed = _asker("closed")
strict = _asker("strict")


# ---------------------------------------------------------------------- what a turn sees


@oc.agent
def look_around(turn: oc.SyncTurn) -> dict[str, Any]:
    """The fields of its session, and more."""
    session = turn.session
    return {
        "key": session.key,
        "session_id": session.session_id,
        "agent_id": session.agent_id,
        "depth": session.depth,
        "role": session.role,
        "label": session.label,
        "cwd": session.cwd,
        "requester_key": session.requester_key,
        "kind": turn.kind.value,
        "run_id": turn.run_id,
        "index": turn.index,
        "events": [event.kind.value for event in turn.events],
    }


@oc.agent
def remembering(turn: oc.SyncTurn) -> Any:
    """Counts its turns over messages, and reads its history."""
    turn.state["count"] = turn.state.get("count", 0) + 1
    if turn.text == "history":
        turn.append("system", "a note of its own")
        return [[row["role"], row["text"]] for row in turn.history(limit=50)]
    if turn.text == "too much":
        turn.state["big"] = "x" * (65 << 10)
    if turn.text == "no json":
        turn.state["object"] = object()
    if turn.text == "fail":
        raise ValueError("on purpose")
    return turn.state["count"]


@oc.agent
def spender(turn: oc.SyncTurn) -> str:
    """Usage of a tree: what its input says for itself, and its children's."""
    own, below = turn.input
    if own is not None:
        turn.add_usage(input_tokens=own, output_tokens=1)
        turn.add_usage(cost=0.5)
    for each in below:
        turn.spawn("spend", agent_id="spender", input=each)
    return ",".join(str(done.result.usage.input_tokens) for done in turn.join()) or "leaf"


@oc.agent
def connecting(turn: oc.SyncTurn) -> dict[str, Any]:
    """Connects to its own runtime, and spawns by that."""
    with oc.Runtime.connect(turn.text) as runtime:
        receipt = runtime.spawn("look", "look_around")
        seen: dict[str, Any] = runtime.result(receipt).raise_for_status().value
    return {"own": turn.session.key, "root": runtime.root_key, **seen}


@oc.agent
def mapping_again(turn: oc.SyncTurn) -> list[list[bool]]:
    """Maps under a name twice by a connection of its own; which results are taken over."""
    name, map_id = turn.input
    with oc.Runtime.connect(name) as runtime:
        items = ["a", "b", "c"]
        return [[result.reused for result in runtime.map("echo", items, map_id=map_id)] for _ in range(2)]


@oc.agent(spawns=False)
def checking(turn: oc.SyncTurn) -> str:
    """Writes down what check() raises."""
    enter(turn.input, turn.run_id)
    try:
        while True:
            turn.check()
            time.sleep(0.005)
    except BaseException as error:
        write_line(turn.input, "raised", f"{type(error).__name__} {error}")
        raise


@oc.agent(spawns=False)
def printing(turn: oc.SyncTurn) -> str:
    """Writes to both outputs, by itself and by a tool."""
    print("from print")
    print("from stderr", file=sys.stderr)
    subprocess.run(["echo", "from a tool"], check=True)
    return "said"


# ---------------------------------------------------------------------- isolation

MARKER: str = ""
MUTABLE: dict[str, str] = {}


class Holder:
    """A class of this module, on which an agent may put something."""


@oc.agent
async def marking(turn: oc.Turn) -> dict[str, Any]:
    """Puts a marker wherever it can, then has a default child look for it."""
    import contextvars

    global MARKER
    marker = turn.input["marker"]
    MARKER = marker
    MUTABLE["marker"] = marker
    Holder.marker = marker  # type: ignore[attr-defined]
    importlib.import_module(__name__).LEFT_HERE = marker  # type: ignore[attr-defined]
    os.environ["OPENCLAW_MARKER"] = marker
    os.makedirs(f"/tmp/{marker}", exist_ok=True)
    os.chdir(f"/tmp/{marker}")
    os.umask(0o077)
    sys.path.insert(0, f"/tmp/{marker}")
    contextvars.ContextVar("marker", default=marker).set(marker)
    local = marker
    turn.append("system", f"a secret note: {local}")
    turn.state["marker"] = marker
    child = await turn.spawn("look", agent_id="searching", input="")
    [done] = await turn.join()
    assert done.run_id == child.run_id
    return {"pid": os.getpid(), "child": done.result.raise_for_status().value, "child_key": child.session_key}


@oc.agent
def searching(turn: oc.SyncTurn) -> dict[str, Any]:
    """All that a session can see without looking into other sessions' files."""
    import contextvars

    seen = {
        "global": MARKER,
        "mutable": dict(MUTABLE),
        "class": getattr(Holder, "marker", ""),
        "module": str(getattr(sys.modules.get(__name__), "LEFT_HERE", "")),
        "environment": dict(os.environ),
        "cwd": os.getcwd(),
        "umask": _umask(),
        "path": list(sys.path),
        "context": {var.name: str(value) for var, value in contextvars.copy_context().items()},
        "modules": sorted(sys.modules),
        "text": turn.text,
        "events": [event.text for event in turn.events],
        "state": turn.state,
        "history": turn.history(limit=100),
    }
    return {"pid": os.getpid(), "seen": json.dumps(seen, default=str), "umask": seen["umask"]}


def _umask() -> int:
    now = os.umask(0o022)
    os.umask(now)
    return now


@oc.agent(spawns=False)
def leave_thread(turn: oc.SyncTurn) -> int:
    """Leaves a thread that never ends."""
    threading.Thread(target=threading.Event().wait, name="left-behind", daemon=True).start()
    return os.getpid()


@oc.agent(spawns=False)
def leave_thread_too(turn: oc.SyncTurn) -> None:
    """Does the same, and is not to be named twice for it."""
    threading.Thread(target=threading.Event().wait, name="left-behind", daemon=True).start()


@oc.agent(spawns=False)
def leave_process(turn: oc.SyncTurn) -> int:
    """Leaves a process."""
    subprocess.Popen(["sleep", "300"], start_new_session=True)
    return os.getpid()


@oc.agent(spawns=False)
async def leave_task(turn: oc.Turn) -> int:
    """Leaves a task that cannot be cancelled."""

    async def for_ever() -> None:
        while True:
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.sleep(600)

    turn.left = asyncio.create_task(for_ever(), name="left-task")  # type: ignore[attr-defined]
    await asyncio.sleep(0)
    return os.getpid()


@oc.agent(spawns=False)
async def leave_executor_task(turn: oc.Turn) -> int:
    """Leaves a call in the loop's executor that never ends."""
    asyncio.get_running_loop().run_in_executor(None, threading.Event().wait)
    return os.getpid()


@oc.agent(spawns=False)
async def use_threads(turn: oc.Turn) -> int:
    """Uses the loop's executor: normal, no leak."""
    return await asyncio.to_thread(os.getpid)


COUNT = [0]


@oc.agent(spawns=False)
def counting(turn: oc.SyncTurn) -> list[int]:
    """How often this module's list was counted up."""
    COUNT[0] += 1
    return [os.getpid(), COUNT[0]]


@oc.agent(spawns=False)
def grow(turn: oc.SyncTurn) -> int:
    """Keeps megabytes where nobody will let go of them."""
    sys.modules["openclaw_ray_test_hoard"] = bytearray(turn.input << 20)  # type: ignore[assignment]
    return os.getpid()


@oc.agent(spawns=False)
def environment(turn: oc.SyncTurn) -> str | None:
    """A variable of its process."""
    return os.environ.get(turn.text)


@oc.agent(spawns=False)
def gate_or_go(turn: oc.SyncTurn) -> str:
    """Goes at once if its place is none, else waits at the gate."""
    place, number = turn.input
    if place != "x":
        enter(place, number)
        pass_gate(turn, place)
    return "went"


@oc.agent(spawns=False)
def who(turn: oc.SyncTurn) -> int:
    """Its process."""
    return os.getpid()


class Counts(oc.Agent):
    """Counts what it hears; ``call LABEL`` has it spawn one of its kind that talks with users."""

    def on_turn(self, turn: oc.SyncTurn) -> str:
        if turn.text.startswith("call "):
            try:
                return turn.spawn("begin", label=turn.text.split()[1], thread=True).session_key
            except SpawnError as error:
                return str(error)
        turn.state["heard"] = turn.state.get("heard", 0) + 1
        return f"{turn.state['heard']}: {turn.text}"


ALL = [
    thing
    for thing in list(globals().values())
    if hasattr(thing, "__openclaw_agent__")
    or (isinstance(thing, type) and issubclass(thing, oc.Agent) and thing is not oc.Agent)
]
