"""``openclaw-ray demo``: a real job on real input, as a tree of three levels."""

from __future__ import annotations

import contextlib
import json
import math
import os
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, cast

import click

from openclaw_ray.cli.exits import FAILED, OK, CommandError, OutputClosed
from openclaw_ray.cli.interrupt import Interrupt
from openclaw_ray.cli.live_tree import show_tree
from openclaw_ray.cli.opening import LiveRuntime, Place, open_runtime, place_options

if TYPE_CHECKING:
    from openclaw_ray.agents.builtin.survey.combine import Report

__all__ = ["RuntimeFigures", "demo", "runtime_figures", "spread"]

_CONFIG: dict[str, object] = {
    # by default an agent may only spawn its own kind; here main spawns surveyors, and they readers. The other
    # two are as wide as they can be: the width of the maps is what bounds this job
    "agents": {"defaults": {"subagents": {"allowAgents": ["*"], "maxChildrenPerAgent": 20, "maxConcurrent": 20}}},
}
_LOOK_EVERY = 2.0
"""Seconds between two looks at the memory of all processes, which cost some."""


@dataclass(frozen=True, slots=True)
class RuntimeFigures:
    """What the job cost.

    Attributes:
        sessions: sessions started, warm and cold activations together.
        warm, cold: activations that found a warm actor, and those that had to wait for a new one.
        peak_memory: bytes, of all session processes together.
        wall: seconds of the job; ``start`` those of starting the runtime, which are not in it.
    """

    sessions: int
    warm: int
    cold: int
    peak_memory: int
    wall: float
    start: float

    def to_json(self) -> dict[str, object]:
        """JSON form."""
        return {
            "sessions": self.sessions,
            "sessionsPerSecond": round(self.rate, 1),
            "warmActivations": self.warm,
            "coldActivations": self.cold,
            "wallSeconds": round(self.wall, 3),
            "startSeconds": round(self.start, 3),
            "peakMemoryBytes": self.peak_memory,
        }

    @property
    def rate(self) -> float:
        """Sessions a second."""
        return self.sessions / self.wall if self.wall > 0 else 0.0


@click.command(short_help="Survey a folder with a session for each file.")
@click.argument("path", required=False, type=click.Path(exists=True, file_okay=False))
@click.option("--json", "as_json", is_flag=True, help="The report as one JSON object.")
@click.option("--width", metavar="N", type=click.IntRange(min=1), help="Files read at once.  [default: 2 for each CPU]")
@click.option("--no-progress", is_flag=True, help="Nothing on standard error but errors and notes.")
@place_options
def demo(path: str | None, as_json: bool, width: int | None, no_progress: bool, **place: str | None) -> int:
    """Survey the folder PATH (this package's own code if not given): one session for each file.

    main starts an orchestrator for each top folder, each of them a worker session for each file. Workers
    count lines, words, functions and classes, headings, TODO marks and hash the file; orchestrators combine,
    main reports. Files that are binary or cannot be read are findings. Symbolic links, hidden folders and
    __pycache__ are passed over.

    \b
    Exit status: 0 all read, 1 a session failed, 2 usage or configuration,
                 130 interrupted, 141 the reader of the output went away.
    """
    from openclaw_ray.agents.builtin.survey.agents import SURVEY_AGENTS, Survey

    root = Path(path).resolve() if path is not None else Path(__file__).resolve().parent.parent
    folders, files = spread(width or 2 * len(os.sched_getaffinity(0)))
    job: Survey = {"root": os.fspath(root), "folders_at_once": folders, "files_at_once": files}
    with Interrupt() as interrupt:
        began = time.monotonic()
        with open_runtime(SURVEY_AGENTS, Place(**place), interrupt, config=_CONFIG) as runtime:
            started = time.monotonic()
            with (
                show_tree(runtime.events(), fold=("reader",), wanted=not no_progress) as view,
                _watched_memory(runtime),
            ):
                interrupt.note = view.note
                result = runtime.map("main", [job])[0]
            wall = time.monotonic() - started
            if interrupt.exit_code is not None:
                return interrupt.exit_code
            if not result.ok or result.value is None:
                reason = result.error.message if result.error else "no value came back"
                raise CommandError(f"the survey of {root} ended with {result.status.value}: {reason}", FAILED)
            report = cast("Report", result.value)
            figures = runtime_figures(runtime.stats(), wall=wall, start=started - began)
    _show(report, figures, root, as_json=as_json)
    return FAILED if any(finding["kind"] == "session" for finding in report["findings"]) else OK


def spread(width: int) -> tuple[int, int]:
    """How many folders at once, and how many files of each, make about ``width`` files at once."""
    folders = math.isqrt(width)
    return folders, math.ceil(width / folders)


@contextlib.contextmanager
def _watched_memory(runtime: LiveRuntime) -> Iterator[None]:
    """The peak that ``stats`` tells is the most that it has seen: let it look now and then."""
    over = threading.Event()

    def look() -> None:
        with contextlib.suppress(Exception):
            while not over.wait(_LOOK_EVERY):
                runtime.stats()

    looking = threading.Thread(target=look, name="memory", daemon=True)
    looking.start()
    try:
        yield
    finally:
        over.set()
        looking.join(_LOOK_EVERY)


def runtime_figures(stats: object, *, wall: float, start: float) -> RuntimeFigures:
    """Figures out of ``rt.stats()``; what it does not tell counts as 0."""

    def figure(name: str) -> int:
        return int(getattr(stats, name, 0) or 0)

    return RuntimeFigures(
        sessions=figure("sessions_started"),
        warm=figure("warm_activations"),
        cold=figure("cold_activations"),
        peak_memory=figure("peak_memory_bytes"),
        wall=wall,
        start=start,
    )


def _show(report: Report, figures: RuntimeFigures, root: Path, *, as_json: bool) -> None:
    try:
        if as_json:
            whole = {**report, "runtime": figures.to_json()}
            text = json.dumps(whole, indent=2, ensure_ascii=False)
            sys.stdout.buffer.write(text.encode("utf-8", "backslashreplace") + b"\n")
            sys.stdout.buffer.flush()
        else:
            from openclaw_ray.cli.demo_report import print_report

            print_report(report, figures, root)
            sys.stdout.flush()
    except BrokenPipeError:
        raise OutputClosed from None
