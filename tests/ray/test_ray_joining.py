"""Coming to a runtime: several at once, from tasks, with other wishes; and starts that cannot be (DESIGN.md 5, 7)."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import agents
import joining_agents
import pytest
import ray
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy
from support.programs import run_program

import openclaw_ray as oc
from openclaw_ray.actors.names import runtimes_alive
from openclaw_ray.core.errors import AgentImportError, DuplicateAgent, RuntimeInUse, RuntimeNotFound
from openclaw_ray.store.statelock import owner_of
from openclaw_ray.testing.eventually import eventually
from openclaw_ray.testing.leaks import assert_gone

pytestmark = pytest.mark.ray

AtRest = Callable[[oc.Runtime], AbstractContextManager[oc.Runtime]]
LEASE = 15
SMALL: dict[str, Any] = {"ray": {"pool": {"prewarm": 1, "max": 6}, "clientLeaseSeconds": LEASE}}


@pytest.fixture(autouse=True, scope="module")
def _by_value() -> Iterator[None]:
    """What tasks and actors are given here is not on their paths."""
    modules = (sys.modules[__name__], agents)
    for module in modules:
        ray.cloudpickle.register_pickle_by_value(module)
    yield
    for module in modules:
        ray.cloudpickle.unregister_pickle_by_value(module)


@pytest.fixture(autouse=True)
def _no_runtime_left(shared: oc.Runtime) -> Iterator[None]:
    before = runtimes_alive()
    yield
    eventually(lambda: runtimes_alive() == before, 10, what="no runtime is left over")


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where named runtimes have their state during a test."""
    monkeypatch.setenv("OPENCLAW_STATE_DIR", str(tmp_path))
    return tmp_path / "ray"


# ---------------------------------------------------------------------- one name, many openers


def test_threads_that_open_one_name_together_get_one_runtime(state: Path, at_rest: AtRest) -> None:
    together = threading.Barrier(6)

    def open_it(_: int) -> oc.Runtime:
        together.wait()
        return oc.Runtime.start(agents=[agents.echo], config=SMALL, name="one", if_exists="connect")

    with ThreadPoolExecutor(6) as threads:
        opened = list(threads.map(open_it, range(6)))
    [owner] = [rt for rt in opened if rt._engine is not None]
    assert len({rt.root_key for rt in opened}) == 6
    assert [rt.map("echo", [rt.root_key])[0].text for rt in opened] == [rt.root_key for rt in opened]
    boots = {rt._query("info")["settings"].boot for rt in opened}
    assert len(boots) == 1
    for rt in opened:
        if rt is not owner:
            rt.close()
    with at_rest(owner):
        pass
    owner.close()
    assert_gone("one")


@pytest.mark.long
@pytest.mark.timeout(600)
def test_a_name_can_be_opened_and_closed_again_at_once(state: Path) -> None:
    """Fifty rounds: each is a runtime of its own, and has of those before nothing but what they have journaled."""
    roots, boots, pids, seconds = set(), set(), set(), []
    for number in range(50):
        began = time.monotonic()
        with oc.Runtime.start(agents=[agents.echo], config=SMALL, name="again", if_exists="connect") as rt:
            assert rt.runs(state=["queued", "running", "paused"]) == []
            assert rt.map("echo", [str(number)])[0].text == str(number)
            newest = rt.runs(agent="echo", limit=1)
            assert [(row["rootKey"], row["text"]) for row in newest] == [(rt.root_key, str(number))]
            info = rt._query("info")
            assert info["counts"]["started"] == 1, "its own run alone"
            roots.add(rt.root_key)
            boots.add(info["settings"].boot)
            pids.add(info["pid"])
        seconds.append(time.monotonic() - began)
    assert len(roots) == len(boots) == len(pids) == 50
    print(f"\nfifty rounds in {sum(seconds):.1f} s, the slowest in {max(seconds):.2f} s")


# ---------------------------------------------------------------------- from tasks


def visit(place: str, text: str) -> dict[str, Any]:
    """What each task of a host's pipeline does."""
    os.environ["OPENCLAW_STATE_DIR"] = place
    with oc.Runtime.start(agents=[agents.echo], config=SMALL, name="kept", if_exists="connect") as runtime:
        texts = [result.text for result in runtime.map("echo", [text])]
        seen = [row.get("text") for row in runtime.runs(agent="echo")]  # of another task it may still run
        boot = runtime._query("info")["settings"].boot
    return {"texts": texts, "seen": seen, "boot": boot, "pid": os.getpid(), "ray": ray.is_initialized()}


