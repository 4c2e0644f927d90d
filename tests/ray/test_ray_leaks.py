"""The leak check that this tier stands on finds what it is to find (STYLE.md 11)."""

from __future__ import annotations

import re
import threading
from typing import TYPE_CHECKING

import pytest
import ray

import openclaw_ray as oc
from openclaw_ray.actors.names import NAMESPACE, actor_name
from openclaw_ray.testing.eventually import eventually
from openclaw_ray.testing.leaks import ProcessMark, assert_at_rest, assert_gone, find_leaks, unheard_runs

if TYPE_CHECKING:
    from support.runtimes import Gate

pytestmark = pytest.mark.ray


def found(rt: oc.Runtime, pattern: str) -> bool:
    return any(re.fullmatch(pattern, leak) for leak in find_leaks(rt))


def test_a_runtime_at_rest_has_no_leaks(rt: oc.Runtime) -> None:
    rt.map("echo", ["x"])
    assert_at_rest(rt)
    assert find_leaks(rt) == []


def test_a_session_at_work_is_named_with_its_process_and_run(rt: oc.Runtime, gate: Gate) -> None:
    receipt = rt.spawn("wait", "hold", input=gate.place)
    gate.wait_for(1)
    assert found(rt, rf"session process \d+ \(session-\d+-\d+\): bound, run {receipt.run_id}")
    assert found(rt, rf"run {receipt.run_id} of {receipt.session_key}: running")
    assert found(rt, rf"session {rt.root_key}: \d+ children reserved")
    with pytest.raises(AssertionError, match=rf"(?s)at rest: not within 0\.2 s; .*{receipt.run_id}"):
        assert_at_rest(rt, timeout=0.2)
    gate.open()
    rt.result(receipt)


def test_what_is_queued_and_who_holds_a_slot_is_named(rt: oc.Runtime, gate: Gate) -> None:
    runner = threading.Thread(target=lambda: rt.map("hold", [gate.place] * 2, width=1))
    runner.start()
    gate.wait_for(1)
    eventually(lambda: found(rt, "1 runs in the queue"))
    assert found(rt, r"lane map:\w+: 1 of 1 slots taken")
    assert found(rt, r"run \S+ of \S+: queued, waiting for a slot of lane map:\w+ \(1 of 1\); place 1 in the queue")
    gate.open()
    runner.join(30)


def test_a_process_below_a_session_is_named(rt: oc.Runtime, gate: Gate, mark: ProcessMark) -> None:
    receipt = rt.spawn("work", "with_tools", input=gate.place)
    gate.wait_for(1)
    eventually(lambda: found(rt, r"process \d+: sleep 300: below session process \d+ \(session-\d+-\d+\)"))
    assert [line.split(": ", 1)[1] for line in mark.alive(tools_only=True)].count("sleep 300") >= 1
    rt.stop(receipt.session_key)


def test_an_actor_that_the_pool_does_not_own_is_named(rt: oc.Runtime) -> None:
    class Stranger:
        def ping(self) -> None: ...

    name = actor_name(rt.name, "session-99-99")
    stranger = ray.remote(num_cpus=0)(Stranger).options(name=name, namespace=NAMESPACE).remote()
    ray.get(stranger.ping.remote())
    assert found(rt, "session actor session-99-99: alive, but the pool does not own it")
    ray.kill(stranger)


def test_orphans_beyond_what_rays_own_lists_show_are_all_named(rt: oc.Runtime, monkeypatch: pytest.MonkeyPatch) -> None:
    listed = ray.util.list_named_actors
    more = [{"name": actor_name(rt.name, f"session-9-{i}"), "namespace": NAMESPACE} for i in range(150)]
    monkeypatch.setattr(ray.util, "list_named_actors", lambda all_namespaces: [*listed(all_namespaces=True), *more])
    assert sum("but the pool does not own it" in leak for leak in find_leaks(rt)) == len(more)


def test_an_end_that_nobody_has_heard_of_is_named_if_that_is_asked(rt: oc.Runtime) -> None:
    before = unheard_runs(rt)
    receipt = rt.spawn("x", "echo")
    eventually(lambda: set(unheard_runs(rt)) == {*before, receipt.run_id})
    assert find_leaks(rt) == []
    assert find_leaks(rt, unheard=before) == [
        f"run {receipt.run_id} of {receipt.session_key}: ended, and its requester has not heard of it"
    ]
    rt.result(receipt)
    assert_at_rest(rt, unheard=before)


def test_a_runtime_that_is_not_gone_is_said_so(rt: oc.Runtime) -> None:
    with pytest.raises(AssertionError, match=rf"alive: .*{rt.name}/registry"):
        assert_gone(rt.name, timeout=0.1)
