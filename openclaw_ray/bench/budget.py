"""The performance budget (DESIGN.md 14): each line with its bounds, and how a run of the suite stands to it. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

__all__ = ["LINES", "BudgetLine", "Column", "Standing", "Verdict", "budget_of", "missed"]


class Column(StrEnum):
    """Which bounds count."""

    FIRST = "first"
    """Those of the first whole path."""
    FINAL = "final"
    """Those with the limits measured."""


class Verdict(StrEnum):
    """How a line stands."""

    PASS = "pass"
    """Measured, and within its bound."""
    FAIL = "fail"
    """Measured, and not."""
    NOT_MEASURED = "not measured"
    """Nothing in this run measures it, or what would was skipped or failed."""


@dataclass(frozen=True, slots=True)
class BudgetLine:
    """One line.

    Attributes:
        name: key of its value in a result's ``budget``.
        what: what is measured, for people.
        word: ``<=`` or ``>=``.
        first, final: the bounds; `None` is no bound in that column.
        unit: of value and bound.
        benchmark: which benchmark measures it; empty if none does yet.
        per_grace: the bound is that much more than ``ray.stopGraceSeconds``.
    """

    name: str
    what: str
    word: str
    first: float | None
    final: float | None
    unit: str
    benchmark: str
    per_grace: bool = False

    def bound(self, column: Column, grace: float = 0.0) -> float | None:
        """Its bound in one column."""
        bound = self.first if column is Column.FIRST else self.final
        return bound if bound is None or not self.per_grace else bound + grace


LINES: tuple[BudgetLine, ...] = (
    BudgetLine("accepted_vs_bare_call", "warm spawn → accepted, p50, of a bare call", "<=", 3, 2, "x", "spawn_latency"),
    BudgetLine("result_vs_bare_call", "warm spawn → result, p50, of a bare call", "<=", 8, 4, "x", "spawn_latency"),
    BudgetLine("map_vs_actor_pool", "rt.map of ActorPool.map", ">=", 0.20, 0.50, "x", "fork_join"),
    BudgetLine("map_vs_tasks", "rt.map of Ray tasks", ">=", 0.20, 0.50, "x", "fork_join"),
    BudgetLine("turn_map_vs_actor_pool", "turn.map of ActorPool.map", ">=", 0.12, 0.50, "x", "fork_join"),
    BudgetLine("turn_map_vs_tasks", "turn.map of Ray tasks", ">=", 0.12, 0.50, "x", "fork_join"),
    BudgetLine("map_vs_langgraph", "rt.map of LangGraph's in-process Send", ">=", None, 0.70, "x", ""),
    BudgetLine("cost_per_session_growth", "cost per session at 10,000 of one at 100", "<=", 1.5, 1.2, "x", "fork_join"),
    BudgetLine("stop_cooperative_s", "stop of a 3×3×3 tree, cooperative", "<=", 1, 0.5, "s", "stop"),
    BudgetLine("stop_deaf_s", "the same with a deaf session", "<=", 2, 1, "s", "stop", per_grace=True),
    BudgetLine("idle_actor_extra_mb", "idle pool actor over a bare one, private", "<=", 12, 8, "MB", "memory"),
    BudgetLine("step_cpu_p99_ms", "registry step, CPU time p99", "<=", 5, 2, "ms", "fork_join"),
    BudgetLine("driver_killed_s", "driver SIGKILL → last session process gone", "<=", 2, 2, "s", "recovery"),
    BudgetLine("registry_back_s", "registry SIGKILL → service back", "<=", 5, 5, "s", "recovery"),
)


@dataclass(frozen=True, slots=True)
class Standing:
    """One line in one run: its value if it was measured, its bound, the verdict, and a note for people."""

    line: BudgetLine
    value: float | None
    bound: float | None
    verdict: Verdict
    note: str = ""

    def to_json(self) -> dict[str, Any]:
        """JSON form."""
        return {
            "name": self.line.name,
            "what": self.line.what,
            "value": self.value,
            "bound": None if self.bound is None else f"{self.line.word} {self.bound:g}",
            "unit": self.line.unit,
            "verdict": self.verdict.value,
            "note": self.note,
        }


def budget_of(results: Iterable[Mapping[str, Any]], column: Column = Column.FINAL) -> list[Standing]:
    """Every line of the budget, as the results of one run (their JSON form) stand to it.

    A result says what it has for the budget in ``budget`` (line name: value); a value that was measured with another
    size than the line asks for is to be left out there, and why said in ``budget_notes`` (line name: text).
    """
    by_name = {str(result.get("benchmark")): result for result in results}
    return [_standing(line, by_name.get(line.benchmark), column) for line in LINES]


def missed(standings: Iterable[Standing]) -> list[Standing]:
    """The lines that were measured and not met."""
    return [standing for standing in standings if standing.verdict is Verdict.FAIL]


def _standing(line: BudgetLine, result: Mapping[str, Any] | None, column: Column) -> Standing:
    grace = float((result or {}).get("config", {}).get("grace", 0.0))
    bound = line.bound(column, grace)
    if result is None:
        note = f"{line.benchmark} did not run" if line.benchmark else "no benchmark measures it yet"
        return Standing(line, None, bound, Verdict.NOT_MEASURED, note)
    value = result.get("budget", {}).get(line.name)
    if value is None:
        why = result.get("skipped") or result.get("failed") or result.get("budget_notes", {}).get(line.name)
        return Standing(line, None, bound, Verdict.NOT_MEASURED, str(why or "not in this configuration"))
    if bound is None:
        return Standing(line, value, None, Verdict.NOT_MEASURED, "no bound in this column")
    met = value <= bound if line.word == "<=" else value >= bound
    return Standing(line, value, bound, Verdict.PASS if met else Verdict.FAIL)
