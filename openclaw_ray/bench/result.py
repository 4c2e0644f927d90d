"""What one benchmark gives, and the document of a whole run: plain JSON both. Pure.

A document is ``{"quick", "seconds", "versions", "host", "results": [result, …], "budget": {"column", "lines"}}``, a
result what `Measured.to_json` gives, with the name of its benchmark, its configuration, and versions and host again, so
that it can be read alone.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from openclaw_ray.bench.figures import Figure, rounded

__all__ = ["Measured", "NotResults", "Skipped", "document", "read_document"]


class NotResults(ValueError):
    """A file does not have the results of a run; the text says which, why, and how to make one."""

    def __init__(self, path: str, why: str) -> None:
        super().__init__(
            f"{path} has no benchmark results: {why} (openclaw-ray bench --json > RESULTS.json makes them)"
        )


class Skipped(Exception):
    """A benchmark cannot run here; its text says why. Raised by a benchmark before it measures anything."""


@dataclass
class Measured:
    """What one benchmark has measured.

    Attributes:
        figures: by name.
        latency: percentiles in milliseconds, by what was timed.
        curves: points of plots, by the name of the plot.
        budget: values for lines of the performance budget; ``budget_notes`` why one is left out.
        facts: other counts worth keeping.
        notes: caveats of this run, for people.
        peak_memory_mb: most seen, of all session processes and the registry (PSS); `None` if there were none.
    """

    figures: dict[str, Figure] = field(default_factory=dict)
    latency: dict[str, dict[str, float]] = field(default_factory=dict)
    curves: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    budget: dict[str, float] = field(default_factory=dict)
    budget_notes: dict[str, str] = field(default_factory=dict)
    facts: dict[str, Any] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    peak_memory_mb: float | None = None

    def to_json(self) -> dict[str, Any]:
        """JSON form."""
        return {
            "figures": {name: figure.to_json() for name, figure in self.figures.items()},
            "latency": self.latency,
            "curves": self.curves,
            "budget": {name: rounded(value) for name, value in self.budget.items()},
            "budget_notes": self.budget_notes,
            "facts": self.facts,
            "notes": self.notes,
            "peak_memory_mb": None if self.peak_memory_mb is None else round(self.peak_memory_mb, 1),
        }


def document(
    results: Sequence[Mapping[str, Any]],
    *,
    quick: bool,
    seconds: float,
    facts: Mapping[str, Any],
    budget: Mapping[str, Any],
) -> dict[str, Any]:
    """The document of one run."""
    return {
        "quick": quick,
        "seconds": round(seconds, 1),
        **facts,
        "results": [dict(result) for result in results],
        "budget": dict(budget),
    }


def read_document(path: str | Path) -> dict[str, Any]:
    """The document of a run out of a file; that of one benchmark alone is read as a run of it.

    Raises:
        NotResults: the file cannot be read, or has something else.
    """
    try:
        data = json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise NotResults(str(path), error.strerror or str(error)) from None
    except ValueError as error:
        raise NotResults(str(path), f"it is no JSON: {error}") from None
    if isinstance(data, dict) and "benchmark" in data:
        data = {
            "quick": bool(data.get("quick")),
            "seconds": data.get("seconds", 0.0),
            "versions": data.get("versions", {}),
            "host": data.get("host", {}),
            "results": [data],
        }
    results = data.get("results") if isinstance(data, dict) else None
    if not isinstance(results, list) or not all(isinstance(r, dict) and "benchmark" in r for r in results):
        raise NotResults(str(path), "there is no list of results in it")
    return dict(data)
