"""What the sessions of the fault tier run; each says what it did in a file, one whole line an append."""

from __future__ import annotations

import asyncio
import ctypes
import os
import signal
import subprocess
import sys
import time

import openclaw_ray as oc
from openclaw_ray.core.errors import Cancelled


def say(path: str, *words: object) -> None:
    """One line at the end of a file, whole, whoever else writes there."""
    line = " ".join(str(word) for word in words) + "\n"
    fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(fd, line.encode())
    finally:
        os.close(fd)


@oc.agent(spawns=False)
def count(turn: oc.SyncTurn) -> str:
    """Say its index, last a while."""
    path, index, seconds = turn.input
    say(path, index)
    if seconds:
        time.sleep(seconds)
    return f"r{index}"


@oc.agent
def parent(turn: oc.SyncTurn) -> object:
    """Spawn children of `count` and join them."""
    path, name, children, seconds = turn.input
    say(path, name, "pid", os.getpid())
    for i in range(children):
        turn.spawn(task="count", agent_id="count", input=(path, f"{name}.{i}", seconds))
    return [done.text for done in turn.join()]


@oc.agent(follow_up=False)
def leaver(turn: oc.SyncTurn) -> str:
    """Spawn children and go on alone, without waiting for them."""
    path, children, seconds = turn.input
    for i in range(children):
        turn.spawn(task="count", agent_id="count", input=(path, f"child.{i}", seconds))
    say(path, "pid", os.getpid())
    time.sleep(600)
    return "never"


@oc.agent
async def mapper(turn: oc.Turn) -> object:
    """A map inside of a turn."""
    path, name, items = turn.input
    results = await turn.map("count", [(path, f"{name}.{i}", 0.02) for i in range(items)])
    return [result.text for result in results]


@oc.agent
async def yielder(turn: oc.Turn) -> str:
    """Spawn children, yield, and be woken once with their ends."""
    path, children, seconds = turn.input if turn.kind == "task" else ("", 0, 0)
    if turn.kind == "task":
        for i in range(children):
            await turn.spawn(task="count", agent_id="count", input=(path, f"child.{i}", seconds))
        turn.yield_()
    return " ".join(sorted(done.result.text or "" for done in turn.completions))


@oc.agent
async def hoarder(turn: oc.Turn) -> str:
    """Yield, so that what the children return is taken by the pool, and read it in the wake."""
    if turn.kind == "task":
        path, name, children = turn.input
        for i in range(children):
            await turn.spawn(task="bulky", agent_id="bulky", input=(path, f"{name}.{i}"))
        turn.yield_()
    return " ".join(str(len(done.result.value or b"")) for done in turn.completions)


@oc.agent(spawns=False)
async def polite(turn: oc.Turn) -> None:
    """Last until cancelled."""
    path, name = turn.input
    say(path, name, "pid", os.getpid())
    await asyncio.sleep(600)


@oc.agent(spawns=False)
def talker(turn: oc.SyncTurn) -> str:
    """Say something, see it in the history, and sit there."""
    path, seconds = turn.input
    for word in ("one", "two"):
        turn.append("assistant", word)
    same = True
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        same = same and [row["text"] for row in turn.history()][1:] == ["one", "two"]
    say(path, same, os.getpid())
    time.sleep(600)
    return "never"


@oc.agent(spawns=False)
def deaf(turn: oc.SyncTurn) -> None:
    """Sit in a call that hears nothing."""
    path, name = turn.input
    say(path, name, "pid", os.getpid())
    time.sleep(600)


@oc.agent(spawns=False)
def gripping(turn: oc.SyncTurn) -> None:
    """Sit in a C call that keeps the interpreter's lock."""
    path, name = turn.input
    say(path, name, "pid", os.getpid())
    ctypes.PyDLL(None).sleep(600)


