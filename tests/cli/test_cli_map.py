"""``map`` on the fake runtime: rows, exit codes, sources, and what a signal or a broken pipe does to it."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import sys
import termios
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from stand_ins import eventually

from openclaw_ray.cli import opening
from openclaw_ray.cli.main import run
from openclaw_ray.cli.map_rows import TakenOver, result_row
from openclaw_ray.core.lifecycle import ResultStatus
from openclaw_ray.core.results import ErrorInfo, Result

APP = """
import openclaw_ray as oc

@oc.agent(id="worker")
def worker(turn):
    if turn.text == "bad":
        raise ValueError("no good")
    return turn.text.upper()
"""
WAIT = 30.0


@pytest.fixture
def app(tmp_path: Path) -> str:
    (tmp_path / "cli_map_app.py").write_text(APP)
    return str(tmp_path / "cli_map_app.py")


@pytest.fixture
def lines(tmp_path: Path) -> str:
    (tmp_path / "lines").write_text("a\n\nbad\nc\n")
    return str(tmp_path / "lines")


def rows(out: bytes) -> list[dict[str, Any]]:
    return [json.loads(line) for line in out.splitlines()]


def test_rows_come_in_input_order_with_all_their_fields(
    started: list[SimpleNamespace], tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    (tmp_path / "numbers").write_text("".join(f"{n}\n" for n in range(200)))
    assert run(["map", "--exec", "echo x {}", "--lines", str(tmp_path / "numbers"), "--width", "3"]) == 0
    found = rows(capfdbinary.readouterr().out)
    assert [(row["index"], row["input"], row["text"]) for row in found] == [(n, str(n), f"x {n}") for n in range(200)]
    assert list(found[0]) == ["index", "input", "status", "text", "error", "runId", "sessionKey", "runtimeMs"]
    assert found[0]["status"] == "ok"
    assert found[0]["error"] is None
    assert started[0].runtime.calls == [{"agent_id": "exec", "width": 3, "timeout": None, "retries": 0}]
    assert started[0].runtime.closed == [False]


def test_a_failed_item_is_a_row_in_its_place_and_exit_code_1(
    started: list[SimpleNamespace], app: str, lines: str, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    assert run(["map", "--app", app, "--lines", lines]) == 1
    captured = capfdbinary.readouterr()
    found = rows(captured.out)
    assert [(row["index"], row["input"], row["status"], row["text"]) for row in found] == [
        (0, "a", "ok", "A"),
        (1, "bad", "error", None),
        (2, "c", "ok", "C"),
    ]
    assert found[1]["error"]["type"] == "ValueError"
    assert found[1]["error"]["message"] == "no good"
    assert "traceback" in found[1]["error"]
    assert b"worker: 3 of 3 done, 1 failed" in captured.err


def test_a_failed_command_has_its_exit_status_and_no_traceback(
    started: list[SimpleNamespace], lines: str, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    assert run(["map", "--shell", "--exec", "echo {} >&2; exit 4", "--lines", lines]) == 1
    error = rows(capfdbinary.readouterr().out)[0]["error"]
    assert error == {"type": "CommandFailed", "message": "exit status 4: a", "cause": "raised"}


def test_on_error_raise_ends_with_the_row_of_the_first_failed_item(
    started: list[SimpleNamespace], app: str, lines: str, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    assert run(["map", "--app", app, "--lines", lines, "--on-error", "raise", "--no-progress"]) == 1
    captured = capfdbinary.readouterr()
    assert [row["status"] for row in rows(captured.out)] == ["ok", "error"]
    assert captured.err == b"item 1 failed: the rest is stopped (--on-error raise)\n"
    assert started[0].runtime.ended == ["map worker", "runtime"]


def test_options_reach_the_runtime(started: list[SimpleNamespace], app: str, lines: str, tmp_path: Path) -> None:
    config = tmp_path / "c.json5"
    config.write_text("{}")
    options = ["--timeout", "0", "--retries", "2", "--width", "5", "--json"]
    options += ["--name", "n", "--state", "/tmp/s", "--address", "a:1"]
    run(["map", "--app", app, "--lines", lines, "--config", str(config), *options])
    assert started[0].runtime.calls == [{"agent_id": "worker", "width": 5, "timeout": 0.0, "retries": 2}]
    assert started[0].app_dir == Path(app).parent
    place = started[0].place
    assert (place.name, place.state, place.address, place.config) == ("n", "/tmp/s", "a:1", str(config))


def test_a_map_with_a_name_says_what_it_took_over_and_what_it_ran(
    started: list[SimpleNamespace], app: str, lines: str, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    options = ["--name", "n", "--map-id", "nightly", "--failed-only", "--no-progress"]
    assert run(["map", "--app", app, "--lines", lines, *options]) == 1
    captured = capfdbinary.readouterr()
    assert captured.err == b"reused 0, ran 3\n"
    assert len(rows(captured.out)) == 3
    [call] = started[0].runtime.calls
    assert (call["map_id"], call["failed_only"]) == ("nightly", True)


def test_what_was_taken_over_is_counted_by_kind() -> None:
    def error(cause: str) -> ErrorInfo:
        return ErrorInfo("x", "x", cause=cause)

    taken = TakenOver()
    for _ in range(99_960):
        taken.count(Result(reused=True))
    for result in (
        Result(),
        Result(ResultStatus.ERROR, error=error("raised")),
        Result(ResultStatus.CANCELLED, error=error("stopped")),
        Result(ResultStatus.CANCELLED, error=error("not_tried")),
    ):
        taken.count(result)
    assert taken.line() == (
        "reused 99,960, ran 2, stopped 1, left out 1 never tried (run them without --failed-only)"
    )


def test_the_row_of_an_item_of_an_earlier_try_says_so() -> None:
    assert result_row(0, "a", Result(text="A", reused=True))["reused"] is True
    assert "reused" not in result_row(0, "a", Result(text="A"))


@pytest.mark.parametrize(
    ("options", "remedy"),
    [
        (["--map-id", "m"], b"add --name NAME, or --state DIR"),
        (["--failed-only", "--name", "n"], b"needs the --map-id of an earlier try"),
        (["--name", "n", "--map-id", "a\nb"], b"printable"),
    ],
)
def test_a_name_that_cannot_be_had_is_refused_before_anything_starts(
    started: list[SimpleNamespace],
    app: str,
    lines: str,
    capfdbinary: pytest.CaptureFixture[bytes],
    options: list[str],
    remedy: bytes,
) -> None:
    assert run(["map", "--app", app, "--lines", lines, *options]) == 2
    assert remedy in capfdbinary.readouterr().err
    assert started == []


def test_files_by_pattern_are_items(
    started: list[SimpleNamespace],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfdbinary: pytest.CaptureFixture[bytes],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("b.txt").write_text("one two\n")
    Path("a a.txt").write_text("one\n")
    assert run(["map", "--exec", "wc -w {}", "--glob", "*.txt"]) == 0
    assert [row["text"] for row in rows(capfdbinary.readouterr().out)] == ["1 a a.txt", "2 b.txt"]


def test_bytes_of_a_name_that_is_not_utf8_pass_through(
    started: list[SimpleNamespace],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfdbinary: pytest.CaptureFixture[bytes],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path(os.fsdecode(b"caf\xe9.txt")).write_text("here\n")
    assert run(["map", "--exec", "cat {}", "--glob", "*.txt"]) == 0
    out = capfdbinary.readouterr().out
    out.decode("utf-8")
    assert rows(out)[0]["text"] == "here"
    assert os.fsencode(rows(out)[0]["input"]) == b"caf\xe9.txt"


@pytest.mark.parametrize("content", ["", "\n\n  \n"])
def test_empty_input_gives_no_row_and_a_note_and_starts_nothing(
    content: str, started: list[SimpleNamespace], tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    (tmp_path / "empty").write_text(content)
    assert run(["map", "--exec", "echo", "--lines", str(tmp_path / "empty")]) == 0
    captured = capfdbinary.readouterr()
    assert (captured.out, captured.err) == (b"", b"note: the input has no items\n")
    assert started == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-"], "give one of --app FILE and --exec COMMAND"),
        (["--exec", "echo", "--app", "x.py", "-"], "give one of --app FILE and --exec COMMAND"),
        (["--exec", "echo"], "give one of --lines FILE, --glob PATTERN and -"),
        (["--exec", "echo", "--lines", "-", "-"], "give one of --lines FILE, --glob PATTERN and -"),
        (["--exec", "echo", "file.txt"], "unexpected argument 'file.txt'"),
        (["--exec", "echo", "--lines", "/no/such"], "'/no/such' does not exist"),
        (["--exec", "echo", "--agent", "a", "-"], "--agent belongs to --app"),
        (["--app", "x.py", "--shell", "-"], "--shell belongs to --exec"),
        (["--exec", "", "-"], "the command is empty"),
        (["--exec", "echo", "--width", "0", "-"], "'--width'"),
        (["--exec", "echo", "--timeout", "nan", "-"], "'--timeout'"),
        (["--exec", "echo", "--timeout", "-1", "-"], "'--timeout'"),
        (["--exec", "echo", "--timeout", "1e999", "-"], "'--timeout'"),
        (["--exec", "echo", "--retries", "x", "-"], "'--retries'"),
        (["--exec", "echo", "--name", "a/b", "-"], "'--name'"),
        (["--app", "/no/app.py", "-"], "app file /no/app.py is not there"),
        (["--exec", "echo", "--config", "/no/c.json", "-"], "'/no/c.json' does not exist"),
    ],
)
def test_a_wrong_command_line_is_told_in_one_line_with_exit_code_2(
    arguments: list[str],
    message: str,
    started: list[SimpleNamespace],
    capfdbinary: pytest.CaptureFixture[bytes],
) -> None:
    assert run(["map", *arguments]) == 2
    captured = capfdbinary.readouterr()
    text = captured.err.decode()
    assert text.startswith("error: ")
    assert message in text
    assert text.count("\n") == 1
    assert captured.out == b""
    assert started == []


def test_an_unknown_agent_is_told_before_anything_starts(
    app: str, lines: str, started: list[SimpleNamespace], capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    assert run(["map", "--app", app, "--agent", "wroker", "--lines", lines]) == 2
    assert b"no agent 'wroker'; --agent can be: worker" in capfdbinary.readouterr().err
    assert started == []


def test_only_rows_go_to_standard_output(
    started: list[SimpleNamespace],
    tmp_path: Path,
    lines: str,
    monkeypatch: pytest.MonkeyPatch,
    capfdbinary: pytest.CaptureFixture[bytes],
) -> None:
    """Ray prints its notes, and what actors print, to the driver's standard output; an app file may print, too."""
    start = opening.start_runtime

    def chatty(*arguments: Any, **options: Any) -> Any:
        print("(raylet) WARNING: many workers")
        return start(*arguments, **options)

    monkeypatch.setattr(opening, "start_runtime", chatty)
    (tmp_path / "chatty.py").write_text(
        "import openclaw_ray as oc\nprint('imported')\n"
        "@oc.agent\ndef talks(turn: oc.SyncTurn) -> str:\n    print('at work')\n    return turn.text\n"
    )
    assert run(["map", "--app", str(tmp_path / "chatty.py"), "--lines", lines, "--no-progress"]) == 0
    captured = capfdbinary.readouterr()
    assert [row["text"] for row in rows(captured.out)] == ["a", "bad", "c"]
    assert captured.err.split(b"\n")[:2] == [b"imported", b"(raylet) WARNING: many workers"]
    assert captured.err.count(b"at work") == 3


