"""What an agent returns, and what its requester gets (DESIGN.md 7, PROTOCOL.md 4.3)."""

from __future__ import annotations

from typing import Any

import pytest
import ray

import openclaw_ray as oc
from openclaw_ray.actors import doors
from openclaw_ray.actors.settings import SessionSettings
from openclaw_ray.testing.eventually import eventually
from openclaw_ray.testing.leaks import assert_at_rest, unheard_runs

pytestmark = pytest.mark.ray


def returned(rt: oc.Runtime, kind: str) -> oc.Result[Any]:
    [result] = rt.map("make_value", [kind])
    return result


def test_a_str_is_the_text(rt: oc.Runtime) -> None:
    result = returned(rt, "str")
    assert (result.text, result.value, result.missing) == ("text", None, False)


def test_none_is_no_output(rt: oc.Runtime) -> None:
    result = returned(rt, "none")
    assert (result.text, result.value, result.missing, result.ok) == (None, None, True, True)


def test_a_result_counts_as_it_is(rt: oc.Runtime) -> None:
    result = returned(rt, "result")
    assert (result.text, result.value, result.ok) == ("own text", [1, 2], True)


def test_a_result_that_says_error_is_one(rt: oc.Runtime) -> None:
    result = returned(rt, "failed result")
    assert result.status is oc.ResultStatus.ERROR
    assert result.text is None
    assert result.error is not None


def test_a_small_object_is_the_value_with_its_json_as_text(rt: oc.Runtime) -> None:
    result = returned(rt, "dict")
    assert result.value == {"a": 1, "b": [True, None]}
    assert result.text == '{"a": 1, "b": [true, null]}'


def test_a_large_array_comes_without_a_copy_and_read_only(rt: oc.Runtime) -> None:
    result = returned(rt, "array")
    assert int(result.value.sum()) == sum(range(100_000))
    assert not result.value.flags.writeable
    assert not result.value.flags.owndata
    assert result.text is not None
    assert len(result.text) <= 2_000


def test_a_megabyte_of_bytes_comes_whole(rt: oc.Runtime) -> None:
    results = rt.map("make_value", ["bytes"] * 6, width=3)
    assert [result.value for result in results] == [b"x" * (1 << 20)] * 6


def test_a_process_is_free_again_once_its_large_value_was_taken(rt: oc.Runtime) -> None:
    before = unheard_runs(rt)
    rt.map("make_value", ["array", "bytes", "array"])
    assert_at_rest(rt, unheard=before)


def test_a_long_text_is_cut_and_says_so(rt: oc.Runtime) -> None:
    result = returned(rt, "long text")
    assert result.text is not None
    assert len(result.text.encode()) <= 102_400
    assert result.text_truncated


def test_an_object_ref_stays_one(rt: oc.Runtime) -> None:
    import numpy as np
    import ray

    ref = ray.put(np.arange(1_000))
    assert rt.map("resolve", [ref])[0].value == sum(range(1_000))
    receipt = rt.spawn(agent_id="resolve", input=ref)
    assert rt.result(receipt).value == sum(range(1_000))


def test_a_large_input_is_read_only_and_not_copied(rt: oc.Runtime) -> None:
    import numpy as np
    import ray

    batch = {"id": np.arange(100_000), "x": np.zeros((100_000, 2))}
    for item, kind in ((np.zeros(100_000), "ndarray"), (batch, "dict"), (ray.put(batch), "dict")):
        [result] = rt.map("input_kind", [item])
        assert (result.value["type"], result.value["writeable"], result.value["in the store"]) == (kind, False, True)


def test_a_large_input_is_not_copied_on_its_way_to_the_store(rt: oc.Runtime) -> None:
    import tracemalloc

    import numpy as np

    from openclaw_ray.actors.payload import pack

    batch = {"id": np.arange(1_000_000), "text": np.array(["a", "b"], dtype=object)}
    tracemalloc.start()
    try:
        assert pack(batch).size > batch["id"].nbytes
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("size", [10, 65_000, 66_000, 300_000])
def test_an_input_of_any_size_comes_back_as_it_was(rt: oc.Runtime, size: int) -> None:
    item = {"data": b"y" * size}
    [result] = rt.map("give_back", [item])
    assert result.value == item


def test_classes_of_the_agents_module_find_their_way_home(rt: oc.Runtime) -> None:
    import agents

    [result] = rt.map("give_back", [agents.Point(1, 2)])
    assert result.value == agents.Point(1, 2)


def test_a_child_of_a_session_hands_large_values_up_too(rt: oc.Runtime) -> None:
    [result] = rt.map("value_parent", ["array"])
    assert result.raise_for_status().value == [sum(range(100_000)), False]


def test_a_large_value_of_a_yielded_batch_waits_for_the_wake(rt: oc.Runtime) -> None:
    before = unheard_runs(rt)
    [result] = rt.map("value_yielder", ["array"])
    assert result.raise_for_status().value == [sum(range(100_000))] * 2
    assert_at_rest(rt, unheard=before)


def test_a_result_may_be_asked_for_again(rt: oc.Runtime) -> None:
    receipt = rt.spawn(agent_id="give_back", input={"a": 1})
    first = rt.result(receipt)
    assert first.value == {"a": 1}
    assert rt.result(receipt, timeout=5) == first


def test_a_large_value_is_handed_out_once(rt: oc.Runtime) -> None:
    receipt = rt.spawn("array", "make_value")
    assert rt.result(receipt).ok
    again = rt.result(receipt, timeout=5)
    assert again.error is not None
    assert (again.error.type, again.error.cause) == ("ValueLost", "value_lost")


def test_the_result_of_a_run_that_is_not_there_is_a_key_error(rt: oc.Runtime) -> None:
    with pytest.raises(KeyError, match="no-such-run"):
        rt.result(oc.Receipt("accepted", "no-such-run"), timeout=5)


def test_a_value_that_the_pool_has_is_not_taken_again_when_it_is_asked_for_again(rt: oc.Runtime) -> None:
    """``hold`` is called until it is answered, so it may come again when its actor has nothing any more."""

    class Keeper:
        """A session process that lets go of a value once it has given it away."""

        def __init__(self) -> None:
            self.held = {"run": b"x" * 200_000}

        @ray.method(num_returns=2)
        def park(self, run: str) -> tuple[None, bytes]:
            return None, self.held.pop(run)

    pool = doors.remote(doors.Pool).options(num_cpus=0).remote(SessionSettings("of no runtime", "", 1.0, 1.0))
    keeper = ray.remote(num_cpus=0)(Keeper).remote()
    try:
        for _ in range(2):
            ray.get(pool.hold.remote("run", "keeper", keeper))
            eventually(lambda: ray.get(pool.holds.remote()) == ["run"])
            eventually(lambda: len(ray.get(ray.get(pool.value.remote("run"))[0])) == 200_000)
        ray.get(pool.drop.remote("run"))
        ray.get(pool.hold.remote("run", "keeper", keeper))
        eventually(lambda: ray.get(pool.holds.remote()) == [])
    finally:
        ray.kill(pool)
        ray.kill(keeper)
