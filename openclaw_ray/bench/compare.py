"""Two runs of the suite against each other: the ratio of each figure, and whether it is more than noise. Pure.

1. Figures are compared if both runs have them under the same benchmark and name.
2. Ranges that meet are ``noise``: the runs cannot be told apart by this figure. So are medians that differ by less than
   2 %, however narrow the ranges are.
3. Else it is ``better`` or ``worse``, by which way is better for that figure.
4. What makes a comparison doubtful is said besides: other hosts, other versions, another configuration, a busy machine.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from openclaw_ray.bench.figures import Better, Figure, rounded

__all__ = ["Comparison", "Difference", "Word", "compare", "is_busy"]

_NOTHING = 0.02
_BUSY = 0.5
"""Load for each CPU, before a run began, at which somebody else was at work."""


class Word(StrEnum):
    """What became of a figure."""

    BETTER = "better"
    """By more than noise."""
    WORSE = "worse"
    """By more than noise."""
    NOISE = "noise"
    """The two cannot be told apart."""


@dataclass(frozen=True, slots=True)
class Difference:
    """One figure of both runs. ``ratio`` is second over first; `None` where the first is 0."""

    benchmark: str
    name: str
    first: Figure
    second: Figure
    ratio: float | None
    word: Word

    def to_json(self) -> dict[str, Any]:
        """JSON form."""
        return {
            "benchmark": self.benchmark,
            "figure": self.name,
            "unit": self.first.unit,
            "a": self.first.to_json(),
            "b": self.second.to_json(),
            "ratio": None if self.ratio is None else rounded(self.ratio),
            "word": self.word.value,
        }


@dataclass(frozen=True, slots=True)
class Comparison:
    """All differences, in the order of the first run, and what makes them doubtful."""

    differences: tuple[Difference, ...]
    caveats: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """JSON form."""
        return {"differences": [each.to_json() for each in self.differences], "caveats": list(self.caveats)}


def compare(first: Mapping[str, Any], second: Mapping[str, Any]) -> Comparison:
    """Compare two documents (`openclaw_ray.bench.result`)."""
    ours = {str(result["benchmark"]): result for result in first["results"]}
    theirs = {str(result["benchmark"]): result for result in second["results"]}
    found: list[Difference] = []
    caveats = list(_caveats(first, second))
    for name, result in ours.items():
        if (other := theirs.get(name)) is None:
            caveats.append(f"{name}: only A has it")
            continue
        if result.get("config") != other.get("config"):
            caveats.append(f"{name}: configurations differ: {_changed(result, other)}")
        found.extend(_differences(name, result, other))
    caveats.extend(f"{name}: only B has it" for name in theirs if name not in ours)
    return Comparison(tuple(found), tuple(caveats))


def is_busy(document: Mapping[str, Any]) -> bool:
    """Whether somebody else was at work on the machine when a run began; its rates are then worth little."""
    host = document.get("host", {})
    load = (host.get("load_before") or [0.0])[0]
    return float(load) > _BUSY * float(host.get("cpus") or 1)


def _differences(name: str, first: Mapping[str, Any], second: Mapping[str, Any]) -> Iterator[Difference]:
    others = second.get("figures", {})
    for figure_name, data in first.get("figures", {}).items():
        if figure_name not in others:
            continue
        a, b = Figure.from_json(data), Figure.from_json(others[figure_name])
        yield Difference(name, figure_name, a, b, b.median / a.median if a.median else None, _word(a, b))


def _word(a: Figure, b: Figure) -> Word:
    if a.low <= b.high and b.low <= a.high:
        return Word.NOISE
    if abs(b.median - a.median) < _NOTHING * abs(a.median):
        return Word.NOISE
    return Word.BETTER if (b.median > a.median) is (a.better is Better.MORE) else Word.WORSE


def _caveats(first: Mapping[str, Any], second: Mapping[str, Any]) -> Iterator[str]:
    for fact in ("cpus", "memory_gib", "system"):
        a, b = first.get("host", {}).get(fact), second.get("host", {}).get(fact)
        if a != b:
            yield f"another host: {fact} {a} and {b}; only ratios within a run compare"
    for fact in sorted({*first.get("versions", {}), *second.get("versions", {})}):
        a, b = first.get("versions", {}).get(fact), second.get("versions", {}).get(fact)
        if a != b:
            yield f"another version of {fact}: {a} and {b}"
    for word, document in (("A", first), ("B", second)):
        if is_busy(document):
            yield f"{word} began on a busy machine (load {document['host']['load_before'][0]:g}): its rates mean little"
    if bool(first.get("quick")) != bool(second.get("quick")):
        yield "one run is quick, the other is not"


def _changed(first: Mapping[str, Any], second: Mapping[str, Any]) -> str:
    a, b = first.get("config", {}), second.get("config", {})
    changed = [f"{name} {a.get(name)} and {b.get(name)}" for name in sorted({*a, *b}) if a.get(name) != b.get(name)]
    return ", ".join(changed)
