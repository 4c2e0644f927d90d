"""``exec`` and ``process``: where a command runs, what it is given, and that none of its processes is left."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fake_port import FakePort
from turn_drive import Drive

import openclaw_ray as oc
from openclaw_ray.agents.tools import command as command_module
from openclaw_ray.agents.tools import running as running_module
from openclaw_ray.agents.tools.kept_output import HEAD, TAIL, KeptOutput
from openclaw_ray.testing import LocalRuntime, eventually, run_turn

TOOLS = ["exec", "process"]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The workspace."""
    (tmp_path / "inside" / "sub").mkdir(parents=True)
    (tmp_path / "outside").mkdir()
    monkeypatch.chdir(tmp_path / "inside")
    return tmp_path / "inside"


def call(**params: Any) -> oc.ToolResult:
    """One command."""
    results: list[oc.ToolResult] = []

    @oc.agent(id="w", tools=TOOLS)
    def w(turn: oc.SyncTurn) -> None:
        results.append(turn.tools.exec(**params))

    run_turn(w, "x").result.raise_for_status()
    return results[0]


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def pids(path: Path, count: int) -> list[int]:
    """Those that have written their numbers into a file, once there are so many."""
    eventually(lambda: path.exists() and len(path.read_text().split()) >= count)
    return [int(word) for word in path.read_text().split()]


# ---------------------------------------------------------------------- what a command is given


def test_a_text_is_a_shells_and_a_list_is_a_program(place: Path) -> None:
    shell = call(command="echo $((1 + 1)); echo no >&2; pwd")
    assert (shell.status, shell["exitCode"]) == ("completed", 0)
    assert shell["output"] == f"2\nno\n{place}\n"
    assert call(command=["echo", "$HOME", "a b"])["output"] == "$HOME a b\n"
    assert call(command="cat", workdir="sub")["output"] == ""


def test_a_status_other_than_0_is_an_error_with_its_output(place: Path) -> None:
    failed = call(command="echo before; exit 3")
    assert (failed.ok, failed["exitCode"], failed["output"], failed.error) == (False, 3, "before\n", "exit status 3")
    assert call(command="kill -9 $$")["exit_code"] == 137
    missing = call(command=["no-such-program"])
    assert missing.error == "cannot run no-such-program: No such file or directory"


@pytest.mark.parametrize("folder", ["..", "../outside", "/", "link", "/proc/self/cwd"])
def test_a_command_starts_in_the_workspace_and_nowhere_else(place: Path, folder: str) -> None:
    (place / "link").symlink_to("../outside")
    result = call(command=f"touch {place}/ran", workdir=folder)
    assert result.status == "forbidden"
    assert not (place / "ran").exists()


def test_a_folder_that_is_not_there_is_an_error(place: Path) -> None:
    assert call(command="true", workdir="none").error == "none: there is no folder none"


