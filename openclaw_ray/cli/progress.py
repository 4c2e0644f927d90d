"""How far a command is, on standard error: a bar on a terminal, elsewhere a line now and then."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Protocol, TextIO

from openclaw_ray.cli.output import data_stream

if TYPE_CHECKING:
    from rich.progress import Progress as RichProgress

__all__ = ["BarProgress", "LineProgress", "NoProgress", "Progress", "open_progress"]

LINE_EVERY = 5.0
"""Seconds between two lines where there is no terminal."""


class Progress(Protocol):
    """What a command tells while it works through its items."""

    def advance(self, *, ok: bool, stopped: bool = False) -> None:
        """One more item has an outcome; without ``ok`` it failed, or was stopped."""

    def set_total(self, total: int) -> None:
        """It is known how many there are."""

    def note(self, text: str) -> None:
        """Say something now; may be called from any thread."""

    def close(self) -> None:
        """No more items; say how many there were."""


class NoProgress:
    """Says only what must be said."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def advance(self, *, ok: bool, stopped: bool = False) -> None:
        """Nothing."""

    def set_total(self, total: int) -> None:
        """Nothing."""

    def note(self, text: str) -> None:
        """Say it."""
        print(text, file=self._stream, flush=True)

    def close(self) -> None:
        """Nothing."""


class LineProgress:
    """One plain line every `LINE_EVERY` seconds in which something happened, and one at the end."""

    def __init__(self, label: str, stream: TextIO, clock: Callable[[], float] = time.monotonic) -> None:
        self._label = label
        self._stream = stream
        self._clock = clock
        self._total: int | None = None
        self._ok = self._failed = self._stopped = 0
        self._started = self._told = clock()

    def advance(self, *, ok: bool, stopped: bool = False) -> None:
        """Count it; a line if the last one is long enough ago."""
        self._count(ok, stopped)
        if self._clock() - self._told >= LINE_EVERY:
            self._told = self._clock()
            self.note(self._line())

    def set_total(self, total: int) -> None:
        """Keep it for the next line."""
        self._total = total

    def note(self, text: str) -> None:
        """A line of its own."""
        print(text, file=self._stream, flush=True)

    def close(self) -> None:
        """The last line."""
        self.note(self._line())

    def _count(self, ok: bool, stopped: bool) -> None:
        if ok:
            self._ok += 1
        elif stopped:
            self._stopped += 1
        else:
            self._failed += 1

    def _not_ok(self) -> str:
        counts = ((self._failed, "failed"), (self._stopped, "stopped"))
        return ", ".join(f"{count} {word}" for count, word in counts if count)

    def _line(self) -> str:
        done = self._ok + self._failed  # what was stopped is not done
        seconds = self._clock() - self._started
        of_total = "" if self._total is None else f" of {self._total}"
        failed = self._not_ok()
        failed = f", {failed}" if failed else ""
        rate = f", {done / seconds:.0f}/s" if seconds > 0 else ""
        return f"{self._label}: {done}{of_total} done{failed} in {seconds:.1f} s{rate}"


class BarProgress(LineProgress):
    """A rich progress bar; it leaves the summary line behind."""

    def __init__(self, label: str, stream: TextIO) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

        super().__init__(label, stream)
        self._bar: RichProgress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[failed]}", style="red"),
            TimeElapsedColumn(),
            console=Console(file=stream),
            transient=True,
            redirect_stdout=False,
        )
        self._task = self._bar.add_task(label, total=None, failed="")
        self._bar.start()

    def advance(self, *, ok: bool, stopped: bool = False) -> None:
        """Move the bar."""
        self._count(ok, stopped)
        if not ok:
            self._bar.update(self._task, failed=self._not_ok())
        self._bar.advance(self._task)

    def set_total(self, total: int) -> None:
        """The bar gets its end."""
        super().set_total(total)
        self._bar.update(self._task, total=total)

    def note(self, text: str) -> None:
        """A line above the bar."""
        self._bar.console.print(text, markup=False, highlight=False)

    def close(self) -> None:
        """Take the bar away; the last line."""
        self._bar.stop()
        super().close()


@contextlib.contextmanager
def open_progress(label: str, *, wanted: bool = True) -> Iterator[Progress]:
    """The right progress for where standard error goes; closed with the context.

    No bar is drawn where rows of output go to a terminal as well: they show the progress themselves.
    """
    stream = sys.stderr
    progress: Progress
    if not wanted:
        progress = NoProgress(stream)
    elif stream.isatty() and not data_stream().isatty():
        progress = BarProgress(label, stream)
    else:
        progress = LineProgress(label, stream)
    try:
        yield progress
    finally:
        progress.close()
