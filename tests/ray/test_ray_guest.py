"""A good guest: on a host's Ray, in its tasks and actors, beside other runtimes (DESIGN.md 5, 7; SCENARIOS.md K)."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import agents
import pytest
import ray
from support.programs import run_program

import openclaw_ray as oc
from openclaw_ray.actors.names import runtimes_alive
from openclaw_ray.core.errors import (
    ConfigError,
    PickleRefused,
    RuntimeClosed,
    RuntimeInUse,
    RuntimeNotFound,
    StateDirError,
    UnknownAgent,
)
from openclaw_ray.testing.eventually import eventually
from openclaw_ray.testing.leaks import assert_gone

if TYPE_CHECKING:
    from support.runtimes import Gate

    from openclaw_ray.testing.leaks import ProcessMark

pytestmark = pytest.mark.ray

AtRest = Callable[[oc.Runtime], AbstractContextManager[oc.Runtime]]
SMALL: dict[str, Any] = {"ray": {"pool": {"prewarm": 1}}}


@pytest.fixture(autouse=True, scope="module")
def _by_value() -> Iterator[None]:
    """What tasks and actors are given here is not on their paths."""
    for module in (sys.modules[__name__], agents):
        ray.cloudpickle.register_pickle_by_value(module)
    yield
    for module in (sys.modules[__name__], agents):
        ray.cloudpickle.unregister_pickle_by_value(module)


@pytest.fixture(autouse=True)
def _no_runtime_left(shared: oc.Runtime) -> Iterator[None]:
    before = runtimes_alive()
    yield
    eventually(lambda: runtimes_alive() == before, 5, what="no runtime is left over")


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where named runtimes have their state during a test."""
    monkeypatch.setenv("OPENCLAW_STATE_DIR", str(tmp_path))
    return tmp_path / "ray"


# ---------------------------------------------------------------------- on a host's Ray


def test_a_host_keeps_its_ray_its_namespace_and_its_logging() -> None:
    answer = run_program(
        """
        import json, logging, os, sys
        logging.basicConfig(level=logging.WARNING)
        logging.getLogger("hosts.own").setLevel(logging.DEBUG)
        import ray
        ray.init("local", num_cpus=2, namespace="hosts", include_dashboard=False, logging_level=logging.WARNING)

        def seen():
            loggers = [logging.getLogger(name) for name in ("", "ray", "hosts.own")]
            return [[each.level, [repr(h) for h in each.handlers], each.disabled] for each in loggers]

        @ray.remote
        class Count:
            def __init__(self):
                self.n = 0
            def up(self):
                self.n += 1
                return self.n

        counter = Count.options(name="counter", num_cpus=0).remote()
        ray.get(counter.up.remote())
        before, cwd, path, environment = seen(), os.getcwd(), list(sys.path), dict(os.environ)
        import agents
        import openclaw_ray as oc
        config = {
            "agents": {"defaults": {"subagents": {"allowAgents": ["*"]}}},
            "ray": {"pool": {"max": 8, "prewarm": 2}},
        }
        with oc.Runtime.start(agents=agents.ALL, config=config) as rt:
            texts = [result.text for result in rt.map("echo", ["a", "b"])]
            tree = rt.result(rt.spawn("go", "tree", input=(2, 2))).value
            name = rt.name
            inside = ray.get_runtime_context().namespace
        from openclaw_ray.testing.leaks import assert_gone
        assert_gone(name)
        rt.close()
        print(json.dumps({
            "texts": texts,
            "tree": tree,
            "initialised": ray.is_initialized(),
            "namespaces": [inside, ray.get_runtime_context().namespace],
            "count": ray.get(ray.get_actor("counter").up.remote()),
            "task": ray.get(ray.remote(lambda: 42).remote()),
            "logging": seen() == before,
            "cwd": os.getcwd() == cwd,
            "environment": dict(os.environ) == environment,
        }))
        """
    ).answer()
    assert answer == {
        "texts": ["a", "b"],
        "tree": 1 + 2 + 4,
        "initialised": True,
        "namespaces": ["hosts", "hosts"],
        "count": 2,
        "task": 42,
        "logging": True,
        "cwd": True,
        "environment": True,
    }


