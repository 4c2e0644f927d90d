"""The rules of `doctor` for clusters of several nodes: what is to be equal on all of them, and enough on each. Pure."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from openclaw_ray.cli.doctor_facts import Facts, Node
from openclaw_ray.cli.doctor_verdict import FILES_BASE, FILES_PER_SESSION, Check, Verdict, size

__all__ = ["check_nodes"]

CLOCKS_APART = 1.0
"""Seconds between two clocks that are told of."""
MEMORY_LEAST = 0.05
"""The part of a node's memory under which Ray's monitor begins to end workers (``RAY_memory_usage_threshold`` 0.95)."""
FILES_GOOD = 65_535
_SHOWN = 4


def check_nodes(facts: Facts) -> Iterator[Check]:
    """Findings about the nodes; none where there is one node, or none was asked."""
    nodes = facts.cluster.per_node if facts.cluster is not None else ()
    if len(nodes) < 2:
        return
    answered = [node for node in nodes if not node.error]
    if len(answered) < len(nodes):
        silent = [node for node in nodes if node.error]
        remedy = "look at `ray status` and at that node's raylet.err; no session can run there as it is"
        yield Check("nodes", Verdict.WARN, f"no answer: {_each(silent, lambda node: node.error)}", remedy)
    else:
        yield Check("nodes", Verdict.OK, f"{len(nodes)} answered")
    if not answered:
        return
    yield _versions(answered)
    yield _package(answered)
    yield _clocks(answered)
    yield _files(answered, facts.pool_max)
    yield _memory(answered, facts)


def _versions(nodes: Sequence[Node]) -> Check:
    name = "node versions"
    usual, odd = _odd(nodes, lambda node: f"Ray {node.ray} on Python {node.python}")
    if not odd:
        return Check(name, Verdict.OK, f"{usual} on all")
    detail = f"{usual} on most, but {_each(odd, lambda node: f'Ray {node.ray} on Python {node.python}')}"
    return Check(name, Verdict.FAIL, detail, f"have one environment on all nodes: {usual}")


def _package(nodes: Sequence[Node]) -> Check:
    name = "node packages"
    usual, odd = _odd(nodes, lambda node: node.package or "none")
    if not odd and usual != "none":
        return Check(name, Verdict.OK, f"openclaw_ray {usual} on all")
    if not odd:
        detail = "openclaw_ray is installed on no node"
    else:
        detail = f"openclaw_ray {usual} on most, but {_each(odd, lambda node: node.package or 'none')}"
    remedy = "pip install one version of openclaw_ray on every node, or bring it with runtime_env={'py_modules': …}"
    return Check(name, Verdict.WARN, detail, remedy)


def _clocks(nodes: Sequence[Node]) -> Check:
    name = "node clocks"
    early, late = min(nodes, key=lambda node: node.ahead), max(nodes, key=lambda node: node.ahead)
    unsure = early.unsure + late.unsure
    apart = late.ahead - early.ahead
    detail = f"{apart:.2f} s apart at most (± {unsure:.2f} s)"
    if apart - unsure <= CLOCKS_APART:
        return Check(name, Verdict.OK, detail)
    detail += f": {late.name} is ahead of {early.name}"
    remedy = "run chrony or ntpd on all nodes: times in logs and rows are those of a node"
    return Check(name, Verdict.WARN, detail, remedy)


def _files(nodes: Sequence[Node], pool_max: int | None) -> Check:
    name = "node open files"
    need = FILES_BASE + FILES_PER_SESSION * math.ceil((pool_max or 0) / len(nodes))
    few = [node for node in nodes if node.open_files is not None and node.open_files < need]
    if not few:
        return Check(name, Verdict.OK, f"the limits of all nodes are {need} or more")
    detail = f"about {need} are needed on each node, and the hard limit is {_each(few, lambda n: str(n.open_files))}"
    return Check(name, Verdict.WARN, detail, f"ulimit -n {max(FILES_GOOD, need)} before `ray start` there")


def _memory(nodes: Sequence[Node], facts: Facts) -> Check:
    name = "node memory"
    full = [node for node in nodes if node.memory_available < MEMORY_LEAST * node.memory_total]
    if full:
        detail = f"available: {_each(full, lambda n: f'{size(n.memory_available)} of {size(n.memory_total)}')}"
        remedy = "free memory there: Ray ends workers on a node that is fuller than 95 %"
        return Check(name, Verdict.WARN, detail, remedy)
    total = sum(node.memory_available for node in nodes)
    detail = f"{size(total)} available on {len(nodes)} nodes"
    need = (facts.pool_max or 0) * facts.session_bytes
    if facts.pool_max_set and need > total:
        detail += f"; ray.pool.max {facts.pool_max} needs {size(need)}"
        return Check(name, Verdict.WARN, detail, f"set ray.pool.max to {total // max(1, facts.session_bytes)} or less")
    return Check(name, Verdict.OK, detail)


def _odd(nodes: Sequence[Node], of: Callable[[Node], str]) -> tuple[str, list[Node]]:
    """What most nodes have, and those that have something else."""
    [(usual, _)] = Counter(of(node) for node in nodes).most_common(1)
    return usual, [node for node in nodes if of(node) != usual]


def _each(nodes: Sequence[Node], of: Callable[[Node], str]) -> str:
    shown = ", ".join(f"{of(node)} on {node.name}" for node in nodes[:_SHOWN])
    return shown + (f" (+{len(nodes) - _SHOWN})" if len(nodes) > _SHOWN else "")
