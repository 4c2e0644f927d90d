"""The entry point: what is loaded, how errors are told, and the commands that look at a runtime."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace

import click
import pytest

import openclaw_ray
from openclaw_ray.cli import exits, opening
from openclaw_ray.cli import runs as runs_module
from openclaw_ray.cli import sessions as sessions_module
from openclaw_ray.cli.main import run
from openclaw_ray.core.errors import (
    ConfigError,
    ConfigFault,
    RayUnreachable,
    RuntimeClosed,
    RuntimeInUse,
    RuntimeNotFound,
    StateDirError,
    UnknownAgent,
)


@pytest.mark.parametrize(
    "arguments",
    [
        ["--help"],
        ["--version"],
        ["agents", "list", "--help"],
        ["auth", "--help"],
        ["bench", "--help"],
        ["bench", "limits", "--help"],
        ["config", "--help"],
        ["config", "check", "-h"],
        ["demo", "--help"],
        ["doctor", "--help"],
        ["map", "--help"],
        ["run", "--help"],
        ["sessions", "list", "--help"],
        ["tasks", "audit", "--help"],
    ],
)
def test_help_loads_neither_ray_nor_rich_nor_the_runtime(arguments: list[str]) -> None:
    code = (
        "import sys; from openclaw_ray.cli.main import run; code = run(sys.argv[1:]);"
        "unwanted = {'ray', 'rich', 'numpy', 'pydantic', 'openclaw_ray.runtime', 'openclaw_ray.actors'};"
        "heavy = unwanted & set(sys.modules);"
        "sys.exit(f'loaded: {heavy}' if heavy else code)"
    )
    root = Path(openclaw_ray.__file__).parent.parent
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        cwd=root,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "openclaw-ray" in done.stdout


def test_without_a_command_there_is_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert run([]) == 0
    assert "Commands:" in capsys.readouterr().out


@pytest.mark.parametrize("arguments", [["nothing"], ["--nothing"], ["sessions"], ["demo", "/no/such/folder"]])
def test_an_unknown_command_line_has_exit_code_2_and_a_hint(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(arguments) == 2
    text = capsys.readouterr().err
    assert text.startswith("error: ")
    assert "--help" in text


ERRORS: list[tuple[Exception, int, str]] = [
    (
        ConfigError((ConfigFault("ray.pool.max", "type", "must be a number"),)),
        2,
        "ray.pool.max: must be a number",
    ),
    (RayUnreachable("10.0.0.1:6379", "timed out"), 2, "no Ray cluster at 10.0.0.1:6379: timed out"),
    (RuntimeInUse("main", 7, "host", 0.0), 2, "runtime 'main' is in use by process 7"),
    (RuntimeClosed("main"), 1, "runtime 'main' is closed"),
    (KeyError("x"), 1, "KeyError: 'x' (OPENCLAW_RAY_DEBUG=1 shows where)"),
    (click.FileError("f", "gone"), 1, "gone"),
]


@pytest.mark.parametrize(("error", "code", "text"), ERRORS, ids=lambda value: type(value).__name__)
def test_an_error_is_one_readable_message_and_never_a_traceback(
    error: Exception,
    code: int,
    text: str,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def start(*_: object, **__: object) -> opening.LiveRuntime:
        raise error

    monkeypatch.setattr(opening, "start_runtime", start)
    assert run(["demo", str(tmp_path)]) == code
    captured = capsys.readouterr()
    assert captured.err.startswith("error: ")
    assert text in captured.err
    assert "Traceback" not in captured.err
    assert captured.out == ""


@pytest.mark.parametrize(
    ("error", "step"),
    [
        (RayUnreachable("10.0.0.1:6379", "timed out"), "openclaw-ray doctor --address 10.0.0.1:6379"),
        (RayUnreachable("local", "no room"), "openclaw-ray doctor"),
        (RuntimeNotFound("x", ("r1", "r2")), "openclaw-ray status shows what lives here"),
        (RuntimeNotFound("x", ()), "openclaw-ray status shows what lives here"),
        (RuntimeInUse("main", 7, "host", 0.0), "openclaw-ray sessions list --name main"),
        (UnknownAgent("x", ("y",)), "openclaw-ray agents list --app FILE"),
        (StateDirError("/s", "full"), "openclaw-ray doctor"),
        (KeyError("x"), None),
    ],
)
def test_an_error_names_the_next_command_to_try(
    error: Exception, step: str | None, capsys: pytest.CaptureFixture[str]
) -> None:
    exits.tell(error)
    lines = [line for line in capsys.readouterr().err.splitlines() if line.startswith("next: ")]
    assert len(lines) == (step is not None)
    assert step is None or lines[0].startswith(f"next: {step}")


def test_a_traceback_is_shown_if_it_is_asked_for(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def start(*_: object, **__: object) -> opening.LiveRuntime:
        raise RuntimeClosed("main")

    monkeypatch.setattr(opening, "start_runtime", start)
    monkeypatch.setenv("OPENCLAW_RAY_DEBUG", "1")
    assert run(["demo", str(tmp_path)]) == 1
    assert "Traceback" in capsys.readouterr().err


def test_interruptions_and_broken_pipes_have_exit_codes_of_their_own() -> None:
    assert exits.exit_code_of(KeyboardInterrupt()) == 130
    assert exits.exit_code_of(exits.Interrupted(141)) == 141
    assert exits.exit_code_of(exits.OutputClosed()) == 141
    assert exits.exit_code_of(BrokenPipeError()) == 141


@pytest.mark.parametrize(
    ("option", "variable", "usual", "expected"),
    [
        (None, None, False, None),
        (None, None, True, "usual"),
        (None, "set", True, None),
        ("given", "set", True, "given"),
    ],
)
def test_the_users_own_configuration_is_read_unless_another_one_is_named(
    option: str | None,
    variable: str | None,
    usual: bool,
    expected: str | None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("OPENCLAW_CONFIG_PATH", raising=False)
    if variable is not None:
        monkeypatch.setenv("OPENCLAW_CONFIG_PATH", variable)
    file = tmp_path / ".openclaw" / "openclaw.json"
    if usual:
        file.parent.mkdir()
        file.write_text("{}")
    seen: list[object] = []
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    runtime = SimpleNamespace(start=lambda **options: seen.append(options))
    monkeypatch.setattr(openclaw_ray, "Runtime", runtime, raising=False)
    opening.start_runtime([], opening.Place(config=option), app_dir=None, config=None)
    assert seen == [
        {
            "config": {None: None, "usual": file, "given": Path("given")}[expected],
            "agents": [],
            "name": None,
            "state_dir": None,
            "app_dir": None,
        }
    ]


def test_warnings_of_the_start_are_notes(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    runtime = SimpleNamespace(start=lambda **_: warnings.warn("maxSpawnDepth lowered to 3", stacklevel=2))
    monkeypatch.setattr(openclaw_ray, "Runtime", runtime, raising=False)
    opening.start_runtime([], opening.Place(), app_dir=None, config={})
    assert capsys.readouterr().err == "note: maxSpawnDepth lowered to 3\n"


class View:
    """A runtime to look at."""

    source = "runtime r (/state)"

    def runs(self, states: Sequence[str] = ()) -> Iterator[Mapping[str, object]]:
        error = {"type": "ValueError", "message": "bad \x1b[31m", "cause": "raised"}
        for row in (
            {"runId": "r2", "sessionKey": "k2", "agentId": "a", "state": "queued", "waitingFor": "a slot"},
            {"runId": "r1", "sessionKey": "k1", "agentId": "a", "state": "failed", "error": error},
        ):
            if not states or row["state"] in states:
                yield row

    def session(self, key: str) -> Mapping[str, object] | None:
        return {"key": key} if key in ("k1", "k2") else None

    def log(self, key: str) -> Iterator[bytes] | None:
        return {"k1": iter([b"one\ntw", b"o\nthree\xff"]), "k2": iter(())}.get(key)


@pytest.fixture
def viewed(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str | None, str | None]]:
    """The (name, state) of each view that was opened."""
    opened: list[tuple[str | None, str | None]] = []

    @contextlib.contextmanager
    def open_view(name: str | None, state_dir: str | None) -> Iterator[View]:
        opened.append((name, state_dir))
        yield View()

    fake: Callable[..., object] = open_view
    monkeypatch.setattr(runs_module, "open_view", fake)
    monkeypatch.setattr(sessions_module, "open_view", fake)
    return opened


def test_runs_as_json_are_one_object_a_line(
    viewed: list[tuple[str | None, str | None]], capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    assert run(["runs", "--json", "--name", "n"]) == 0
    assert [json.loads(line)["runId"] for line in capfdbinary.readouterr().out.splitlines()] == ["r2", "r1"]
    assert viewed == [("n", None)]


def test_runs_can_be_chosen(
    viewed: list[tuple[str | None, str | None]], capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    assert run(["runs", "--json", "--status", "failed", "--state", "/s"]) == 0
    assert [json.loads(line)["runId"] for line in capfdbinary.readouterr().out.splitlines()] == ["r1"]
    assert run(["runs", "--json", "--limit", "1"]) == 0
    assert [json.loads(line)["runId"] for line in capfdbinary.readouterr().out.splitlines()] == ["r2"]
    assert viewed == [(None, "/s"), (None, None)]


def test_runs_as_a_table_show_why_and_let_no_escape_through(
    viewed: list[tuple[str | None, str | None]], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["runs"]) == 0
    text = capsys.readouterr().out
    assert "runtime r (/state)" in text
    assert "a slot" in text
    assert "bad \ufffd[31m" in text
    assert "\x1b" not in text


def test_logs_of_a_session_are_printed_as_they_are(
    viewed: list[tuple[str | None, str | None]], capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    assert run(["sessions", "logs", "k1"]) == 0
    assert capfdbinary.readouterr().out == b"one\ntwo\nthree\xff"
    assert run(["sessions", "logs", "k1", "--tail", "2"]) == 0
    assert capfdbinary.readouterr().out == b"two\nthree\xff"


def test_a_session_without_a_log_says_why_that_may_be(
    viewed: list[tuple[str | None, str | None]], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["sessions", "logs", "k2"]) == 0
    assert "nothing here from k2: it wrote nothing, or ran on another machine" in capsys.readouterr().err


def test_logs_of_an_unknown_session_name_the_way_out(
    viewed: list[tuple[str | None, str | None]], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["sessions", "logs", "k9"]) == 2
    text = capsys.readouterr().err
    assert "no session 'k9' in runtime r (/state); `openclaw-ray sessions list` lists the keys" in text