@pytest.mark.long
def test_a_host_that_shuts_its_ray_down_first_does_not_get_another_one() -> None:
    answer = run_program(
        """
        import json, threading
        import ray
        ray.init("local", num_cpus=2, include_dashboard=False)
        import agents
        import openclaw_ray as oc
        from openclaw_ray.core.errors import RuntimeClosed
        from openclaw_ray.testing.eventually import eventually
        rt = oc.Runtime.start(agents=[agents.echo], config={"ray": {"pool": {"prewarm": 1}}})
        texts = [result.text for result in rt.map("echo", ["a"])]
        ray.shutdown()
        said = []
        for call in (lambda: rt.map("echo", ["b"]), lambda: rt.spawn("b", "echo"), rt.stats):
            try:
                call()
            except RuntimeClosed as error:
                said.append(type(error).__name__)
        rt.close()
        # (a poll that was inside Ray at its end may hang there; it is a daemon's)
        eventually(lambda: not [t for t in threading.enumerate() if t.name == "openclaw-courier"], 15)
        print(json.dumps({"texts": texts, "said": said, "ray": ray.is_initialized()}))
        """
    ).answer()
    assert answer == {"texts": ["a"], "said": ["RuntimeClosed"] * 3, "ray": False}


def start_inside() -> dict[str, Any]:
    """What a host's own code does in a task or an actor."""
    with oc.Runtime.start(agents=[agents.echo], config=SMALL) as runtime:
        texts = [result.text for result in runtime.map("echo", ["a", "b"])]
    return {"name": runtime.name, "texts": texts, "initialised": ray.is_initialized(), "pid": os.getpid()}


class Host:
    """An actor of a host's."""

    def start(self) -> dict[str, Any]:
        return start_inside()

    def connect(self, name: str) -> list[str | None]:
        return connect_inside(name)

    def ping(self) -> str:
        return "alive"


def connect_inside(name: str) -> list[str | None]:
    with oc.Runtime.connect(name) as runtime:
        return [result.text for result in runtime.map("echo", ["c", "d"])]


@pytest.mark.long
def test_it_starts_inside_a_task(shared: oc.Runtime) -> None:
    answer = ray.get(ray.remote(num_cpus=0)(start_inside).remote(), timeout=60)
    assert (answer["texts"], answer["initialised"]) == (["a", "b"], True)
    assert_gone(answer["name"])


@pytest.mark.long
def test_it_starts_inside_an_actor(shared: oc.Runtime) -> None:
    host = ray.remote(num_cpus=0)(Host).remote()
    answer = ray.get(host.start.remote(), timeout=60)
    assert (answer["texts"], answer["initialised"]) == (["a", "b"], True)
    assert_gone(answer["name"])
    assert ray.get(host.ping.remote()) == "alive"
    ray.kill(host)


# ---------------------------------------------------------------------- connecting


def test_a_task_and_an_actor_connect_by_name(rt: oc.Runtime) -> None:
    host = ray.remote(num_cpus=0)(Host).remote()
    task = ray.remote(num_cpus=0)(connect_inside).remote(rt.name)
    assert ray.get([task, host.connect.remote(rt.name)], timeout=60) == [["c", "d"]] * 2
    ray.kill(host)


def test_another_driver_connects_and_its_leaving_stops_what_it_left(rt: oc.Runtime, gate: Gate) -> None:
    address = ray.get_runtime_context().gcs_address
    answer = run_program(
        """
        import json, sys
        from pathlib import Path
        import openclaw_ray as oc
        from openclaw_ray.testing.eventually import eventually
        name, place = sys.argv[1:]
        with oc.Runtime.connect(name) as rt:
            texts = [result.text for result in rt.map("echo", ["a", "b"])]
            left = rt.spawn("wait", "hold", input=place)
            eventually(lambda: list(Path(place).glob("in-*")), 30)
            root = rt.root_key
        import ray
        print(json.dumps({"texts": texts, "root": root, "left": left.run_id, "ray": ray.is_initialized()}))
        """,
        rt.name,
        str(gate.place),
        env={"RAY_ADDRESS": address},
    ).answer()
    assert (answer["texts"], answer["ray"]) == (["a", "b"], False)
    assert answer["root"] != rt.root_key
    [row] = eventually(lambda: rt.runs(root=answer["root"], agent="hold", state="cancelled"))
    assert row["runId"] == answer["left"]
    assert ray.is_initialized()
    assert rt.map("echo", ["still here"])[0].text == "still here"


