"""StateLock: one opener, told by name, and free again however it ended."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from openclaw_ray.core.errors import RuntimeInUse, StateDirError
from openclaw_ray.store.statelock import Owner, StateLock, owner_of

HOLDER = """
import sys
from openclaw_ray.store.statelock import StateLock

with StateLock(sys.argv[1]):
    print("held", flush=True)
    sys.stdin.read()
"""

RACER = """
import sys
from openclaw_ray.core.errors import RuntimeInUse
from openclaw_ray.store.statelock import StateLock

sys.stdin.readline()
lock = StateLock(sys.argv[1])
try:
    lock.acquire()
    print("held", flush=True)
except RuntimeInUse as error:
    print(error.pid, flush=True)
sys.stdin.read()
lock.release()
"""


@contextmanager
def process(code: str, folder: Path) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        [sys.executable, "-c", code, str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as started:
        try:
            yield started
        finally:
            started.kill()


def line(started: subprocess.Popen[str]) -> str:
    assert started.stdout is not None
    return started.stdout.readline().strip()


def test_a_second_opener_is_told_who_has_it(tmp_path: Path) -> None:
    before = time.time()
    with process(HOLDER, tmp_path) as holder:
        assert line(holder) == "held"
        with pytest.raises(RuntimeInUse) as caught:
            StateLock(tmp_path, "nightly").acquire()
    error = caught.value
    assert (error.name, error.pid, error.host) == ("nightly", holder.pid, socket.gethostname())
    assert before <= error.since <= time.time()


def test_a_killed_holder_frees_it_at_once(tmp_path: Path) -> None:
    with process(HOLDER, tmp_path) as holder:
        assert line(holder) == "held"
        holder.send_signal(signal.SIGKILL)
        holder.wait()
        assert owner_of(tmp_path) is None, "its note is not believed"
        with StateLock(tmp_path) as lock:
            assert lock.held
            owner = owner_of(tmp_path)
            assert owner is not None
            assert owner.pid == os.getpid()


def test_a_holder_that_ends_in_order_leaves_no_note(tmp_path: Path) -> None:
    with process(HOLDER, tmp_path) as holder:
        assert line(holder) == "held"
        holder.communicate(timeout=30)
    assert not (tmp_path / "owner.json").exists()
    StateLock(tmp_path).acquire().release()


def test_of_processes_that_race_one_wins_and_the_others_name_it(tmp_path: Path) -> None:
    with process(RACER, tmp_path) as a, process(RACER, tmp_path) as b, process(RACER, tmp_path) as c:
        for racer in (a, b, c):
            assert racer.stdin is not None
            racer.stdin.write("go\n")
            racer.stdin.flush()
        words = {racer.pid: line(racer) for racer in (a, b, c)}
    (winner,) = (pid for pid, word in words.items() if word == "held")
    assert sorted(words.values()) == sorted(["held", str(winner), str(winner)])


def test_a_second_opener_in_the_same_process_is_refused_too(tmp_path: Path) -> None:
    with StateLock(tmp_path):
        with pytest.raises(RuntimeInUse) as caught:
            StateLock(tmp_path).acquire()
        assert caught.value.pid == os.getpid()


def test_acquiring_twice_is_once_and_releasing_twice_harmless(tmp_path: Path) -> None:
    lock = StateLock(tmp_path)
    assert lock.acquire() is lock.acquire()
    lock.release()
    assert not lock.held
    lock.release()
    with StateLock(tmp_path):
        pass


def test_another_thread_may_release_it(tmp_path: Path) -> None:
    lock = StateLock(tmp_path).acquire()
    thread = threading.Thread(target=lock.release)
    thread.start()
    thread.join()
    with StateLock(tmp_path):
        pass


def test_a_child_process_does_not_inherit_it(tmp_path: Path) -> None:
    lock = StateLock(tmp_path).acquire()
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        lock.release()
        with StateLock(tmp_path):
            pass
        child.kill()


def test_a_folder_that_cannot_be_locked_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(StateDirError, match="no such directory"):
        StateLock(tmp_path / "missing").acquire()
    assert not (tmp_path / "missing").exists()
    (tmp_path / "lock").mkdir()
    with pytest.raises(StateDirError, match="cannot be locked"):
        StateLock(tmp_path).acquire()


def test_a_note_that_cannot_be_written_gives_the_lock_back(tmp_path: Path) -> None:
    (tmp_path / "owner.json").mkdir()
    with pytest.raises(StateDirError, match="cannot be written to"):
        StateLock(tmp_path).acquire()
    assert sorted(path.name for path in tmp_path.iterdir() if path.name != "lock") == ["owner.json"]
    (tmp_path / "owner.json").rmdir()
    with StateLock(tmp_path):
        pass


@pytest.mark.parametrize(
    "note", ["", "{}", "[]", '{"pid": "x", "host": "h", "since": 1}', '{"pid": 0, "host": "h", "since": 1}']
)
def test_a_damaged_note_is_no_owner(tmp_path: Path, note: str) -> None:
    (tmp_path / "owner.json").write_text(note)
    assert owner_of(tmp_path) is None


def test_a_note_from_another_host_is_believed(tmp_path: Path) -> None:
    (tmp_path / "owner.json").write_text(json.dumps({"pid": 999_999_999, "host": "elsewhere", "since": 5.0}))
    assert owner_of(tmp_path) == Owner(999_999_999, "elsewhere", 5.0)
