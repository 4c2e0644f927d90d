"""Plots of results, as PNG images. Needs matplotlib: ``pip install 'openclaw_ray[plots]'``; imported when one is drawn.

Each plot is drawn from one curve of one result (`openclaw_ray.bench.result.Measured.curves`).
"""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from openclaw_ray.bench.knee import Point, knee

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["Plot", "draw_all", "plots_of"]

_BLUE, _ORANGE, _GREEN, _GREY = "#1f5fa8", "#c8641e", "#2d7d46", "#666666"
_SIZE = (8.0, 4.2)
_DPI = 130


@dataclass(frozen=True, slots=True)
class Plot:
    """One plot to draw: of which benchmark, its title, what it shows, and from what."""

    benchmark: str
    curve: str
    title: str
    caption: str
    rows: tuple[dict[str, Any], ...]

    @property
    def name(self) -> str:
        """Unique within a report."""
        return f"{self.benchmark}-{self.curve}"


_KNOWN: Mapping[str, tuple[str, str]] = {
    "concurrency": (
        "Throughput and latency against concurrency",
        "Bars are the range of rounds. The knee is the lowest concurrency whose throughput counts as the best. "
        "Latency is of one session from its start to its end; waiting for a place is not in it.",
    ),
    "stop": ("Time to stop a tree against its size", "Medians, with whiskers up to p99. Both axes are logarithmic."),
    "memory": ("Registry memory against sessions", "Private memory of the registry's process."),
    "registry": (
        "Cost of the registry against rows in its journal",
        "CPU time without Ray. Flat lines mean that the cost does not depend on what was recorded before.",
    ),
    "depth": ("Time of a chain of sessions against its depth", "The slope is what one more level costs."),
}


def plots_of(results: Sequence[Mapping[str, Any]]) -> list[Plot]:
    """The plots that these results have curves for."""
    found = []
    for result in results:
        for curve, rows in result.get("curves", {}).items():
            if curve in _KNOWN and rows:
                found.append(Plot(str(result["benchmark"]), curve, *_KNOWN[curve], tuple(rows)))
    return found


def draw_all(plots: Sequence[Plot]) -> dict[str, bytes]:
    """A PNG for each plot, by its name.

    Raises:
        ModuleNotFoundError: matplotlib is not installed.
    """
    return {plot.name: _draw(plot) for plot in plots}


def _draw(plot: Plot) -> bytes:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=_SIZE, layout="constrained")
    FigureCanvasAgg(figure)
    _DRAWN[plot.curve](figure, plot.rows)
    for axes in figure.axes:
        axes.grid(visible=True, color="#dddddd", linewidth=0.6)
        axes.set_axisbelow(True)
        for side in ("top", "right"):
            axes.spines[side].set_visible(False)
    out = io.BytesIO()
    figure.savefig(out, format="png", dpi=_DPI, metadata={"Software": ""})
    return out.getvalue()


def _concurrency(figure: Figure, rows: Sequence[dict[str, Any]]) -> None:
    points = [Point.from_json(row) for row in rows]
    found = knee(points)
    at = [point.concurrency for point in points]
    rate, latency = figure.subplots(1, 2)
    middle = [point.throughput for point in points]
    reach = [[m - min(p.rates) for m, p in zip(middle, points, strict=True)],
             [max(p.rates) - m for m, p in zip(middle, points, strict=True)]]
    rate.errorbar(at, middle, yerr=reach, marker="o", color=_BLUE, capsize=3)
    rate.set_ylabel("sessions per second")
    _from_zero(rate, [rate for point in points for rate in point.rates])
    latency.plot(at, [point.p50_ms for point in points], marker="o", color=_BLUE, label="p50")
    latency.plot(at, [point.p99_ms for point in points], marker="s", color=_ORANGE, label="p99")
    latency.set_ylabel("milliseconds per session")
    _from_zero(latency, [point.p99_ms for point in points])
    words = f"knee: {found.point.concurrency}" + ("" if found.falls else " (still rising)")
    for axes in (rate, latency):
        axes.axvline(found.point.concurrency, color=_GREEN, linestyle="--", label=words)
        axes.set_xscale("log", base=2)
        axes.set_xticks(at, [str(each) for each in at])
        axes.set_xlabel("sessions at once")
    rate.legend(frameon=False)
    latency.legend(frameon=False)


