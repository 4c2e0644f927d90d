"""From filters to SQL: ``{"root": "agent:main:main", "state": ["queued", "running"]}`` as a WHERE clause."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from openclaw_ray.core.protocol.journal import COLUMNS
from openclaw_ray.store._schema import INTEGER_KEYED

__all__ = ["count_query", "select_query"]


def _where(table: str, where: Mapping[str, Any]) -> tuple[str, list[Any]]:
    clauses: list[str] = []
    bound: list[Any] = []
    for name, wanted in where.items():
        if name not in COLUMNS[table]:
            known = ", ".join(COLUMNS[table]) or "nothing"
            raise ValueError(f"{table} cannot be filtered by {name!r}; by: {known}")
        if not isinstance(wanted, (list, tuple, set, frozenset)):
            clauses.append(f"{name} IS ?")  # IS, so that None finds the records without a value
            bound.append(wanted)
            continue
        some = [value for value in wanted if value is not None]
        marks = ", ".join("?" * len(some))
        clauses.append(
            f"({name} IN ({marks}) OR {name} IS NULL)" if len(some) < len(wanted) else f"{name} IN ({marks})"
        )
        bound += some
    return (" WHERE " + " AND ".join(clauses) if clauses else ""), bound


def select_query(
    table: str, where: Mapping[str, Any], *, limit: int, offset: int, newest_first: bool
) -> tuple[str, list[Any]]:
    """SQL and values for the data of the records that ``where`` describes, by order of first write.

    Raises:
        ValueError: a name in ``where`` is not among the table's columns.
    """
    clause, bound = _where(table, where)
    order = "key" if table in INTEGER_KEYED else "id"
    way = " DESC" if newest_first else ""
    return f"SELECT data FROM {table}{clause} ORDER BY {order}{way} LIMIT ? OFFSET ?", [*bound, limit, offset]


def count_query(table: str, where: Mapping[str, Any]) -> tuple[str, list[Any]]:
    """SQL and values for the number of records that ``where`` describes.

    Raises:
        ValueError: a name in ``where`` is not among the table's columns.
    """
    clause, bound = _where(table, where)
    return f"SELECT count(*) FROM {table}{clause}", bound
