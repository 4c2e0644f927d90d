"""What the fault tests share: their Ray and runtime, what agents have said, drivers in processes of their own."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import ray
from fault_agents import AGENTS, CONFIG

import openclaw_ray as oc
from openclaw_ray.forking import forked_workers
from openclaw_ray.store.places import JOURNAL
from openclaw_ray.testing.eventually import eventually
from openclaw_ray.testing.leaks import ProcessMark, assert_at_rest, assert_gone

__all__ = ["HERE", "LONG", "ROUNDS", "TIER", "Driver", "Log", "Tier", "at_rest", "whole", "within"]

HERE = Path(__file__).parent
LONG = os.environ.get("OPENCLAW_RAY_LONG") == "1"
ROUNDS = 200 if LONG else 30


class Tier:
    """The Ray of the tier, and the runtime of all modules that want nothing special: there from the first test
    that asks for it to the last one of the tier, as other tiers want a Ray of their own."""

    def __init__(self) -> None:
        self._own_ray = False
        self._runtime: oc.Runtime | None = None

    def address(self) -> str:
        """Of the Ray."""
        if not ray.is_initialized():
            self._own_ray = True
            with forked_workers():
                ray.init(
                    address="local",
                    num_cpus=2,
                    include_dashboard=False,
                    logging_level="ERROR",
                    log_to_driver=False,
                )
        return str(ray.get_runtime_context().gcs_address)

    def runtime(self) -> oc.Runtime:
        """The runtime."""
        if self._runtime is None:
            self.address()
            self._runtime = oc.Runtime.start(agents=AGENTS, config=CONFIG)
        return self._runtime

    def close(self) -> None:
        """End both; harmless twice."""
        runtime, self._runtime = self._runtime, None
        own, self._own_ray = self._own_ray, False
        try:
            if runtime is not None:
                runtime.close()
                assert_gone(runtime.name)
        finally:
            if own:
                ray.shutdown()


TIER = Tier()


def at_rest(runtime: oc.Runtime) -> None:
    """Check that it is, and see to it that it is for the next test."""
    try:
        assert_at_rest(runtime, timeout=20)
    except AssertionError:
        for row in runtime.runs(state=["queued", "running", "paused"], limit=1_000):
            runtime.stop(row["sessionKey"], timeout=20)
        raise


def whole(state_dir: str | Path) -> None:
    """A journal is as SQLite wants it, to the last page."""
    with sqlite3.connect(f"file:{Path(state_dir) / JOURNAL}?mode=ro", uri=True) as journal:
        assert journal.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert journal.execute("PRAGMA foreign_key_check").fetchall() == []
    journal.close()


def within(seconds: float) -> float:
    """A bound, stretched by how busy the machine is: it is meant for one that is not."""
    return seconds * max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))


class Log:
    """What agents have said."""

    def __init__(self, path: Path) -> None:
        self.path = str(path)

    def lines(self) -> list[str]:
        try:
            return Path(self.path).read_text().splitlines()
        except FileNotFoundError:
            return []

    def doubled(self) -> dict[str, int]:
        """Lines that are there more than once."""
        return {line: times for line, times in Counter(self.lines()).items() if times > 1}

    def wait_for(self, count: int, timeout: float = 60.0) -> list[str]:
        """Wait until that many lines are there."""
        eventually(lambda: len(self.lines()) >= count, timeout, what=f"{count} lines of agents")
        return self.lines()


class Driver:
    """A Python program in a process of its own, with a mark that all it starts inherits; ``before`` are words of a
    command that runs it."""

    def __init__(
        self, *arguments: str, cwd: str | None = None, before: Sequence[str] = (), **environment: str
    ) -> None:
        self.mark = ProcessMark()
        paths = [str(HERE), str(Path(oc.__file__).parent.parent)]
        env = self.mark.environment({**os.environ, "PYTHONPATH": os.pathsep.join(paths), **environment})
        self.process = subprocess.Popen(
            [*before, sys.executable, *arguments],
            env=env,
            cwd=cwd,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def line(self) -> str:
        """The next line that it prints; what Ray says there of its workers is none of its."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        while "(raylet)" in line:
            line = self.process.stdout.readline()
        if not line:
            assert self.process.stderr is not None
            errors = self.process.stderr.read()
            raise AssertionError(f"the driver ended with {self.process.wait(30)}:\n{errors[-4000:]}")
        return line.strip()

    def leave(self) -> None:
        """Have it end by itself, by the end of its input."""
        assert self.process.stdin is not None
        assert self.process.stderr is not None
        self.process.stdin.close()
        code = self.process.wait(timeout=30)
        assert code == 0, f"the driver ended with {code}:\n{self.process.stderr.read()[-4000:]}"

    def end(self) -> None:
        """Be sure that it is over."""
        self.process.kill()
        self.process.wait(timeout=30)
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            assert stream is not None
            stream.close()
