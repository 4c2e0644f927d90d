"""The live tree and the progress lines."""

from __future__ import annotations

import io
import json
import os
from typing import Any

import pytest

from openclaw_ray.cli.exits import OutputClosed
from openclaw_ray.cli.live_tree import MOST_ROWS, TreeLines, TreeView, describe
from openclaw_ray.cli.output import JsonLines, printable
from openclaw_ray.cli.progress import BarProgress, LineProgress, NoProgress
from openclaw_ray.cli.tree import SessionTree
from openclaw_ray.core.events import Event


class Events:
    """Events of a tree, numbered as they are made."""

    def __init__(self) -> None:
        self.seq = 0

    def run(self, key: str, state: str, requester: str | None = None, agent: str = "inner", **more: Any) -> Event:
        self.seq += 1
        return Event(
            seq=self.seq,
            at=0.0,
            kind="run",
            session_key=key,
            run_id=f"run:{key}",
            agent_id=agent,
            requester_key=requester,
            state=state,
            **more,
        )

    def progress(self, key: str, text: str, total: float | None = None) -> Event:
        self.seq += 1
        return Event(seq=self.seq, at=0.0, kind="progress", session_key=key, agent_id="inner", text=text, total=total)


@pytest.fixture
def events() -> Events:
    return Events()


def test_leaves_are_counted_under_their_parent_and_have_no_row(events: Events) -> None:
    tree = SessionTree(fold=("leaf",))
    tree.apply(events.run("main", "running"))
    tree.apply(events.run("a", "running", "main"))
    for number, states in enumerate(
        [("queued",), ("queued", "running"), ("queued", "running", "succeeded"), ("queued", "cancelled")]
    ):
        for state in states:
            tree.apply(events.run(f"leaf{number}", state, "a", "leaf"))
    assert [(level, branch.key) for level, branch in tree.walk()] == [(0, "main"), (1, "a")]
    branch = tree.branches["a"]
    assert (branch.queued, branch.running, branch.done, branch.failed) == (1, 1, 1, 1)
    assert tree.counts() == {"queued": 1, "running": 1, "done": 1, "failed": 1}


def test_leaves_that_have_ended_take_no_memory(events: Events) -> None:
    tree = SessionTree(fold=("leaf",))
    for number in range(100):
        tree.apply(events.run(f"leaf{number}", "running", "a", "leaf"))
        tree.apply(events.run(f"leaf{number}", "succeeded", "a", "leaf"))
    assert tree._open == {}
    assert tree.branches["a"].done == 100


def test_an_event_seen_twice_counts_once(events: Events) -> None:
    tree = SessionTree(fold=("leaf",))
    event = events.run("leaf", "queued", "a", "leaf")
    tree.apply(event)
    tree.apply(event)
    assert tree.branches["a"].queued == 1


def test_a_tree_joined_late_shows_what_it_knows(events: Events) -> None:
    tree = SessionTree(fold=("leaf",))
    tree.apply(events.run("leaf", "succeeded", "a", "leaf"))
    assert describe(tree.branches["a"]) == "a: queued (1 done)"


def test_a_branch_says_who_and_how_far(events: Events) -> None:
    tree = SessionTree(fold=("leaf",))
    tree.apply(events.run("a", "running", "main", label="label"))
    assert describe(tree.branches["a"]) == "inner label: running"
    tree.apply(events.progress("a", "src\x1b/", total=9))
    tree.apply(events.run("leaf1", "queued", "a", "leaf"))
    assert describe(tree.branches["a"]) == "inner src\ufffd/: running (0 of 9 done, 1 queued)"


def test_lines_tell_each_end_once_and_the_whole_now_and_then(events: Events) -> None:
    now = [0.0]
    stream = io.StringIO()
    view = TreeLines(("leaf",), stream, clock=lambda: now[0])
    view.take(events.run("a", "running", "main"))
    view.take(events.run("leaf", "running", "a", "leaf"))
    assert stream.getvalue() == ""
    now[0] = 6.0
    view.take(events.run("leaf", "succeeded", "a", "leaf"))
    view.take(events.run("a", "succeeded", "main"))
    view.take(events.progress("a", "late"))
    assert stream.getvalue() == "1 done, 0 running, 0 queued\ninner: succeeded (1 done)\n"


def test_events_that_break_off_end_only_the_view(events: Events) -> None:
    def broken() -> Any:
        yield events.run("a", "running")
        raise RuntimeError

    view = TreeLines((), None)
    view.follow(broken())
    assert "a" in view.tree.branches


def test_a_drawing_stays_small(events: Events) -> None:
    view = TreeView(("leaf",), io.StringIO())
    try:
        for number in range(100):
            view.take(events.run(f"s{number}", "running" if number % 2 else "succeeded"))
        lines = str(view.draw()).split("\n")
        assert len(lines) == MOST_ROWS + 2
        assert lines[0] == "inner: running"
        assert lines[-2] == "… and 76 more"
        view.note("[bold]said[/bold]")
    finally:
        view.close()


def test_progress_lines_are_rare_and_the_last_one_sums_up() -> None:
    now = [0.0]
    stream = io.StringIO()
    progress = LineProgress("exec", stream, clock=lambda: now[0])
    progress.advance(ok=True)
    now[0] = 6.0
    progress.advance(ok=False)
    progress.advance(ok=True)
    progress.set_total(3)
    now[0] = 10.0
    progress.close()
    assert stream.getvalue().splitlines() == [
        "exec: 2 done, 1 failed in 6.0 s, 0/s",
        "exec: 3 of 3 done, 1 failed in 10.0 s, 0/s",
    ]


@pytest.mark.parametrize("kind", [LineProgress, BarProgress])
def test_what_was_stopped_is_neither_done_nor_failed(kind: type[LineProgress]) -> None:
    stream = io.StringIO()
    progress = kind("exec", stream)
    progress.set_total(4)
    progress.advance(ok=True)
    progress.advance(ok=False)
    for _ in range(2):
        progress.advance(ok=False, stopped=True)
    progress.close()
    assert "exec: 2 of 4 done, 1 failed, 2 stopped in " in stream.getvalue().splitlines()[-1]


def test_unwanted_progress_says_only_notes() -> None:
    stream = io.StringIO()
    progress = NoProgress(stream)
    progress.advance(ok=True)
    progress.set_total(1)
    progress.note("note")
    progress.close()
    assert stream.getvalue() == "note\n"


def test_a_bar_leaves_its_summary() -> None:
    stream = io.StringIO()
    progress = BarProgress("exec", stream)
    progress.advance(ok=True)
    progress.advance(ok=False)
    progress.set_total(2)
    progress.note("said")
    progress.close()
    assert "said" in stream.getvalue()
    assert "exec: 2 of 2 done, 1 failed" in stream.getvalue().splitlines()[-1]


def test_rows_are_valid_json_whatever_is_in_them() -> None:
    stream = io.BytesIO()
    JsonLines(stream).write({"a": os.fsdecode(b"\xff"), "b": "é\n\u2028", "c": '"\\'})
    assert stream.getvalue().count(b"\n") == 1
    assert json.loads(stream.getvalue().decode("utf-8")) == {"a": "\udcff", "b": "é\n\u2028", "c": '"\\'}


def test_a_row_that_nobody_reads_says_so() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "wb", buffering=0) as stream, pytest.raises(OutputClosed):
        JsonLines(stream).write({"a": 1})


def test_what_a_terminal_would_obey_is_not_printed() -> None:
    assert printable("a\x1b[31mb\udcff é") == "a\ufffd[31mb\ufffd é"
