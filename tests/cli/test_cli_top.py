"""``top``: what runs now, once, as JSON, and drawn within the height of the terminal."""

from __future__ import annotations

import contextlib
import io
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from rich.console import Console

import openclaw_ray as oc
from openclaw_ray.cli import top as command
from openclaw_ray.cli.main import run
from openclaw_ray.cli.top_model import Look, picture
from openclaw_ray.core.errors import RuntimeClosed, RuntimeUnavailable
from openclaw_ray.testing import LocalRuntime, eventually

RULES = {"agents": {"defaults": {"subagents": {"maxConcurrent": 2, "allowAgents": ["*"]}}}}


@oc.agent
def main(turn: oc.SyncTurn) -> int:
    return len(turn.map("held", [turn.text] * 5))


@oc.agent
def held(turn: oc.SyncTurn) -> str:
    import time
    from pathlib import Path

    while not Path(turn.text).exists():
        turn.check()
        time.sleep(0.005)
    return "let go"


@pytest.fixture
def live(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[LocalRuntime]:
    """A runtime with a session that waits for five: two at work, three in line behind them."""
    with LocalRuntime(agents=[main, held], config=RULES) as runtime:

        @contextlib.contextmanager
        def found(name: str | None) -> Iterator[SimpleNamespace]:
            yield SimpleNamespace(runtime=runtime, source="runtime r (here)")

        monkeypatch.setattr(command, "open_live", found)
        runtime.spawn(str(tmp_path / "gate"), "main", label="wide")
        eventually(lambda: len(runtime.runs(state="running", agent="held")) == 2)
        eventually(lambda: len(runtime.runs(state="queued", agent="held")) == 3)
        eventually(lambda: runtime.runs(state="paused", agent="main"))
        yield runtime
        (tmp_path / "gate").touch()


def pausing(monkeypatch: pytest.MonkeyPatch, pauses: int, then: Callable[[], object] = lambda: None) -> list[float]:
    """Have Ctrl-C be pressed after some pauses, which take no time."""
    told: list[float] = []

    def pause(seconds: float) -> None:
        told.append(seconds)
        if len(told) == pauses:
            then()
            raise KeyboardInterrupt

    monkeypatch.setattr(command, "_pause", pause)
    return told


def test_one_picture_as_json_has_each_run_and_what_it_waits_for(
    live: LocalRuntime, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["top", "--once", "--json"]) == 0
    (line,) = capsys.readouterr().out.splitlines()
    shown = json.loads(line)
    assert (shown["name"], shown["runs"]) == (live.name, {"running": 2, "paused": 1, "queued": 3})
    top, *rows = shown["rows"]
    assert {row["runId"] for row in rows} == {row["runId"] for row in live.runs(agent="held")}
    assert (top["text"], top["waitingFor"], top["below"]) == ("wide", "waiting", {"running": 2, "queued": 3})
    assert [row["state"] for row in rows] == ["running"] * 2 + ["queued"] * 3
    assert [row.get("place") for row in rows] == [None, None, 1, 2, 3]
    assert all("(2 of 2)" in row["waitingFor"] for row in rows[2:])
    assert all((row["level"], row["depth"], row["requesterKey"]) == (1, 2, top["sessionKey"]) for row in rows)
    assert list(shown["stats"]["lanes"].values()) == [{"width": 2, "taken": 2}]
    assert "startedPerSecond" not in shown


def test_the_second_picture_has_a_rate_and_ctrl_c_ends_it_well(
    live: LocalRuntime, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    told = pausing(monkeypatch, 2)
    assert run(["top", "--json", "--every", "3"]) == 0
    captured = capsys.readouterr()
    first, second = map(json.loads, captured.out.splitlines())
    assert "startedPerSecond" not in first
    assert second["startedPerSecond"] == 0
    assert told == [3.0, 3.0]
    assert "error" not in captured.err


def test_without_a_terminal_one_picture_is_printed(live: LocalRuntime, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["top"]) == 0
    title, figures, lanes, head, *rows = capsys.readouterr().out.splitlines()
    assert title.startswith(live.name)
    assert "2 running, 1 paused, 3 queued" in title
    assert figures.startswith("sessions started 3; processes ")
    assert lanes.rstrip().endswith("2 of 2")
    assert head.split()[:4] == ["session", "state", "depth", "age"]
    assert rows[0].startswith("main wide (2 running, 3 queued)")
    assert [row.split()[0] for row in rows] == ["main", *["held"] * 5]
    assert all(row.startswith("  held") for row in rows[1:])
    assert "#1: a slot of lane" in rows[3]


def test_a_drawing_is_never_higher_than_the_terminal() -> None:
    runs = [
        {"runId": f"r{n}", "sessionKey": f"s{n}", "requesterKey": "s0" if n else None, "state": "queued"}
        for n in range(500)
    ]
    shown = picture(Look(0.0, runs, {"lanes": {"x": {"width": 0, "taken": 1}}}))
    for height in (6, 10, 24, 50):
        console = Console(file=io.StringIO(), width=60, height=height)
        lines = console.render_lines(command._drawing("r", shown, height), pad=False)
        assert len(lines) == height
        assert f"… {500 - height + 5} more " in "".join(segment.text for segment in lines[-1])


def test_lanes_of_many_sessions_are_counted_together() -> None:
    own = {f"subagent:agent:main:subagent:{n}": {"width": 4, "taken": n} for n in (1, 3)}
    lanes = {**own, "main": {"width": 8, "taken": 2}, "wide": {"width": 0, "taken": 5}}
    (line,) = [line for line in command._head("r", picture(Look(0.0, [], {"lanes": lanes}))) if "lanes" in line]
    assert line == "lanes subagent 4 of 8 (in 2), main 2 of 8, wide 5 of any"


class OnTerminal(io.StringIO):
    """What is written to a terminal."""

    def isatty(self) -> bool:
        return True


def test_on_a_terminal_it_is_drawn_until_ctrl_c_and_a_silent_registry_is_told(
    live: LocalRuntime, monkeypatch: pytest.MonkeyPatch
) -> None:
    screen = OnTerminal()
    monkeypatch.setattr(command, "data_stream", lambda: screen)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("LINES", "20")
    monkeypatch.setenv("COLUMNS", "150")
    answers = iter([False, True])
    stats = live.stats

    def silent() -> object:
        if next(answers):
            raise RuntimeUnavailable("registry", 1.0, "gone")
        return stats()

    monkeypatch.setattr(live, "stats", silent)
    pausing(monkeypatch, 2)
    assert run(["top"]) == 0
    text = screen.getvalue()
    assert "2 running, 1 paused, 3 queued" in text
    assert "does not answer" in text
    assert text.rstrip("\n").endswith("\x1b[?25h") or "\x1b[?1049l" in text, "the terminal is as it was"


def test_a_runtime_that_ends_meanwhile_ends_it(
    live: LocalRuntime, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone(seconds: float) -> None:
        def closed() -> None:
            raise RuntimeClosed(live.name)

        monkeypatch.setattr(live, "stats", closed)

    monkeypatch.setattr(command, "_pause", gone)
    assert run(["top", "--json"]) == 0
    captured = capsys.readouterr()
    assert len(captured.out.splitlines()) == 1
    assert "the runtime has ended" in captured.err