@oc.agent(spawns=False)
def stamped(turn: oc.SyncTurn) -> None:
    """Say when its turn began, then last until stopped."""
    path, name = turn.input
    say(path, name, time.time_ns())
    while True:
        turn.check()
        time.sleep(0.002)


@oc.agent(spawns=False)
def timed(turn: oc.SyncTurn) -> str:
    """End by itself after a while, unless it is told to end."""
    path, name, seconds = turn.input
    say(path, name)
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        turn.check()
        time.sleep(0.001)
    return "ended by itself"


@oc.agent
def node(turn: oc.SyncTurn) -> None:
    """A tree with tools at work in each session; two of its leaves are hard to stop."""
    path, name, below = turn.input
    tool = subprocess.Popen(["sh", "-c", "sleep 300 & sleep 300"])
    say(path, name, "pid", os.getpid(), "tool", tool.pid)
    if name == "top.0.0.0":
        time.sleep(600)
    if name == "top.2.2.2":
        while True:
            try:
                turn.check()
                time.sleep(0.05)
            except Cancelled:
                continue
    if below:
        for i in range(below[0]):
            child = f"{name}.{i}"
            turn.spawn(agent_id="node", label=child, input=(path, child, below[1:]))
        turn.join()
    tool.wait()


@oc.agent(spawns=False)
def tooled(turn: oc.SyncTurn) -> None:
    """Wait for a tool that has a child of its own in the background."""
    path, name = turn.input
    tool = subprocess.Popen(["sh", "-c", "sleep 300 & sleep 300"])
    say(path, name, "pid", os.getpid(), "tool", tool.pid)
    tool.wait()


@oc.agent(spawns=False)
def bulky(turn: oc.SyncTurn) -> bytes:
    """Return more than travels with a message, so that it stays here until it is taken."""
    path, index = turn.input
    say(path, index)
    time.sleep(0.05)
    return bytes([hash(index) % 256]) * 200_000


@oc.agent(spawns=False)
def once_or_crash(turn: oc.SyncTurn) -> str:
    """Say its index; some indexes then end their process in ways of their own."""
    path, index = turn.input
    say(path, index)
    if index % 20 == 7:
        ctypes.string_at(0)  # a true one: a SIGSEGV that is only sent is handled by a thread of Ray's, later
    if index % 20 == 13:
        sys.exit(4)
    return f"r{index}"


@oc.agent(spawns=False)
def hog(turn: oc.SyncTurn) -> None:
    """Take memory, page by page, until somebody objects."""
    path, name, size = turn.input
    say(path, name)
    memory = bytearray(size)
    for page in range(0, size, 4096):
        memory[page] = 1
        if page % (16 << 20) == 0:
            time.sleep(0.02)
    time.sleep(600)


@oc.agent
def ender(turn: oc.SyncTurn) -> str:
    """Spawn a child that outlives it, then end its process in the way that it is told to."""
    path, way = turn.input
    turn.spawn(task="count", agent_id="count", input=(path, f"child of {way}", 1.0))
    match way:
        case "SIGKILL" | "SIGTERM":
            os.kill(os.getpid(), getattr(signal, way))
            time.sleep(60)
        case "SIGSEGV":
            ctypes.string_at(0)
        case "SIGABRT":
            os.abort()
        case "exit 7":
            os._exit(7)
        case "exit 0":
            os._exit(0)
        case "fork":
            child = os.fork()
            if not child:
                os._exit(9)
            os.waitpid(child, 0)
    return "ended"


AGENTS = [
    ender,
    hog,
    count,
    parent,
    leaver,
    mapper,
    yielder,
    hoarder,
    polite,
    talker,
    deaf,
    gripping,
    stamped,
    timed,
    node,
    tooled,
    once_or_crash,
    bulky,
]
GRACE = 3.0  # forty processes on two busy cores need their time to end by themselves
CONFIG = {
    "agents": {"defaults": {"subagents": {"allowAgents": ["*"], "maxChildrenPerAgent": 10}}},
    "ray": {"stopGraceSeconds": GRACE},
}
