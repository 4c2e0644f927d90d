"""Where session processes are put (DESIGN.md 9).

1. What an agent asks of Ray, and where its sessions are to be, is one key: processes of different keys are not used for
   each other. `asks` makes it; amounts of 0, and the placement that is usual anyway, are left out.
2. A process that asks for nothing is put by the runtime, since Ray would put it anywhere: ``SPREAD`` has each node get
   processes in proportion to the memory that is free for them, ``PACK`` fills the node that has the most of them.
   A node without CPUs (a head that is to run nothing) and one without memory for a further process get none as long as
   there are others.
3. One that asks for something is put by Ray, by its own strategy of the same meaning.
4. ``node:<address>`` is the name that Ray itself has for a node: a thousandth of that is asked for, so that whether
   there is such a node is one question with whether there are such resources. ``node:head`` is the head.
5. What no single node can hold is never placed; what all nodes together have does not matter.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import ceil
from typing import Any

__all__ = [
    "PLACE",
    "PROCESS_BYTES",
    "Asks",
    "Node",
    "Scheduling",
    "amounts",
    "asks",
    "choose",
    "cpus_wanted",
    "is_placement",
    "largest",
    "may_hold",
    "node_resource",
    "room_of",
]

PROCESS_BYTES = 55 * 1024 * 1024
"""What one session process takes, with some room: 45 to 52 MB were measured for idle ones."""
PLACE = "@scheduling"
"""The name of the placement among what an agent asks for; no resource is called so."""
_NODE = "node:"
_HEAD = "node:__internal_head__"
_NODE_SHARE = 0.001

Asks = tuple[tuple[str, Any], ...]
"""Sorted (name, amount) pairs in the words of the configuration, and the placement as (`PLACE`, word)."""


class Scheduling(StrEnum):
    """Where processes go that may be on any node."""

    SPREAD = "SPREAD"
    """Over the nodes, by free memory; what asks for resources as Ray's ``SPREAD``."""
    PACK = "PACK"
    """One node after the other; what asks for resources as Ray's ``DEFAULT``, which packs."""
    DEFAULT = "DEFAULT"
    """As Ray does it."""


@dataclass(frozen=True, slots=True)
class Node:
    """A live node.

    Attributes:
        id: Ray's, in hex.
        total: amounts of all its resources, in Ray's words.
        room: bytes that are free for further processes.
        ours: session processes that are there or on their way.
    """

    id: str
    total: Mapping[str, float]
    room: float
    ours: int = 0


def is_placement(word: str) -> bool:
    """Whether ``word`` is one of `Scheduling`, or ``node:`` and an address."""
    return word in tuple(Scheduling) or (word.startswith(_NODE) and len(word) > len(_NODE) and word == word.strip())


def asks(resources: Mapping[str, float], scheduling: str | None, usual: str) -> Asks:
    """The key (1) of an agent with these settings, ``usual`` being the runtime's placement."""
    found: dict[str, Any] = {name: amount for name, amount in resources.items() if amount}
    if scheduling is not None and scheduling != usual:
        found[PLACE] = scheduling
    return tuple(sorted(found.items()))


def amounts(asked: Asks) -> dict[str, float]:
    """What a process holds of its node while it lives, the placement apart."""
    return {name: float(amount) for name, amount in asked if name != PLACE}


def node_resource(word: str) -> dict[str, float]:
    """What ``node:<address>`` asks of Ray (4); nothing for other words."""
    if not word.startswith(_NODE):
        return {}
    return {_HEAD if word == "node:head" else word: _NODE_SHARE}


def choose(nodes: Sequence[Node], word: str) -> Node | None:
    """Where the next process goes that asks for nothing (2); `None` if that is left to Ray."""
    if word not in (Scheduling.SPREAD, Scheduling.PACK) or len(nodes) < 2:
        return None
    able = [node for node in nodes if node.total.get("CPU", 0) > 0] or list(nodes)
    able = [node for node in able if node.room >= PROCESS_BYTES] or able
    if word == Scheduling.PACK:
        return max(able, key=lambda node: node.ours)
    return max(able, key=lambda node: ((node.room + node.ours * PROCESS_BYTES) / (node.ours + 1), -node.ours))


def may_hold(needs: Mapping[str, float], nodes: Iterable[Node]) -> bool:
    """Whether one of the nodes could hold all of ``needs`` if it were free (5); all in Ray's words."""
    return any(all(node.total.get(name, 0.0) >= amount for name, amount in needs.items()) for node in nodes)


def largest(needs: Mapping[str, float], nodes: Iterable[Node]) -> dict[str, float]:
    """For each of ``needs`` the most that one node has."""
    there = list(nodes)
    return {name: max((node.total.get(name, 0.0) for node in there), default=0.0) for name in needs}


def room_of(memory: Iterable[float]) -> int:
    """How many processes nodes with so much memory can hold, in bytes each."""
    return sum(int(each) // PROCESS_BYTES for each in memory)


def cpus_wanted(sessions: int, base: int, now: int, cpus: int) -> int:
    """CPUs that a cluster is to have for so many sessions at once, 0 for as many as it has by itself.

    Args:
        sessions: at work, or waiting for nothing but a process.
        base: how many the cluster could hold when the runtime was started.
        now: how many it can hold now.
        cpus: how many it has now. Sessions ask for none, so what counts is how many of them a CPU's share of memory
            holds: nodes of the kind that is there come with both.
    """
    if sessions <= base or now <= 0:
        return 0
    return ceil(max(1, cpus) * sessions / now)