def test_a_second_client_in_one_process_has_a_root_of_its_own(rt: oc.Runtime) -> None:
    with oc.Runtime.connect(rt.name) as other:
        assert other.root_key != rt.root_key
        assert other.name == rt.name
        receipt = other.spawn("hello", "echo")
        assert other.result(receipt).text == "hello"
        # the first one may look at it, too
        assert rt.result(receipt, timeout=10).text == "hello"
        with pytest.raises(UnknownAgent):
            other.map("nobody", ["x"])
    with pytest.raises(RuntimeClosed):
        other.spawn("x", "echo")


def test_one_client_may_stop_what_another_started(rt: oc.Runtime, gate: Gate) -> None:
    receipt = rt.spawn("wait", "hold", input=gate.place)
    gate.wait_for(1)
    with oc.Runtime.connect(rt.name) as other:
        assert other.stop(receipt.session_key).stopped == 1
    assert rt.result(receipt).status is oc.ResultStatus.CANCELLED


def test_connecting_in_a_turn_is_bound_to_its_session(rt: oc.Runtime) -> None:
    [result] = rt.map("connecting", [rt.name])
    seen = result.raise_for_status().value
    assert seen["root"] == seen["own"] == seen["requester_key"] == result.session_key
    assert seen["depth"] == 2
    assert rt.map("echo", ["still here"])[0].ok


def test_a_name_that_is_not_there_is_said_with_those_that_are(shared: oc.Runtime) -> None:
    with pytest.raises(RuntimeNotFound, match=rf"no runtime 'no-such' .*alive: .*{shared.name}"):
        oc.Runtime.connect("no-such")
    assert ray.is_initialized()


@pytest.mark.long
def test_runtimes_of_different_names_never_see_each_other(rt: oc.Runtime, at_rest: AtRest, gate: Gate) -> None:
    receipt = rt.spawn("wait", "hold", input=gate.place)
    gate.wait_for(1)
    names: list[str] = []

    def visit() -> None:
        with oc.Runtime.start(agents=[agents.echo], config=SMALL) as other, at_rest(other):
            names.append(other.name)
            assert other.map("echo", ["x"])[0].ok
            assert other.stop(receipt.session_key, timeout=10).total == 0
            assert other.runs(session=receipt.session_key) == []
            with pytest.raises(KeyError):
                other.history(receipt.session_key)
            with pytest.raises(KeyError):
                other.result(receipt, timeout=5)
            with pytest.raises(UnknownAgent):
                other.map("hold", [gate.place])
            raise LookupError("leaving by an exception")

    with pytest.raises(LookupError, match="leaving by an exception"):
        visit()
    assert names[0] != rt.name
    assert_gone(names[0])
    gate.open()
    assert rt.result(receipt).text == "through"


# ---------------------------------------------------------------------- names and places


@pytest.mark.long
def test_a_second_start_of_a_name_is_told_who_has_it(state: Path, at_rest: AtRest) -> None:
    with oc.Runtime.start(agents=[agents.echo], config=SMALL, name="mine") as first:
        assert first.state_dir == state / "mine"
        with pytest.raises(RuntimeInUse, match=r"runtime 'mine' is in use by process \d+ on .*if_exists") as caught:
            oc.Runtime.start(agents=[agents.echo], name="mine")
        assert caught.value.pid == os.getpid()
        with oc.Runtime.start(agents=[agents.echo], name="mine", if_exists="connect") as second:
            assert [result.text for result in second.map("echo", ["a"])] == ["a"]
        assert first.map("echo", ["b"])[0].text == "b"
    # free again at once, and with the runs of before in its journal
    with oc.Runtime.start(agents=[agents.echo], config=SMALL, name="mine") as again, at_rest(again):
        assert again.map("echo", ["c"])[0].text == "c"
        assert [row["text"] for row in again.runs(agent="echo")] == ["c", "b", "a"]


