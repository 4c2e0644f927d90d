"""Beside Ray's tasks, actors and libraries: what a host's pipeline does with a runtime, and what becomes of it when one
of the pipeline's processes dies (DESIGN.md 1, 5)."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil
import pytest
import ray
from support.programs import run_program

import openclaw_ray as oc
from openclaw_ray.testing.eventually import eventually
from openclaw_ray.testing.leaks import ProcessMark

if TYPE_CHECKING:
    from support.runtimes import Gate

pytestmark = pytest.mark.ray

LEASE = 15
"""``ray.clientLeaseSeconds`` of the shared runtime."""
HERE = Path(__file__).parent
needs_data = pytest.mark.skipif(find_spec("pyarrow") is None, reason="needs pip install '.[pipelines]'")
needs_tune = pytest.mark.skipif(find_spec("tensorboardX") is None, reason="needs pip install '.[pipelines]'")


@pytest.fixture(autouse=True, scope="module")
def _by_value() -> Iterator[None]:
    """What tasks and actors are given here is not on their paths."""
    module = sys.modules[__name__]
    ray.cloudpickle.register_pickle_by_value(module)
    yield
    ray.cloudpickle.unregister_pickle_by_value(module)


# ---------------------------------------------------------------------- tasks and actors that die


def part(runtime: str, place: str, count: int) -> list[tuple[str | None, bool]]:
    """A task's share of the work; its process dies in the middle of its first try."""
    mark = os.path.join(place, "tried")
    first = not os.path.exists(mark)
    open(mark, "w").close()
    done: list[tuple[str | None, bool]] = []
    with oc.Runtime.connect(runtime) as client:
        for result in client.imap("flaky", [(place, 0)] * count, width=2, map_id=place):
            done.append((result.text, result.reused))
            if first and len(done) == count // 2:
                os._exit(1)
    return done


def test_a_task_that_ray_tries_again_runs_no_session_twice(rt: oc.Runtime, gate: Gate) -> None:
    began = time.monotonic()
    task = ray.remote(num_cpus=0, max_retries=2)(part)
    done = ray.get(task.remote(rt.name, str(gate.place), 20), timeout=60)
    reused = [index for index, (_, again) in enumerate(done) if again]
    assert len(done) == 20
    assert len(reused) >= 10
    assert {len(gate.lines(f"tries-{index}")) for index in reused} == {1}
    assert time.monotonic() - began < LEASE, "the first try's end was seen, not waited for"


class Stage:
    """An actor of a host's that keeps a client open."""

    def __init__(self, runtime: str, place: str) -> None:
        self.rt = oc.Runtime.connect(runtime)
        self.receipt = self.rt.spawn("wait", "hold", input=place)

    def run(self) -> str:
        return self.receipt.run_id


def test_what_a_killed_actor_had_at_work_is_stopped_long_before_its_lease_is_over(rt: oc.Runtime, gate: Gate) -> None:
    stage = ray.remote(num_cpus=0)(Stage).remote(rt.name, str(gate.place))
    run = ray.get(stage.run.remote(), timeout=30)
    gate.wait_for(1)
    ray.kill(stage)
    began = time.monotonic()
    eventually(lambda: run in [row["runId"] for row in rt.runs(agent="hold", state="cancelled")], LEASE)
    assert time.monotonic() - began < LEASE / 2


# ---------------------------------------------------------------------- Ray Data


def job(program: str, *arguments: object, lasts: float = 100.0) -> Any:
    """The answer of a program on the Ray that is there."""
    env = {"RAY_ADDRESS": ray.get_runtime_context().gcs_address, "PYTHONWARNINGS": None}
    return run_program(HERE / program, *map(str, arguments), env=env, timeout=lasts).answer()


def check(answer: dict[str, Any], rows: int) -> None:
    """All rows in order, the batches' arrays where Ray Data had put them, and no session of a batch run again that had
    ended well before one of the job's actors was killed."""
    assert answer["rows"] == rows
    assert answer["in order"]
    assert answer["right"]
    assert answer["arrays"] == [[False, True]]
    assert answer["killed"] == 1
    assert answer["run again"] == 0


@needs_data
def test_a_data_job_has_its_rows_in_order_though_one_of_its_actors_is_killed(shared: oc.Runtime, gate: Gate) -> None:
    check(job("data_program.py", "rows", gate, 240, 40), 240)


@pytest.mark.long
@pytest.mark.timeout(600)
@needs_data
def test_ten_thousand_rows_with_a_tree_for_each_batch_take_no_more_memory(shared: oc.Runtime, gate: Gate) -> None:
    answer = job("data_program.py", "rows", gate, 10_000, 100, lasts=580)
    check(answer, 10_000)
    assert {"driver", "registry"} < set(answer["megabytes"])
    for part, (early, late) in answer["megabytes"].items():
        assert late - early < 30, (part, early, late)


@needs_data
@pytest.mark.parametrize("own", [pytest.param(True, marks=pytest.mark.long), False])
def test_ctrl_c_ends_a_data_job_with_all_its_sessions(shared: oc.Runtime, gate: Gate, own: bool) -> None:
    mark = ProcessMark()
    environment = mark.environment() | {"PYTHONPATH": os.pathsep.join(sys.path)}
    if not own:
        environment["RAY_ADDRESS"] = ray.get_runtime_context().gcs_address
    with subprocess.Popen(
        [sys.executable, str(HERE / "data_program.py"), "endless", str(gate)],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as job:
        gate.wait_for(4, timeout=60)
        sessions = [psutil.Process(int(pid)) for pid in gate.lines("pids")]
        job.send_signal(signal.SIGINT)
        began = time.monotonic()
        said = job.communicate(timeout=30)[1]
        assert "KeyboardInterrupt" in said, said[-4000:]
        psutil.wait_procs(sessions, timeout=5)
    assert [each for each in sessions if each.is_running()] == []
    assert time.monotonic() - began < 15
    mark.assert_none(timeout=15 if own else 5)


# ---------------------------------------------------------------------- Ray Tune


@needs_tune
def test_a_trial_that_is_pruned_has_its_tree_stopped(shared: oc.Runtime, gate: Gate) -> None:
    answer = job("tune_program.py", gate)
    assert answer["steps"] == 2
    assert answer["ended"] == ["cancelled"] * 4
    assert answer["seconds"] < LEASE / 2
