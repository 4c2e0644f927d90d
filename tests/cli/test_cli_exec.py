"""The template of ``--exec``, and the command that runs for an item."""

from __future__ import annotations

import os
import pickle
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import psutil
import pytest

from openclaw_ray.agents.builtin.command import KEPT_OUTPUT, CommandFailed, run_command
from openclaw_ray.agents.builtin.command_tree import end_tree
from openclaw_ray.cli.exec_template import ExecTemplate
from openclaw_ray.cli.exits import CommandError

HOSTILE = [
    "a b",
    "'",
    '"',
    "; touch hacked",
    "$(touch hacked)",
    "`touch hacked`",
    "a\nb",
    "--help",
    "*",
    "\\",
    "$1",
    "{}",
]


def nothing() -> None:
    """Never cancelled."""


@pytest.mark.parametrize("item", HOSTILE)
@pytest.mark.parametrize("template", ["printf %s {}", "printf %s"])
@pytest.mark.parametrize("shell", [False, True])
def test_an_item_is_one_argument_whatever_is_in_it(template: str, shell: bool, item: str, tmp_path: Path) -> None:
    argv = ExecTemplate.parse(template, shell=shell).argv(item)
    assert run_command(argv, cwd=str(tmp_path), check=nothing) == item.removesuffix("\n")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("item", HOSTILE)
def test_an_item_in_a_pipeline_a_comment_or_a_here_document_is_never_run(item: str, tmp_path: Path) -> None:
    line = "printf %s {} | cat # {}\ncat <<END >/dev/null\n{}\nEND\n"
    argv = ExecTemplate.parse(line, shell=True).argv(item)
    assert run_command(argv, cwd=str(tmp_path), check=nothing) == item
    assert list(tmp_path.iterdir()) == []


def test_the_place_may_be_a_part_of_a_word() -> None:
    assert ExecTemplate.parse("cp {} 'to here/{}.bak'").argv("a b") == ["cp", "a b", "to here/a b.bak"]
    argv = ExecTemplate.parse("echo pre{}post", shell=True).argv("a  b")
    assert run_command(argv, cwd=None, check=nothing) == "prea  bpost"


@pytest.mark.parametrize("template", ["echo '{}'", 'echo "{}"', "sh -c 'echo {}'", "echo \"a\" 'b {} c'"])
def test_a_place_inside_quotes_of_a_shell_line_is_refused_with_the_way_out(template: str) -> None:
    with pytest.raises(CommandError, match="write it without quotes"):
        ExecTemplate.parse(template, shell=True)


@pytest.mark.parametrize("shell", [False, True])
@pytest.mark.parametrize("template", ["", "  ", "echo 'open", "a\0b"])
def test_a_template_that_is_no_command_is_refused(template: str, shell: bool) -> None:
    with pytest.raises(CommandError, match="--exec") as caught:
        ExecTemplate.parse(template, shell=shell)
    assert caught.value.exit_code == 2


def test_output_loses_one_newline_and_undecodable_bytes_are_replaced() -> None:
    assert run_command(["printf", "a\\n\\n"], cwd=None, check=nothing) == "a\n"
    assert run_command(["printf", "a\\377b"], cwd=None, check=nothing) == "a\ufffdb"
    assert run_command(["true"], cwd=None, check=nothing) == ""


def test_a_command_has_empty_input() -> None:
    assert run_command(["cat"], cwd=None, check=nothing) == ""


def test_an_exit_status_is_an_error_with_the_end_of_standard_error() -> None:
    with pytest.raises(CommandFailed) as caught:
        run_command(["sh", "-c", "echo oh no >&2; exit 3"], cwd=None, check=nothing)
    assert str(caught.value) == "exit status 3: oh no"
    assert caught.value.exit_status == 3


def test_standard_error_of_any_length_leaves_its_end() -> None:
    with pytest.raises(CommandFailed) as caught:
        run_command(["sh", "-c", "seq 1 100000 >&2; exit 1"], cwd=None, check=nothing)
    assert str(caught.value).endswith("\n100000")
    assert len(str(caught.value)) < 5000


def test_a_death_by_signal_names_the_signal() -> None:
    with pytest.raises(CommandFailed, match=r"ended by SIGKILL \(exit status 137\)"):
        run_command(["sh", "-c", "kill -9 $$"], cwd=None, check=nothing)


@pytest.mark.parametrize(
    ("argv", "cwd", "status", "text"),
    [
        (["no-such-command-at-all"], None, 127, "command not found: no-such-command-at-all"),
        (["true"], "/no/such/folder", 127, "the folder /no/such/folder is not there"),
        (["/etc/passwd"], None, 126, "cannot run /etc/passwd: Permission denied"),
        (["echo", "a\0b"], None, 126, "cannot run echo: embedded null byte"),
        (["echo", "x" * 3_000_000], None, 126, "cannot run echo: Argument list too long"),
    ],
)
def test_what_cannot_start_says_why(argv: list[str], cwd: str | None, status: int, text: str) -> None:
    with pytest.raises(CommandFailed) as caught:
        run_command(argv, cwd=cwd, check=nothing)
    assert str(caught.value).startswith(text)
    assert caught.value.exit_status == status


