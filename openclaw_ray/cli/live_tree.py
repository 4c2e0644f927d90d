"""The live session tree on standard error: drawn on a terminal, elsewhere a line now and then."""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections.abc import Callable, Collection, Iterator
from typing import TYPE_CHECKING, TextIO

from openclaw_ray.cli.output import printable
from openclaw_ray.cli.tree import Branch, SessionTree
from openclaw_ray.core.events import Event

if TYPE_CHECKING:
    from rich.live import Live
    from rich.text import Text

__all__ = ["TreeLines", "TreeView", "show_tree"]

LINE_EVERY = 5.0
"""Seconds between two lines where there is no terminal."""
LATE = 0.5
"""Seconds that the last events may be behind the result."""
MOST_LINES = 200
"""Branches that have a line of their own when they end, where there is no terminal; then only counts are told."""
MOST_ROWS = 24
"""Rows drawn at once; ended sessions make room for those at work."""


class TreeLines:
    """Keeps the tree; a line for each branch that ends, and one for all every `LINE_EVERY` seconds.

    Args:
        fold: agents whose sessions are counted, not shown.
        stream: where lines go; `None` says nothing.
        clock: seconds.
    """

    def __init__(
        self,
        fold: Collection[str],
        stream: TextIO | None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.tree = SessionTree(fold)
        self._stream = stream
        self._clock = clock
        self._told = clock()
        self._lines = 0
        self._lock = threading.Lock()
        self._none_open = threading.Event()

    def follow(self, events: Iterator[Event]) -> None:
        """Take in events until there are no more; whatever ends them ends only the view."""
        with contextlib.suppress(Exception):
            for event in events:
                self.take(event)

    def take(self, event: Event) -> None:
        """Take in one event."""
        with self._lock:
            before = self.tree.branches.get(event.session_key or "")
            had_ended = before is not None and before.ended
            self.tree.apply(event)
            branch = self.tree.branches.get(event.session_key or "")
            line = None
            if branch is not None and branch.ended and not had_ended and self._lines < MOST_LINES:
                self._lines += 1
                line = describe(branch)
            if line is None and self._clock() - self._told >= LINE_EVERY:
                counts = self.tree.counts()
                line = f"{counts['done']} done, {counts['running']} running, {counts['queued']} queued"
            if all(branch.ended for branch in self.tree.branches.values()):
                self._none_open.set()
            else:
                self._none_open.clear()
        if line is not None:
            self._told = self._clock()
            self.line(line)

    def line(self, text: str) -> None:
        """Write one line, if there is where to."""
        if self._stream is not None:
            print(text, file=self._stream, flush=True)

    def note(self, text: str) -> None:
        """Say something that must be said."""
        print(text, file=self._stream or sys.stderr, flush=True)

    def wait_for_ends(self, within: float) -> None:
        """Wait a moment for the events of what has just ended: they come by another way than its result."""
        self._none_open.wait(within)

    def close(self) -> None:
        """Nothing more is shown."""


class TreeView(TreeLines):
    """Draws the tree with rich, four times a second."""

    def __init__(self, fold: Collection[str], stream: TextIO) -> None:
        from rich.console import Console
        from rich.live import Live

        super().__init__(fold, stream)
        self._live: Live = Live(
            console=Console(file=stream),
            get_renderable=self.draw,
            refresh_per_second=4,
            transient=True,
            redirect_stdout=False,
        )
        self._live.start()

    def draw(self) -> Text:
        """The tree as it is now."""
        from rich.text import Text

        with self._lock:
            rows = list(self.tree.walk())
            counts = self.tree.counts()
            active = [row for row in rows if not row[1].ended]
            shown = active if len(rows) > MOST_ROWS else rows
            lines = [f"{'  ' * level}{describe(branch)}" for level, branch in shown[:MOST_ROWS]]
        if hidden := len(rows) - len(lines):
            lines.append(f"… and {hidden} more")
        lines.append(f"{counts['done']} done, {counts['running']} running, {counts['queued']} queued")
        return Text("\n".join(lines), no_wrap=True, overflow="ellipsis")

    def line(self, text: str) -> None:
        """Nothing: the drawing shows it."""

    def note(self, text: str) -> None:
        """A line above the drawing."""
        self._live.console.print(text, markup=False, highlight=False)

    def close(self) -> None:
        """Take the drawing away."""
        self._live.stop()


@contextlib.contextmanager
def show_tree(events: Iterator[Event], fold: Collection[str], *, wanted: bool = True) -> Iterator[TreeLines]:
    """Follow ``events`` in a thread and show the tree until the context ends."""
    stream = sys.stderr
    view = TreeView(fold, stream) if wanted and stream.isatty() else TreeLines(fold, stream if wanted else None)
    threading.Thread(target=view.follow, args=(events,), name="events", daemon=True).start()
    try:
        yield view
        view.wait_for_ends(LATE)
    finally:
        view.close()


def describe(branch: Branch) -> str:
    """One branch in a line: who, where it stands, and what is below it."""
    name = branch.agent_id or branch.key
    who = printable(" ".join(part for part in (name, branch.text if branch.text != name else "") if part))
    below = [
        f"{count} {word}"
        for word, count in (("queued", branch.queued), ("running", branch.running), ("failed", branch.failed))
        if count
    ]
    if branch.done or below:
        below.insert(0, f"{branch.done} of {branch.total} done" if branch.total else f"{branch.done} done")
    state = branch.state.value if branch.state else "queued"
    return f"{who}: {state}" + (f" ({', '.join(below)})" if below else "")
