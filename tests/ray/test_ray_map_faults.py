"""Items that fail in every way, in their places (issue 2, "Done when")."""

from __future__ import annotations

import os
import re

import pytest

import openclaw_ray as oc
from openclaw_ray.testing.leaks import assert_at_rest, unheard_runs

pytestmark = pytest.mark.ray

LONG = os.environ.get("OPENCLAW_RAY_LONG") == "1"


def test_of_many_sessions_the_four_that_fail_say_truly_why(rt: oc.Runtime) -> None:
    count = 1_000 if LONG else 300
    before = unheard_runs(rt)
    results = rt.map("misfortune", range(count))
    assert [result.index for result in results] == list(range(count))
    for result in results:
        if result.index not in (7, 8, 9, 10):
            assert result.text == f"ok {result.index}"
    raised, left, killed, unpicklable = (result.error for result in results[7:11])
    assert all(result.status is oc.ResultStatus.ERROR for result in results[7:11])
    assert raised is not None
    assert (raised.type, raised.message, raised.cause) == ("ValueError", "boom at seven", "raised")
    assert "boom at seven" in (raised.traceback or "")
    assert left is not None
    assert (left.type, left.cause) == ("SystemExit", "exited")
    assert "sys.exit(3)" in left.message
    assert killed is not None
    assert (killed.type, killed.cause) == ("ProcessDied", "process_died")
    assert "died in the middle of its turn" in killed.message
    assert unpicklable is not None
    assert (unpicklable.type, unpicklable.cause) == ("Unpicklable", "unpicklable")
    assert "_thread.lock" in unpicklable.message
    assert_at_rest(rt, unheard=before)
    assert [result.text for result in rt.map("misfortune", range(3))] == ["ok 0", "ok 1", "ok 2"]


def test_a_killed_process_names_itself_and_its_end(rt: oc.Runtime) -> None:
    result = rt.result(rt.spawn("x", "end_as_told", input="kill"))
    assert result.error is not None
    assert re.search(r"session process \d+ on node [0-9a-f]{8} died in the middle of its turn", result.error.message)


def test_what_a_session_writes_is_in_its_own_log(rt: oc.Runtime) -> None:
    from openclaw_ray.actors.session_log import log_path

    results = rt.map("printing", ["go"] * 6)
    sessions = {row["key"]: row["sessionId"] for row in rt.sessions(agent="printing", limit=20)}
    for result in results:
        log = log_path(rt.state_dir, sessions[result.session_key]).read_text()
        assert sorted(log.splitlines()) == ["from a tool", "from print", "from stderr"]


def test_a_failed_run_raises_what_it_was_when_asked(rt: oc.Runtime) -> None:
    from openclaw_ray.core.errors import RunFailed

    receipt = rt.spawn("raise", "end_as_told", input="raise")
    result = rt.result(receipt)
    with pytest.raises(RunFailed, match=r"ValueError: as told") as caught:
        result.raise_for_status()
    assert caught.value.run_id == receipt.run_id
    assert caught.value.session_key == receipt.session_key
    assert "Traceback" in str(caught.value)
    assert "agents.py" in str(caught.value)


def test_an_empty_answer_is_a_missing_deliverable_not_an_error(rt: oc.Runtime) -> None:
    result = rt.result(rt.spawn("x", "end_as_told", input="nothing"))
    assert result.ok
    assert not result.text