def test_a_failure_survives_pickling() -> None:
    again = pickle.loads(pickle.dumps(CommandFailed("exit status 3", 3)))
    assert (str(again), again.exit_status) == ("exit status 3", 3)


def test_endless_output_is_read_on_but_only_its_head_is_kept() -> None:
    text = run_command(["sh", "-c", "yes | head -c 5000000"], cwd=None, check=nothing)
    assert len(text) == KEPT_OUTPUT - 1


class Stop(BaseException):
    """What `check` raises in these tests."""


def test_a_stop_ends_the_command_and_all_below_it() -> None:
    pids: list[int] = []

    def check() -> None:
        here = psutil.Process().children(recursive=True)
        if len(here) >= 3:
            pids.extend(process.pid for process in here)
            raise Stop

    with pytest.raises(Stop):
        run_command(["sh", "-c", "sleep 300 & sh -c 'sleep 300; true'; true"], cwd=None, check=check)
    assert len(pids) >= 3
    assert not any(psutil.pid_exists(pid) and _runs(pid) for pid in pids)


def test_a_command_that_ignores_sigterm_is_killed() -> None:
    with subprocess.Popen(["sh", "-c", "trap '' TERM; echo ready; while :; do sleep 1; done"], stdout=-1) as deaf:
        assert deaf.stdout is not None
        assert deaf.stdout.readline() == b"ready\n"
        end_tree(deaf.pid, grace=0.1)
        assert deaf.wait() == -9


def test_a_stop_reaches_a_command_that_closed_its_outputs() -> None:
    ticks = iter(range(3))

    def check() -> None:
        if next(ticks, None) is None:
            raise Stop

    with pytest.raises(Stop):
        run_command(["sh", "-c", "exec >&- 2>&-; sleep 300"], cwd=None, check=check)


_LEADER = """
import os, subprocess, sys
os.setpgid(0, 0)
from openclaw_ray.agents.builtin.command import run_command
print(run_command(["sh", "-c", "sleep 300 & echo $!"], cwd=None, check=lambda: None))
"""


def test_a_process_left_behind_with_the_outputs_is_ended_in_a_process_that_leads_its_group() -> None:
    done = subprocess.run([sys.executable, "-c", _LEADER], capture_output=True, text=True, timeout=60, check=True)
    assert not _runs(int(done.stdout))


_ADOPTS = """
import sys
from openclaw_ray.agents.builtin.command import run_command
from openclaw_ray.agents.descendants import become_subreaper
assert become_subreaper()
print(run_command(["sh", "-c", sys.argv[1] + " >/dev/null 2>&1 & echo $!"], cwd=None, check=lambda: None))
"""


@pytest.mark.parametrize("command", ["sleep 300", "setsid sleep 300", "sh -c 'sleep 300; true'"])
def test_whatever_a_command_leaves_behind_is_ended_in_a_process_that_orphans_come_back_to(
    command: str,
) -> None:
    script = [sys.executable, "-c", _ADOPTS, command]
    done = subprocess.run(script, capture_output=True, text=True, timeout=60, check=True)
    assert not _runs(int(done.stdout))


_BESIDE = """
import os, subprocess, sys
os.setpgid(0, 0)
start = ["sh", "-c", "sleep 300 >/dev/null 2>&1 & echo $!"]
before = subprocess.run(start, stdout=-1).stdout.decode().strip()
from openclaw_ray.agents.builtin.command_tree import birth, end_tree
beside = subprocess.Popen(["sleep", "300"])
end_tree(None, since=birth(beside.pid))
print(before, beside.pid, beside.poll())
beside.kill()
os.kill(int(before), 9)
"""


def test_what_was_there_before_the_command_and_other_commands_are_left_alone() -> None:
    done = subprocess.run([sys.executable, "-c", _BESIDE], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.split()[2] == "None"
    assert done.stderr == ""


def test_a_command_left_behind_does_not_hold_up_the_item() -> None:
    orphan = ""
    over = threading.Timer(30, lambda: os._exit(3))
    over.start()
    try:
        orphan = run_command(["sh", "-c", "sleep 300 & echo $!"], cwd=None, check=nothing)
    finally:
        over.cancel()
        if orphan:
            os.kill(int(orphan), 9)


def _runs(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def test_these_tests_have_their_commands() -> None:
    assert all(shutil.which(command) for command in ("sh", "printf", "cat", "seq", "yes", "sleep"))