def test_a_cut_text_is_marked() -> None:
    row = result_row(3, "x", Result(text="long", text_truncated=True, run_id="r", session_key="k", runtime_ms=5))
    assert row == {
        "index": 3,
        "input": "x",
        "status": "ok",
        "text": "long",
        "error": None,
        "runId": "r",
        "sessionKey": "k",
        "runtimeMs": 5,
        "textTruncated": True,
    }


def test_a_run_that_never_started_has_no_ids() -> None:
    row = result_row(0, "x", Result(ResultStatus.LOST, error=ErrorInfo("lost", "the pool died", cause="process_died")))
    assert (row["runId"], row["sessionKey"], row["status"]) == (None, None, "lost")


def started_process(program: list[str], *arguments: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [*program, "map", *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )


def finish(process: subprocess.Popen[bytes]) -> tuple[list[dict[str, Any]], bytes]:
    out, err = process.communicate(timeout=WAIT)
    return rows(out), err


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_in_the_middle_stops_the_items_writes_their_rows_and_exits_130(
    program: list[str], number: int
) -> None:
    process = started_process(program, "--width", "2", "--shell", "--exec", "echo {}; [ {} = 1 ] || sleep 300", "-")
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(b"".join(b"%d\n" % n for n in range(1, 2000)))
    process.stdin.flush()
    first = json.loads(process.stdout.readline())
    assert (first["index"], first["text"]) == (0, "1")
    process.send_signal(number)
    left, err = finish(process)
    assert process.returncode == 130
    assert [row["index"] for row in left] == list(range(1, len(left) + 1))
    assert {row["status"] for row in left} == {"cancelled"}
    assert b"what was not begun has no row" in err
    assert b"Traceback" not in err


def test_a_signal_ends_a_map_that_waits_for_input(program: list[str]) -> None:
    process = started_process(program, "--exec", "echo {}", "-")
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(b"one\n")
    process.stdin.flush()
    assert json.loads(process.stdout.readline())["text"] == "one"
    process.send_signal(signal.SIGINT)
    assert process.wait(WAIT) == 130
    finish(process)


def test_a_signal_ends_a_map_that_waits_for_its_first_item(program: list[str]) -> None:
    process = started_process(program, "--exec", "echo {}", "-")
    assert process.stdin is not None
    process.stdin.write(b"\n")
    process.stdin.flush()
    pipe = process.stdin.fileno()
    eventually(lambda: unread(pipe) == 0)
    process.send_signal(signal.SIGINT)
    assert process.wait(WAIT) == 130
    found, err = finish(process)
    assert found == []
    assert b"Traceback" not in err


def unread(pipe: int) -> int:
    """Bytes in a pipe that nobody has read."""
    return int.from_bytes(fcntl.ioctl(pipe, termios.FIONREAD, b"\0\0\0\0"), sys.byteorder)


@pytest.mark.parametrize("command", ["echo {}", "echo {}; sleep 300"])
def test_a_reader_that_goes_away_ends_everything_with_exit_code_141(program: list[str], command: str) -> None:
    process = started_process(program, "--width", "2", "--shell", "--exec", command, "-")
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(b"".join(b"%d\n" % n for n in range(5000)))
    process.stdin.flush()
    if command == "echo {}":
        process.stdout.readline()
    process.stdout.close()
    assert process.wait(WAIT) == 141
    assert process.stderr is not None
    err = process.stderr.read()
    process.stderr.close()
    process.stdin.close()
    assert b"Traceback" not in err
    assert b"Exception ignored" not in err


def test_a_full_disk_is_told(program: list[str]) -> None:
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [*program, "map", "--no-progress", "--exec", "echo {}", "-"],
            input=b"1\n2\n",
            stdout=full,
            stderr=subprocess.PIPE,
            timeout=WAIT,
            check=False,
        )
    assert done.returncode == 1
    assert done.stderr == b"error: cannot write to standard output: No space left on device\n"