@pytest.mark.long
@pytest.mark.timeout(300)
def test_twenty_threads_and_twenty_tasks_that_open_one_name_together_get_one_runtime(state: Path) -> None:
    together, place = threading.Barrier(20), str(state.parent)
    task = ray.remote(num_cpus=0, max_retries=0)(visit)

    def open_it(number: int) -> oc.Runtime:
        together.wait()
        return oc.Runtime.start(agents=[agents.echo], config=SMALL, name="kept", if_exists="connect")

    began = time.monotonic()
    visits = [task.remote(place, f"task {number}") for number in range(20)]
    with ThreadPoolExecutor(20) as threads:
        opened = list(threads.map(open_it, range(20)))
    print(f"\n20 threads have it after {time.monotonic() - began:.1f} s")
    try:
        assert len([rt for rt in opened if rt._engine is not None]) <= 1
        assert len({rt.root_key for rt in opened}) == 20
        texts = [rt.map("echo", [rt.root_key])[0].text for rt in opened]
        assert texts == [rt.root_key for rt in opened]
        answers = ray.get(visits, timeout=180)
        assert [each["texts"] for each in answers] == [[f"task {number}"] for number in range(20)]
        boots = {rt._query("info")["settings"].boot for rt in opened} | {each["boot"] for each in answers}
        assert len(boots) == 1
        assert runtimes_alive().count("kept") == 1
        print(f"and 20 tasks have used it after {time.monotonic() - began:.1f} s")
    finally:
        for rt in sorted(opened, key=lambda each: each._engine is not None):
            rt.close()
        if "kept" in runtimes_alive():  # a task was first: it belongs to its clients
            oc.Runtime.down("kept", force=True)
    assert_gone("kept")


@pytest.mark.long
def test_a_runtime_started_by_a_task_outlives_it_and_ends_with_its_last_lease(state: Path) -> None:
    group = ray.util.placement_group([{"CPU": 1}])
    inside = PlacementGroupSchedulingStrategy(group, placement_group_capture_child_tasks=True)
    task = ray.remote(num_cpus=0, max_retries=0, scheduling_strategy=inside)(visit)
    place = str(state.parent)
    both = ray.get([task.remote(place, "a"), task.remote(place, "b")], timeout=90)
    assert [each["texts"] for each in both] == [["a"], ["b"]]
    for pid in {each["pid"] for each in both}:
        os.kill(pid, signal.SIGKILL)
    ray.util.remove_placement_group(group)  # with it Ray ends all that is in it
    # Ray may hand the next task to a worker that it does not yet know to be dead
    third = ray.get(task.options(max_retries=3, scheduling_strategy="DEFAULT").remote(place, "c"), timeout=60)
    assert (third["texts"], sorted(third["seen"]), third["ray"]) == (["c"], ["a", "b", "c"], True)
    assert {each["boot"] for each in both} == {third["boot"]}
    # its state dir is taken as long as it lives, by none of the tasks
    with pytest.raises(RuntimeInUse):
        oc.Runtime.start(agents=[agents.echo], config=SMALL, state_dir=state / "kept")
    with oc.Runtime.connect("kept") as rt:
        # a client keeps it for longer than a lease
        threading.Event().wait(LEASE + 1.0)
        assert rt.map("echo", ["d"])[0].ok
    assert "kept" in runtimes_alive()
    eventually(lambda: "kept" not in runtimes_alive(), 3 * LEASE, what="the last lease is over")
    assert_gone("kept")
    eventually(lambda: owner_of(state / "kept") is None, 10, what="the registry's process has let go of the state dir")
    with oc.Runtime.start(agents=[agents.echo], config=SMALL, name="kept") as rt:
        assert len(rt.runs(agent="echo")) == 4


@pytest.mark.long
def test_a_start_that_fails_in_a_task_shows_its_own_error_and_leaves_nothing(state: Path) -> None:
    def fails(place: str) -> str:
        os.environ["OPENCLAW_STATE_DIR"] = place
        module = agents.echo.__module__

        @oc.agent
        def no_import(turn: oc.SyncTurn) -> None: ...

        class Broken(oc.Agent):
            def __init__(self) -> None:
                raise LookupError(f"not in {module}")

            def on_turn(self, turn: oc.SyncTurn) -> None: ...

        try:
            oc.Runtime.start(agents=[no_import, Broken], config=SMALL, name="broken", if_exists="connect")
        except AgentImportError as error:
            return str(error)
        return "started"

    said = ray.get(ray.remote(num_cpus=0)(fails).remote(str(state.parent)), timeout=60)
    assert "Broken() raised LookupError: not in agents" in said
    assert_gone("broken")


# ---------------------------------------------------------------------- other wishes


