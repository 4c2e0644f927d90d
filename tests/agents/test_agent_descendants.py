"""Descendants: found, killed and waited for, each in a process of its own that leads a session."""

from __future__ import annotations

import subprocess
import sys
import textwrap

HEAD = """
import os, subprocess, sys
from openclaw_ray.agents.descendants import (
    become_subreaper, has_children, kill_descendants, living_children, reap_orphans
)

def start(line, **kwargs):
    "Run a shell line that says `up` when all it starts has started."
    child = subprocess.Popen(["sh", "-c", line], stdout=subprocess.PIPE, **kwargs)
    assert child.stdout.readline() == b"up\\n"
    return child

def until_ended(pid=None):
    os.waitid(os.P_ALL if pid is None else os.P_PID, pid or 0, os.WEXITED | os.WNOWAIT)
"""


def run(body: str) -> None:
    code = HEAD + textwrap.dedent(body)
    done = subprocess.run(
        [sys.executable, "-W", "error::DeprecationWarning", "-c", code],
        capture_output=True,
        text=True,
        timeout=60,
        start_new_session=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_a_process_without_children_has_nothing_to_kill() -> None:
    run("""
        assert not has_children()
        assert living_children() == []
        assert kill_descendants() == 0
        assert reap_orphans() == 0
    """)


def test_a_shell_and_what_it_put_into_the_background_are_killed() -> None:
    run("""
        child = start("sleep 300 & sleep 300 & echo up; wait")
        assert len(living_children()) == 3
        assert kill_descendants() == 3
        assert living_children() == []
        # the exit status is still its owner's
        assert child.wait() == -9
    """)


def test_an_orphan_is_found_by_the_process_group() -> None:
    run("""
        child = start("(sleep 300 & echo up)")
        child.wait()
        assert not has_children()
        assert kill_descendants() == 1
        assert kill_descendants() == 0
    """)


def test_an_orphan_in_a_session_of_its_own_comes_back_to_a_subreaper() -> None:
    run("""
        assert become_subreaper()
        child = start("(setsid sh -c 'echo up; exec sleep 300' &)")
        child.wait()
        while [orphan.name for orphan in living_children()] != ["sleep 300"]:
            pass  # the shell that said `up` has not become it yet
        assert kill_descendants() == 1
        until_ended()
        assert reap_orphans() == 1
        assert not has_children()
    """)


def test_processes_that_start_others_are_killed_until_none_is_left() -> None:
    run("""
        assert become_subreaper()
        start("echo up; while true; do (sleep 300 & sleep 0.001); done")
        assert kill_descendants() >= 1
        assert living_children() == []
    """)


def test_the_descendants_of_another_process_can_be_killed() -> None:
    run("""
        child = start("sleep 300 & echo up; wait; exec sleep 300")
        assert kill_descendants(child.pid) == 1
        assert child.poll() is None
        kill_descendants()
        assert child.wait() == -9
    """)


def test_a_group_that_another_process_leads_is_left_alone() -> None:
    run("""
        sibling = start("echo up; exec sleep 300")
        code = '''
    import os
    from openclaw_ray.agents.descendants import kill_descendants
    assert os.getpgid(0) != os.getpid()
    assert kill_descendants() == 0
    '''
        subprocess.run([sys.executable, "-c", code.replace("\\n    ", "\\n")], check=True)
        assert sibling.poll() is None
        sibling.kill()
        sibling.wait()
    """)


def test_an_exit_status_that_somebody_may_ask_for_is_left_to_them() -> None:
    run("""
        import multiprocessing
        child = subprocess.Popen(["sh", "-c", "exit 7"])
        process = multiprocessing.get_context("fork").Process(target=os._exit, args=(5,))
        process.start()
        until_ended(child.pid)
        until_ended(process.pid)
        assert reap_orphans() == 0
        assert child.wait() == 7
        process.join()
        assert process.exitcode == 5
    """)


def test_an_ended_child_that_nobody_holds_is_waited_for() -> None:
    run("""
        pid = os.fork()
        if pid == 0:
            os._exit(0)
        until_ended(pid)
        assert reap_orphans(known=[pid]) == 0
        assert reap_orphans() == 1
        assert not has_children()
    """)
