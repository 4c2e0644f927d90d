"""The fault tier: tests that really kill processes (STYLE.md 10).

1. They share one Ray and one runtime, which must be at rest again after each of them; a module that wants
   other settings gives its own `config`. What does not survive (drivers, Ray itself) is done in processes of
   its own; `Driver` starts them.
2. Chances come from ``seed``: 1 by default, ``OPENCLAW_RAY_FAULT_SEED`` for another.
3. The short form runs by default. ``OPENCLAW_RAY_LONG=1`` adds the tests marked ``long`` and makes the rounds
   of the others many (`ROUNDS`); with ``-m long`` the former run alone.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import ray
from fault_agents import AGENTS, CONFIG

import openclaw_ray as oc
from openclaw_ray.testing.eventually import eventually
from openclaw_ray.testing.leaks import ProcessMark, assert_at_rest, assert_gone

HERE = Path(__file__).parent
LONG = os.environ.get("OPENCLAW_RAY_LONG") == "1"
ROUNDS = 200 if LONG else 30


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave the long form out unless it is asked for."""
    if LONG or "long" in (config.getoption("markexpr") or ""):
        return
    out = [item for item in items if HERE in item.path.parents and item.get_closest_marker("long")]
    if out:
        config.hook.pytest_deselected(items=out)
        items[:] = [item for item in items if item not in out]


@pytest.fixture(scope="session")
def ray_here() -> Iterator[str]:
    """One Ray for the tier; gives its address."""
    mine = not ray.is_initialized()
    if mine:
        ray.init(
            address="local", num_cpus=2, include_dashboard=False, logging_level="ERROR", log_to_driver=False
        )
    yield ray.get_runtime_context().gcs_address
    if mine:
        ray.shutdown()


@pytest.fixture(scope="module")
def config() -> dict[str, object]:
    """Section ``ray`` of the runtime's configuration."""
    return {}


@pytest.fixture(scope="session")
def of_all(ray_here: str) -> Iterator[oc.Runtime]:
    """The runtime of all modules that want nothing special."""
    with oc.Runtime.start(agents=AGENTS, config=CONFIG) as runtime:
        yield runtime
    assert_gone(runtime.name)


@pytest.fixture(scope="module")
def shared(
    request: pytest.FixtureRequest, ray_here: str, config: dict[str, object]
) -> Iterator[oc.Runtime]:
    """The module's runtime."""
    if not config:
        yield request.getfixturevalue("of_all")
        return
    with oc.Runtime.start(agents=AGENTS, config={**CONFIG, "ray": config}) as runtime:
        yield runtime
    assert_gone(runtime.name)


@pytest.fixture
def rt(shared: oc.Runtime) -> Iterator[oc.Runtime]:
    """The module's runtime, at rest again after the test."""
    yield shared
    at_rest(shared)


def at_rest(runtime: oc.Runtime) -> None:
    """Check that it is, and see to it that it is for the next test."""
    try:
        assert_at_rest(runtime, timeout=20)
    except AssertionError:
        for row in runtime.runs(state=["queued", "running", "paused"], limit=1_000):
            runtime.stop(row["sessionKey"], timeout=20)
        raise


@pytest.fixture
def seed() -> int:
    """Of all chances."""
    return int(os.environ.get("OPENCLAW_RAY_FAULT_SEED", "1"))


@pytest.fixture
def log(tmp_path: Path) -> Log:
    """A file in which agents say what they do."""
    return Log(tmp_path / "log")


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
    """A Python program in a process of its own, with a mark that all it starts inherits."""

    def __init__(self, *arguments: str, **environment: str) -> None:
        self.mark = ProcessMark()
        paths = [str(HERE), str(Path(oc.__file__).parent.parent)]
        env = self.mark.environment({**os.environ, "PYTHONPATH": os.pathsep.join(paths), **environment})
        self.process = subprocess.Popen(
            [sys.executable, *arguments],
            env=env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def line(self) -> str:
        """The next line that it prints."""
        assert self.process.stdout is not None
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


@pytest.fixture
def drivers() -> Iterator[Callable[..., Driver]]:
    """Starts `Driver`s and ends those that are left."""
    started: list[Driver] = []

    def start(*arguments: str, **environment: str) -> Driver:
        started.append(Driver(*arguments, **environment))
        return started[-1]

    yield start
    for driver in started:
        driver.end()