def test_joining_with_other_wishes_says_what_is_different(state: Path) -> None:
    @oc.agent(id="echo")
    def other_echo(turn: oc.SyncTurn) -> str:
        return "other"

    config = {"agents": {"defaults": {"subagents": {"maxConcurrent": 3}}}, "ray": {"pool": {"max": 6, "prewarm": 1}}}
    with oc.Runtime.start(agents=[agents.echo], config=config, name="theirs") as first:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            oc.Runtime.start(agents=[agents.echo], config=config, name="theirs", if_exists="connect").close()
            oc.Runtime.start(name="theirs", if_exists="connect").close()
        wishes = {
            "agents": {
                "defaults": {"subagents": {"maxConcurrent": 4, "maxSpawnDepth": 2}},
                "entries": {"echo": {"subagents": {"allowAgents": ["who"]}}},
            },
            "ray": {"pool": {"max": 9}, "stopGraceSeconds": 1},
        }
        with pytest.warns(UserWarning, match="joined runtime 'theirs', which goes by its own settings: ") as said:
            joined = oc.Runtime.start(
                agents=[other_echo, agents.who],
                config=wishes,
                name="theirs",
                if_exists="connect",
                state_dir="/elsewhere",
                runtime_env={"env_vars": {"A": "b"}},
            )
        with joined:
            assert joined.map("echo", ["x"])[0].text == "x"
        text = str(said[0].message)
        for part in (
            "agents.defaults.subagents.maxConcurrent is 3, not 4",
            "agents.defaults.subagents.maxSpawnDepth is 5, not 2",
            "ray.pool.max is 6, not 9",
            "ray.stopGraceSeconds is 2.0, not 1.0",
            "it has no agent 'who' (add it with register)",
            "its agent 'echo' is other code: agents:echo (",
            "settings of agent 'echo' (agents.entries.echo) are those of its start",
            f"its state dir is {first.state_dir}, not /elsewhere",
            "runtime_env is that of its start",
        ):
            assert part in text
        with joined, pytest.raises(oc.RuntimeClosed):
            joined.map("echo", ["x"])


def test_a_program_finds_a_runtime_by_its_name_alone(rt: oc.Runtime) -> None:
    """Nothing in its environment tells where Ray is, or of the token that Ray has made for it."""
    source = """
        import json, sys
        import openclaw_ray as oc
        with oc.Runtime.connect(sys.argv[1]) as there:
            print(json.dumps([there.name, there.ask("echo", "hello").text]))
        """
    bare: dict[str, str | None] = dict.fromkeys(("RAY_ADDRESS", "RAY_AUTH_MODE"))
    assert run_program(source, rt.name, env=bare, nothing_left=False).answer() == [rt.name, "hello"]


def test_agents_of_a_connected_client_bring_their_module_along(rt: oc.Runtime) -> None:
    with oc.Runtime.connect(rt.name) as client:
        if "weigher" not in client._query("agents"):
            client.register([joining_agents.weigher])
        [result] = client.map("weigher", [joining_agents.Parcel(3)])
        assert result.raise_for_status().value == [True, "Parcel", 3]
        assert client.result(client.spawn("weigh", "weigher", input=joining_agents.Parcel(4))).value[0] is True
    # another client hears of the module from the runtime, and so does one that was there before
    with oc.Runtime.connect(rt.name) as client:
        receipt = client.spawn("weigh", "weigher", input=joining_agents.Parcel(5))
        assert client.result(receipt).value == [True, "Parcel", 5]
    assert rt.map("weigher", [joining_agents.Parcel(6)])[0].value == [True, "Parcel", 6]


# ---------------------------------------------------------------------- starts that cannot be


def test_an_agent_that_hangs_when_it_is_made_is_an_error_in_time(shared: oc.Runtime) -> None:
    began = time.monotonic()
    with pytest.raises(AgentImportError, match=r"'hanging'.*not made within 3 s"):
        oc.Runtime.start(agents=[joining_agents.Hanging], config=SMALL)
    assert time.monotonic() - began < 30  # beside other tests; its own part of that is 3


def test_two_agents_of_one_id_are_refused_before_anything_starts(shared: oc.Runtime) -> None:
    @oc.agent(id="echo")
    def other(turn: oc.SyncTurn) -> None: ...

    before = runtimes_alive()
    with pytest.raises(DuplicateAgent):
        oc.Runtime.start(agents=[agents.echo, other], config=SMALL)
    assert runtimes_alive() == before


