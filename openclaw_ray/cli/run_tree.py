"""The tree of one question as nested JSON, made of the registry's rows of its runs. Pure."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

__all__ = ["nested_tree", "rows_since"]

Row = Mapping[str, Any]


def rows_since(rows: Iterable[Row], run_id: str) -> Iterator[Row]:
    """Of ``rows``, newest first, those up to the run ``run_id``: nothing that it started is older than itself."""
    for row in rows:
        yield row
        if row["runId"] == run_id:
            return


def nested_tree(rows: Iterable[Row], run_id: str) -> dict[str, object] | None:
    """The run ``run_id`` and what hangs below its session, each with its ``children`` in the order of their birth.

    Args:
        rows: rows of runs, newest first.
        run_id: the run at the top.

    Returns:
        ``sessionKey``, ``agentId``, ``label``, ``state``, ``runtimeMs``, ``error``, ``children``; `None` if the run
        is not among the rows.
    """
    nodes: list[tuple[Row, dict[str, object]]] = [(row, _node(row)) for row in rows]
    nodes.reverse()
    by_requester: dict[str, list[dict[str, object]]] = {}
    top: dict[str, object] | None = None
    for row, node in nodes:
        if row["runId"] == run_id:
            top = node
        else:
            by_requester.setdefault(str(row.get("requesterKey")), []).append(node)
    waiting = deque([] if top is None else [top])
    while waiting:
        node = waiting.popleft()
        # taken out, so that a session with several runs does not show its children under each of them
        children = by_requester.pop(str(node["sessionKey"]), [])
        node["children"] = children
        waiting.extend(children)
    return top


def _node(row: Row) -> dict[str, object]:
    return {
        "sessionKey": row["sessionKey"],
        "agentId": row["agentId"],
        "label": row.get("label"),
        "state": row["state"],
        "runtimeMs": row.get("runtimeMs"),
        "error": row.get("error"),
        "children": [],
    }