def _stop(figure: Figure, rows: Sequence[dict[str, Any]]) -> None:
    axes = figure.subplots()
    for kind, colour, marker in (("cooperative", _BLUE, "o"), ("deaf", _ORANGE, "s")):
        points = sorted((row for row in rows if row["kind"] == kind), key=lambda row: row["sessions"])
        sizes = [row["sessions"] for row in points]
        middle = [row["p50_ms"] for row in points]
        reach = [[0.0] * len(points), [max(0.0, row["p99_ms"] - row["p50_ms"]) for row in points]]
        # trees of other shapes and the same size are no line
        line = "-" if len(set(sizes)) == len(sizes) else ""
        label = "all cooperative" if kind == "cooperative" else "with a deaf session (grace included)"
        axes.errorbar(
            sizes, middle, yerr=reach, marker=marker, color=colour, capsize=3, linestyle=line, label=label
        )
        for row in points if kind == "cooperative" else ():
            shape = f"{row['depth']} deep, {row['fan']} wide"
            place = (row["sessions"], row["p50_ms"])
            axes.annotate(shape, place, (6, -12), textcoords="offset points", color=_GREY, fontsize=8)
    sizes = sorted({row["sessions"] for row in rows})
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlim(sizes[0] * 0.85, sizes[-1] * 1.6)
    axes.set_ylim(bottom=min(row["p50_ms"] for row in rows) * 0.6)
    axes.set_xticks(sizes, [str(each) for each in sizes])
    axes.minorticks_off()
    _plain_numbers(axes)
    axes.set_xlabel("sessions in the tree")
    axes.set_ylabel("milliseconds to the report")
    axes.legend(frameon=False)


def _memory(figure: Figure, rows: Sequence[dict[str, Any]]) -> None:
    axes = figure.subplots()
    for kind, colour, marker in (("passive", _BLUE, "o"), ("ended", _ORANGE, "s")):
        points = sorted((row for row in rows if row["kind"] == kind), key=lambda row: row["sessions"])
        if points:
            axes.plot([row["sessions"] for row in points], [row["registry_mb"] for row in points], marker=marker,
                      color=colour, label=f"{kind} sessions")
    _from_zero(axes, [row["registry_mb"] for row in rows])
    axes.set_xlim(left=0)
    axes.set_xlabel("sessions")
    axes.set_ylabel("MB, registry")
    axes.legend(frameon=False, loc="lower right")


def _registry(figure: Figure, rows: Sequence[dict[str, Any]]) -> None:
    axes = figure.subplots()
    at = [row["rows"] for row in rows]
    for name, label, colour, marker in (
        ("session_cpu_ms", "a whole session", _BLUE, "o"),
        ("step_p99_ms", "a step, p99", _ORANGE, "s"),
        ("step_p50_ms", "a step, p50", _GREY, "^"),
    ):
        axes.plot(at, [row[name] for row in rows], marker=marker, color=colour, label=label)
    axes.set_xscale("log")
    _from_zero(axes, [row[name] for row in rows for name in ("session_cpu_ms", "step_p99_ms")])
    axes.set_xlabel("sessions recorded before")
    axes.set_ylabel("CPU milliseconds")
    axes.legend(frameon=False)


def _depth(figure: Figure, rows: Sequence[dict[str, Any]]) -> None:
    axes = figure.subplots()
    axes.plot([row["depth"] for row in rows], [row["p50_ms"] for row in rows], marker="o", color=_BLUE)
    axes.set_xticks([row["depth"] for row in rows])
    _from_zero(axes, [row["p50_ms"] for row in rows])
    axes.set_xlim(left=0)
    axes.set_xlabel("sessions in the chain")
    axes.set_ylabel("milliseconds, p50")


def _from_zero(axes: Axes, values: Sequence[float]) -> None:
    """From 0 to a little above the most, so that nothing looks larger than it is or touches the edge."""
    axes.set_ylim(0, max(values) * 1.12 or 1.0)


def _plain_numbers(axes: Axes) -> None:
    """300 in place of 3×10²."""
    from matplotlib.ticker import FuncFormatter, LogLocator

    axes.yaxis.set_major_locator(LogLocator(base=10, subs=(1, 2, 5)))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))


_DRAWN: Mapping[str, Callable[[Figure, Sequence[dict[str, Any]]], None]] = {
    "concurrency": _concurrency,
    "stop": _stop,
    "memory": _memory,
    "registry": _registry,
    "depth": _depth,
}
