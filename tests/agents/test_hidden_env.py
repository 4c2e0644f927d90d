"""actors.hidden_env: names that a store refers to are not in a session process's environment, nor shown of it."""

from __future__ import annotations

import subprocess
import sys

_PATH = ":".join(sys.path)


def test_a_hidden_name_is_in_no_environment_and_the_others_are() -> None:
    program = """
import os, subprocess, sys
from openclaw_ray.actors.hidden_env import hide_env
hide_env(["TEST_HIDDEN", "TEST_NOT_THERE", "TEST_LATER"])
shown = open("/proc/self/environ", "rb").read()
child = subprocess.run(["env"], capture_output=True).stdout
for seen in (shown, child, repr(dict(os.environ)).encode()):
    assert b"do-not-show" not in seen, seen
assert b"TEST_SEEN=yes" in shown and b"TEST_SEEN=yes" in child
os.environ["TEST_LATER"] = "do-not-show-later"
hide_env(["TEST_LATER"])
assert b"do-not-show" not in subprocess.run(["env"], capture_output=True).stdout
print("done")
"""
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={"TEST_HIDDEN": "do-not-show-äöü", "TEST_SEEN": "yes", "PATH": "/bin:/usr/bin", "PYTHONPATH": _PATH},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stdout.strip() == "done", done.stderr
