"""SIGTERM after ``ray.init`` has put a handler of its own there (runtime.sigterm); no Ray here."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import os, signal, sys
from openclaw_ray.runtime.sigterm import keep_sigterm, orderly_sigterm

own = "own" in sys.argv
if own:
    signal.signal(signal.SIGTERM, lambda *_: os._exit(7))
put_back = keep_sigterm()
with orderly_sigterm():
    signal.signal(signal.SIGTERM, lambda *_: os._exit(9))  # as `ray.init` does
if "left" in sys.argv:
    put_back()
try:
    os.kill(os.getpid(), signal.SIGTERM)
finally:
    os.kill(os.getpid(), signal.SIGTERM)
    print("closed", flush=True)
"""


def ended(*how: str) -> tuple[int, str]:
    done = subprocess.run([sys.executable, "-c", PROGRAM, *how], capture_output=True, text=True, timeout=60)
    return done.returncode, done.stdout


def test_the_program_ends_in_order_whatever_comes_meanwhile() -> None:
    assert ended() == (15, "closed\n")


def test_a_programs_own_handler_is_put_back() -> None:
    assert ended("own") == (7, "")


def test_without_ray_it_is_as_it_was() -> None:
    assert ended("left") == (-15, "")
