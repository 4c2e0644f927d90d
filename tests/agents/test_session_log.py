"""The output of a session process, from its first to its last moment (actors.session_log)."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

PROCESS = """
import os, sys
from openclaw_ray.actors.session_log import SessionLog

log = SessionLog(sys.argv[1], "a1")
if len(sys.argv) > 2:
    print("loaded")
    for session in ("s1", "s2"):
        log.begin()
        print("said in", session)
        log.end(session)
os.write(1, b"its end\\n")
os.abort()
"""


def run(state: Path, *more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", PROCESS, str(state), *more], capture_output=True, text=True)


def test_how_a_process_ends_that_ran_no_turn_is_told_in_its_own_file_only(tmp_path: Path) -> None:
    done = run(tmp_path)
    assert (done.returncode < 0, done.stdout, done.stderr) == (True, "", "")
    assert (tmp_path / "logs" / "a1.out").read_text() == "its end\n"


def test_what_a_turn_writes_is_its_sessions_and_what_was_before_the_first_is_passed_on(tmp_path: Path) -> None:
    done = run(tmp_path, "turns")
    assert (done.stdout, done.stderr) == ("", "loaded\n")
    written = {path.name: path.read_text() for path in (tmp_path / "logs").iterdir()}
    assert written == {"s1.log": "said in s1\n", "s2.log": "said in s2\n", "a1.out": "its end\n"}
