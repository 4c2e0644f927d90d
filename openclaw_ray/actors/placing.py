"""Where the pool puts its processes: what it knows of the nodes, and the options of each creation (`core.placement`).

1. Of each node it knows what Ray says, and the free memory that its newest session process has measured there. What it
   has put there since is taken off.
2. A choice binds: for what asks for nothing Ray takes a soft one for none, and any node. A creation on a node that is
   lost in between fails, and the next one is made with a fresh look at the nodes.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import ray
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from openclaw_ray.core.placement import (
    PLACE,
    PROCESS_BYTES,
    Asks,
    Node,
    Scheduling,
    amounts,
    choose,
    largest,
    may_hold,
    node_resource,
)

__all__ = ["Places", "live_nodes"]

_AS_KNOWN_FOR = 1.0
"""Seconds for which what Ray has said of its nodes is good enough."""
_WORDS = {"num_cpus": "CPU", "num_gpus": "GPU"}


def live_nodes() -> list[Node]:
    """The nodes as Ray has them; their room is the memory that Ray gives them."""
    return [
        Node(node["NodeID"], node["Resources"], node["Resources"].get("memory", 0.0))
        for node in ray.nodes()  # type: ignore[no-untyped-call]
        if node["Alive"]
    ]


@dataclass(slots=True)
class _Measured:
    """Free bytes of a node, as measured when it had so many processes of ours."""

    free: float
    ours: int


class Places:
    """The nodes, and which process is on which."""

    def __init__(self, usual: str) -> None:
        self.usual = usual
        self._lock = threading.Lock()
        self._on: dict[str, str] = {}
        self._measured: dict[str, _Measured] = {}
        self._nodes: list[Node] = []
        self._looked = -_AS_KNOWN_FOR

    def options(self, actor_id: str, asked: Asks) -> dict[str, Any]:
        """Ray's options for a process that asks for this."""
        word = str(dict(asked).get(PLACE, self.usual))
        needs = amounts(asked)
        named: dict[str, Any] = {name: needs.pop(name) for name in ("num_cpus", "num_gpus", "memory") if name in needs}
        options: dict[str, Any] = {"num_cpus": 0, **named}
        if custom := {**needs, **node_resource(word)}:
            options["resources"] = custom
        if named or custom:
            spread = word == Scheduling.SPREAD
            return {**options, "scheduling_strategy": "SPREAD" if spread else "DEFAULT"}
        node = choose(self.nodes(), word)
        if node is None:
            return {**options, "scheduling_strategy": "DEFAULT"}
        with self._lock:
            self._on[actor_id] = node.id
        return {**options, "scheduling_strategy": NodeAffinitySchedulingStrategy(node.id, soft=False)}

    def came(self, actor_id: str, node: str, free: float) -> None:
        """A process is there, and has measured ``free`` bytes (1)."""
        with self._lock:
            self._on[actor_id] = node
            self._measured[node] = _Measured(free, list(self._on.values()).count(node))

    def gone(self, actor_id: str) -> None:
        """It has ended, or never came."""
        with self._lock:
            self._on.pop(actor_id, None)

    def failed(self, actor_id: str) -> None:
        """It could not be created, or has died: what is known of the nodes may be no longer so (2)."""
        self.gone(actor_id)
        self._looked = -_AS_KNOWN_FOR

    def nodes(self) -> list[Node]:
        """The live nodes, with our processes and the room that is left."""
        now = time.monotonic()
        if now - self._looked >= _AS_KNOWN_FOR:
            self._nodes, self._looked = live_nodes(), now
        with self._lock:
            there = Counter(self._on.values())
            return [self._with_ours(node, there[node.id]) for node in self._nodes]

    def _with_ours(self, node: Node, ours: int) -> Node:
        room = node.room - ours * PROCESS_BYTES
        measured = self._measured.get(node.id)
        if measured is not None:
            room = min(room, measured.free - max(0, ours - measured.ours) * PROCESS_BYTES)
        return replace(node, room=room, ours=ours)

    def asks(self, asked: Asks) -> bool:
        """Whether there may be no node for this: the usual place may be one node, too."""
        return bool(_in_rays_words(asked, self.usual))

    def never(self, asked: Asks) -> dict[str, float] | None:
        """If no node can ever hold this: the most that one node has of each, by the names that it is asked by."""
        nodes = live_nodes()
        needs = _in_rays_words(asked, self.usual)
        return None if may_hold(needs, nodes) else _in_our_words(largest(needs, nodes))

    def total(self, asked: Asks) -> dict[str, float]:
        """What all nodes together have of what is asked for, by the same names."""
        return _in_our_words(_sum(_in_rays_words(asked, self.usual), live_nodes()))


def _in_rays_words(asked: Asks, usual: str) -> dict[str, float]:
    needs = {_WORDS.get(name, name): amount for name, amount in amounts(asked).items()}
    return {**needs, **node_resource(str(dict(asked).get(PLACE, usual)))}


def _in_our_words(found: Mapping[str, float]) -> dict[str, float]:
    ours = {theirs: name for name, theirs in _WORDS.items()}
    return {ours.get(name, name): amount for name, amount in found.items()}


def _sum(names: Iterable[str], nodes: Iterable[Node]) -> dict[str, float]:
    there = list(nodes)
    return {name: sum(node.total.get(name, 0.0) for node in there) for name in names}