def test_a_state_dir_that_another_process_has_is_refused_with_its_pid(shared: oc.Runtime, tmp_path: Path) -> None:
    code = (
        "import sys; from openclaw_ray.store.statelock import StateLock; lock = StateLock(sys.argv[1]); "
        "lock.acquire(); print('locked', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "locked\n"
        with pytest.raises(RuntimeInUse) as caught:
            oc.Runtime.start(agents=[agents.echo], state_dir=tmp_path)
        assert caught.value.pid == other.pid
        other.communicate("")


@pytest.mark.parametrize("place", ["/proc/openclaw", "/dev/null/state"])
def test_a_state_dir_that_cannot_be_is_refused(shared: oc.Runtime, place: str) -> None:
    with pytest.raises(StateDirError, match=rf"state dir {place}: .*; pass another state_dir="):
        oc.Runtime.start(agents=[agents.echo], state_dir=place)


@pytest.mark.parametrize("name", ["", "../up", "a b", "x" * 65])
def test_a_name_that_can_be_none_is_refused(shared: oc.Runtime, name: str) -> None:
    with pytest.raises(ValueError, match="runtime name"):
        oc.Runtime.start(agents=[agents.echo], name=name)


def test_a_wrong_configuration_is_refused_whole_before_anything_starts(shared: oc.Runtime) -> None:
    wrong = {"agents": {"defaults": {"subagents": {"maxConcurent": 1, "maxSpawnDepth": 6}}}}
    with pytest.raises(ConfigError) as caught:
        oc.Runtime.start(agents=[agents.echo], config=wrong)
    text = str(caught.value)
    assert "agents.defaults.subagents.maxConcurent" in text
    assert "did you mean maxConcurrent?" in text
    assert "agents.defaults.subagents.maxSpawnDepth" in text


# ---------------------------------------------------------------------- addresses


def test_an_address_where_no_ray_is_is_refused_in_time() -> None:
    answer = run_program(
        """
        import json, time
        import agents
        import openclaw_ray as oc
        from openclaw_ray.core.errors import RayUnreachable
        began = time.monotonic()
        try:
            oc.Runtime.start(agents=[agents.echo])
        except RayUnreachable as error:
            import ray
            print(json.dumps([str(error), time.monotonic() - began, ray.is_initialized()]))
        """,
        env={"RAY_ADDRESS": "127.0.0.1:1"},
    ).answer()
    assert answer[0].startswith("no Ray cluster at 127.0.0.1:1: ")
    assert answer[0].endswith("check RAY_ADDRESS, or leave it out")
    assert answer[1] < 15
    assert answer[2] is False


def test_ray_client_is_refused_with_the_way_out() -> None:
    answer = run_program(
        """
        import json
        import agents
        import openclaw_ray as oc
        from openclaw_ray.core.errors import RayClientUnsupported
        said = []
        for call in (lambda: oc.Runtime.start(agents=[agents.echo]), lambda: oc.Runtime.connect("any")):
            try:
                call()
            except RayClientUnsupported as error:
                said.append(str(error))
        print(json.dumps(said))
        """,
        env={"RAY_ADDRESS": "ray://127.0.0.1:10001"},
    ).answer()
    assert (
        answer
        == [
            "ray://127.0.0.1:10001: Ray Client is not supported; use `ray job submit`, "
            "or connect from a process on the cluster"
        ]
        * 2
    )


# ---------------------------------------------------------------------- the object, and its end


def test_a_runtime_is_not_pickled_and_says_what_to_do(rt: oc.Runtime) -> None:
    with pytest.raises(PickleRefused, match=rf"Runtime\.connect\('{rt.name}'\)"):
        pickle.dumps(rt)


def test_closing_ends_everything_with_what_was_at_work(shared: oc.Runtime, gate: Gate, mark: ProcessMark) -> None:
    import psutil

    runtime = oc.Runtime.start(agents=[agents.deaf, agents.with_tools], config=SMALL)
    receipts = [runtime.spawn("x", agent, input=gate.place) for agent in ("deaf", "with_tools")]
    gate.wait_for(2)
    pids = {row["pid"] for row in runtime.runs(state="running") if "pid" in row}
    assert len(pids) == 2
    waiting: list[object] = []

    def wait() -> None:
        try:
            runtime.result(receipts[0])
        except RuntimeClosed as error:
            waiting.append(error)

    waiter = threading.Thread(target=wait)
    waiter.start()
    began = time.monotonic()
    runtime.close()
    assert time.monotonic() - began < 20
    waiter.join(10)
    assert len(waiting) == 1
    assert_gone(runtime.name)
    eventually(lambda: not any(psutil.pid_exists(pid) for pid in pids), 5)
    mark.assert_none(tools_only=True)
    runtime.close()
    with pytest.raises(RuntimeClosed, match="start or connect anew"):
        runtime.map("deaf", ["x"])


def test_sessions_are_where_their_runtime_env_says(shared: oc.Runtime, at_rest: AtRest) -> None:
    with (
        oc.Runtime.start(
            agents=[agents.environment],
            config=SMALL,
            runtime_env={"env_vars": {"OPENCLAW_ENV_TEST": "from the runtime_env"}},
        ) as runtime,
        at_rest(runtime),
    ):
        assert runtime.map("environment", ["OPENCLAW_ENV_TEST"])[0].text == "from the runtime_env"