def test_secrets_of_the_process_are_not_passed(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-1")
    monkeypatch.setenv("DATABASE_URL", "postgres://u:p@h/d")
    seen = call(command="env", env={"ASKED": "for"})["output"]
    names = {line.partition("=")[0] for line in seen.splitlines()}
    assert {"PATH", "ASKED", "OPENCLAW_SHELL"} <= names
    assert not names & {"OPENAI_API_KEY", "DATABASE_URL", "PYTHONPATH"}


@pytest.mark.parametrize(
    ("params", "says"),
    [
        ({}, "exec: command: it is required"),
        ({"command": " "}, "it is empty"),
        ({"command": []}, "it is a text for a shell, or a list"),
        ({"command": ["a", 1]}, "it is a text for a shell, or a list"),
        ({"command": "a\0b"}, "NUL"),
        ({"command": "a", "timeout": 0}, "from 1 to 86400"),
        ({"command": "a", "env": {"A B": "x"}}, "no variable can be called 'A B'"),
        ({"command": "a", "env": {"A": 1}}, r"env\.A"),
        ({"command": "a", "pty": True}, "there is no terminal"),
        ({"command": "a", "yieldMs": 10}, "use background"),
    ],
)
def test_a_call_that_is_wrong_runs_nothing(place: Path, params: Any, says: str) -> None:
    with pytest.raises(oc.RunFailed, match=says):
        call(**params)


# ---------------------------------------------------------------------- bounds


def test_output_is_kept_from_its_beginning_and_its_end() -> None:
    kept = KeptOutput()
    for number in range(20_000):
        kept.add(f"{number}\n".encode())
    text = kept.text()
    assert text.startswith("0\n1\n")
    assert text.endswith("19999\n")
    assert kept.cut
    left_out = int(text.partition("[… ")[2].split()[0])
    assert left_out == kept.total - HEAD - TAIL
    assert kept.since_last() == text
    assert kept.since_last() == ""
    kept.add(b"more")
    assert kept.since_last() == "more"


@pytest.mark.parametrize("size", [0, 1, HEAD, HEAD + 1, HEAD + TAIL, HEAD + TAIL + 1])
def test_output_is_cut_only_if_it_has_to_be(size: int) -> None:
    kept = KeptOutput()
    kept.add(b"x" * size)
    assert kept.cut == (size > HEAD + TAIL)
    assert kept.text().count("x") == min(size, HEAD + TAIL)


def test_a_flood_of_output_is_read_and_not_kept(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command_module, "MOST_OUTPUT", 4 << 20)
    result = call(command="yes")
    assert "bytes, the limit is 4194304" in (result.error or "")
    assert result["truncated"] is True
    assert len(result["output"]) <= HEAD + TAIL + 100


def test_a_command_that_takes_too_long_is_ended_with_all_below_it(place: Path) -> None:
    result = call(command="sleep 600 & (sleep 600 & sleep 600) & echo $$ > me; jobs -p >> me; sleep 600", timeout=1)
    assert result.error == "ended: it had not ended after 1 s (timeout)"
    assert result["exitCode"] == 137
    assert result["durationMs"] < 30_000
    assert not any(alive(pid) for pid in pids(place / "me", 3))


def test_what_a_command_leaves_behind_is_ended(place: Path) -> None:
    result = call(command="sleep 600 & echo $! > left; echo done")
    assert (result.status, result["output"], result["leftBehind"]) == ("completed", "done\n", 1)
    assert not alive(pids(place / "left", 1)[0])


def test_one_that_left_its_session_and_its_parent_is_ended_too(place: Path) -> None:
    result = call(command="setsid sh -c 'echo $$ > left; exec sleep 600' </dev/null >/dev/null 2>&1 & sleep 0.2")
    assert result["leftBehind"] >= 1
    assert not alive(pids(place / "left", 1)[0])


def test_a_command_with_too_many_processes_is_ended(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command_module, "MOST_PROCESSES", 20)
    result = call(command="for i in $(seq 40); do sleep 600 & echo $! >> all; done; wait", timeout=60)
    assert "processes, the limit is 20" in (result.error or "")
    assert not any(alive(pid) for pid in pids(place / "all", 21))


BOMB = """
import os, time
deep = 0
while deep < 6:            # bounded, should it not be contained: 64 processes
    if os.fork() == 0:
        deep += 1
        with open("all", "a") as file:
            file.write(f"{os.getpid()}\\n")
    else:
        deep += 1
time.sleep(600)
"""


def test_a_fork_bomb_is_ended_to_the_last(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command_module, "MOST_PROCESSES", 16)
    result = call(command=[sys.executable, "-c", BOMB], timeout=60)
    assert "the limit is 16" in (result.error or "")
    assert not any(alive(pid) for pid in pids(place / "all", 17))


def test_commands_side_by_side_are_bounded(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running_module, "MOST_COMMANDS", 2)

    @oc.agent(id="w", tools=TOOLS)
    def w(turn: oc.SyncTurn) -> str | None:
        for _ in range(2):
            assert turn.tools.exec(command="sleep 600", background=True).ok
        return turn.tools.exec(command="true").error

    assert run_turn(w, "x").result.text == "2 commands run already, the limit is 2; end one with process kill"


# ---------------------------------------------------------------------- background


def test_a_command_in_the_background_is_looked_at_fed_and_killed(place: Path, drive: Drive, port: FakePort) -> None:
    async def body(turn: Any) -> None:
        made = await turn.tools.exec(command="echo up; while read x; do echo got $x; done; echo over", background=True)
        assert (made.status, made["sessionId"]) == ("running", "p1")
        assert (await turn.tools.process(action="poll", sessionId="p1", timeout=60))["output"] == "up\n"
        assert (await turn.tools.process(action="write", id="p1", data="a\n")).ok
        assert (await turn.tools.process(action="poll", sessionId="p1", timeout=60))["output"] == "got a\n"
        assert (await turn.tools.process(action="write", id="p1", data="b\nc\n", eof=True))["bytes"] == 4
        while (last := await turn.tools.process(action="poll", id="p1", timeout=60)).status == "running":
            pass
        assert last["exitCode"] == 0
        log = await turn.tools.process(action="log", id="p1")
        assert log["output"].splitlines() == ["up", "got a", "got b", "got c", "over"]
        part = await turn.tools.process(action="log", id="p1", offset=2, limit=1)
        assert (part["output"], part["totalLines"]) == ("got a\n", 5)
        assert "its input is closed" in (await turn.tools.process(action="write", id="p1", data="x")).error
        assert "ended already" in (await turn.tools.process(action="kill", id="p1")).error
        other = await turn.tools.exec(command="sleep 600", background=True)
        assert (await turn.tools.process(action="kill", sessionId="p2")).status == "killed"
        assert not alive(other["pid"])
        rows = (await turn.tools.process(action="list"))["processes"]
        assert [(row["sessionId"], row["status"], row["exitCode"]) for row in rows] == [
            ("p1", "ended", 0),
            ("p2", "ended", 137),
        ]
        with pytest.raises(oc.ToolInputError, match=r"there is no 'p9' in this turn \(there are: p1, p2\)"):
            await turn.tools.process(action="poll", sessionId="p9")
        with pytest.raises(oc.ToolInputError, match="process: timeout: there is no such parameter"):
            await turn.tools.process(action="kill", sessionId="p1", timeout=1)

    drive.ok(body, port, tools=TOOLS)
    assert {json.loads(row.text)["tool"] for row in port.rows} == {"exec", "process"}


def test_what_runs_in_the_background_ends_with_the_turn(place: Path, drive: Drive, port: FakePort) -> None:
    found = []

    async def body(turn: Any) -> None:
        made = await turn.tools.exec(command="sleep 600 & sleep 600 & wait", background=True)
        found.append(made["pid"])

    drive.ok(body, port, tools=TOOLS)
    assert not alive(found[0])


def test_a_turn_that_fails_ends_them_too(place: Path, drive: Drive, port: FakePort) -> None:
    found = []

    async def body(turn: Any) -> None:
        found.append((await turn.tools.exec(command="sleep 600", background=True))["pid"])
        raise ValueError("boom")

    assert drive(body, port, tools=TOOLS).outcome.state == "failed"
    assert not alive(found[0])


# ---------------------------------------------------------------------- stops


def test_a_stop_ends_a_command_at_once(place: Path, drive: Drive, port: FakePort) -> None:
    import threading

    def stop() -> None:
        pids(place / "all", 2)
        port.cancel()

    async def body(turn: Any) -> None:
        threading.Thread(target=stop).start()
        await turn.tools.exec(command="sleep 600 & echo $! >> all; echo $$ >> all; wait")

    began = time.monotonic()
    assert drive(body, port, tools=TOOLS).outcome.state == "cancelled"
    assert time.monotonic() - began < 30
    assert not any(alive(pid) for pid in pids(place / "all", 2))
    assert json.loads(port.rows[0].text)["status"] == "cancelled"


def test_a_stop_ends_what_runs_in_the_background_while_the_agent_is_deaf(place: Path, drive: Drive) -> None:
    port = FakePort()

    async def body(turn: Any) -> None:
        made = await turn.tools.exec(command="sleep 600", background=True)
        port.cancel()
        eventually(lambda: not alive(made["pid"]))  # the turn has not noticed anything yet

    drive(body, port, tools=TOOLS)


def test_a_call_that_the_agent_gives_up_is_ended(place: Path) -> None:
    @oc.agent(id="w", tools=TOOLS)
    async def w(turn: oc.Turn) -> str:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(0.3):
                await turn.tools.exec(command="echo $$ > me; exec sleep 600")
        eventually(lambda: not alive(pids(place / "me", 1)[0]))
        return "went on"

    assert run_turn(w, "x").result.text == "went on"


def test_a_command_does_not_block_an_async_turn(place: Path) -> None:
    @oc.agent(id="w", tools=TOOLS)
    async def w(turn: oc.Turn) -> None:
        async def open_it() -> None:
            (place / "open").touch()

        waits = turn.tools.exec(command="while [ ! -e open ]; do sleep 0.01; done", timeout=60)
        done, _ = await asyncio.gather(waits, open_it())
        assert done.ok

    run_turn(w, "x").result.raise_for_status()


@oc.agent(id="runner", tools=TOOLS)
def runner(turn: oc.SyncTurn) -> None:
    turn.tools.exec(command=f"cd {turn.input}; (sleep 600 & echo $! >> all; wait) & echo $$ >> all; wait")


def test_a_stop_of_a_session_reaches_its_commands(place: Path) -> None:
    with LocalRuntime(agents=[runner]) as rt:
        receipt = rt.spawn("x", "runner", input=str(place))
        there = pids(place / "all", 2)
        assert rt.stop(receipt.session_key).stopped == 1
        eventually(lambda: not any(alive(pid) for pid in there))


def test_no_thread_and_no_descriptor_is_left(place: Path) -> None:
    import threading

    def counts() -> tuple[int, int]:
        return len(os.listdir("/proc/self/fd")), threading.active_count()

    call(command="true")
    before = counts()
    for _ in range(5):
        call(command="true")
        call(command=["no-such-program"])
    look: Callable[[], bool] = lambda: counts() == before  # noqa: E731
    eventually(look)