def test_addresses_where_no_ray_of_ours_is_are_refused_in_time(shared: oc.Runtime) -> None:
    """Nobody, nowhere, somebody who says nothing, somebody else, no address at all, and one that wants a token."""
    address = ray.get_runtime_context().gcs_address
    answer = run_program(
        """
        import json, os, socket, sys, threading, time
        import openclaw_ray as oc

        def listener(says):
            server = socket.create_server(("127.0.0.1", 0))
            def serve():
                while True:
                    wire, _ = server.accept()
                    wires.append(wire)
                    if says:
                        wire.sendall(says)
            threading.Thread(target=serve, daemon=True).start()
            return f"127.0.0.1:{server.getsockname()[1]}"

        wires, said = [], {}
        addresses = {
            "nobody": "127.0.0.1:1",
            "nowhere": "no-such-host.invalid:6379",
            "port": "127.0.0.1:99999",
            "silent": listener(b""),
            "other": listener(b"HTTP/1.1 400 Bad Request\\r\\n\\r\\n"),
            "garbage": "what",
            "token": sys.argv[1],
            "no token": sys.argv[1],
        }
        for name, address in addresses.items():
            os.environ["RAY_ADDRESS"] = address
            began = time.monotonic()
            try:
                oc.Runtime.connect("any")
            except oc.OpenClawRayError as error:
                said[name] = [type(error).__name__, str(error), time.monotonic() - began]
            if name == "token":
                del os.environ["RAY_AUTH_TOKEN"]
        print(json.dumps(said))
        """,
        address,
        env={"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": "wrong" * 10, "RAY_AUTH_TOKEN_PATH": "/no/such/file"},
    ).answer()
    wants_token = answer.pop("token")
    assert answer["no token"][0] == "RayUnreachable"
    assert "there is no authentication token here" in answer.pop("no token")[1]
    assert {name: kind for name, (kind, _, _) in answer.items()} == dict.fromkeys(
        ("nobody", "nowhere", "port", "silent", "other", "garbage"), "RayUnreachable"
    )
    assert "no answer within 5 s" in answer["silent"][1]
    assert "what listens there is no Ray" in answer["other"][1]
    assert max(seconds for _, _, seconds in (*answer.values(), wants_token)) < 15
    # a Ray without tokens does not look at ours
    assert wants_token[0] in ("RayUnreachable", "RuntimeNotFound")
    if wants_token[0] == "RayUnreachable":
        assert "token" in wants_token[1].lower()


@pytest.mark.long
def test_workers_of_a_test_suite_beside_each_other_do_not_meet(rt: oc.Runtime) -> None:
    """Several processes at once on one Ray, each with a runtime of its own, beside one that has a name."""
    source = """
        import json, sys
        import agents
        import openclaw_ray as oc
        with oc.Runtime.start(agents=[agents.echo], config={"ray": {"pool": {"prewarm": 1, "max": 6}}}) as rt:
            texts = [result.text for result in rt.map("echo", sys.argv[1:])]
            print(json.dumps([rt.name, str(rt.state_dir), texts, [row["text"] for row in rt.runs(agent="echo")]]))
        """
    env: dict[str, str | None] = {"RAY_ADDRESS": ray.get_runtime_context().gcs_address}
    with ThreadPoolExecutor(2) as threads:
        programs = [threads.submit(run_program, source, f"w{n}", env=env, nothing_left=False) for n in range(2)]
        answers = [program.result().answer() for program in programs]
    assert len({name for name, _, _, _ in answers} | {rt.name}) == 3
    assert len({place for _, place, _, _ in answers}) == 2
    assert [(texts, rows) for _, _, texts, rows in answers] == [(["w0"], ["w0"]), (["w1"], ["w1"])]
    for name, _, _, _ in answers:
        with pytest.raises(RuntimeNotFound):
            oc.Runtime.connect(name)


def test_a_cluster_of_before_that_is_still_noted_is_not_waited_for(
    shared: oc.Runtime, tmp_path: Path
) -> None:
    """Ray's note of the last cluster outlives it; Ray itself tries to reach that for a minute."""
    (tmp_path / "ray").mkdir()
    (tmp_path / "ray" / "ray_current_cluster").write_text("127.0.0.1:1")
    source = """
        import json, time
        from unittest import mock
        import openclaw_ray as oc
        with mock.patch("ray._private.services.find_gcs_addresses", lambda: set()):
            try:
                oc.Runtime.connect("never")
            except oc.OpenClawRayError as error:
                print(json.dumps([type(error).__name__]))
        """
    env: dict[str, str | None] = {"RAY_ADDRESS": None, "RAY_TMPDIR": str(tmp_path)}
    assert run_program(source, env=env, nothing_left=False).answer() == ["RuntimeNotFound"]
