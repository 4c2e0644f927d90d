"""Reset, archive and ``cleanup: "delete"`` on Ray (SPEC.md G3, H6)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
import ray

import openclaw_ray as oc
from openclaw_ray.cli.main import run
from openclaw_ray.testing.eventually import eventually

if TYPE_CHECKING:
    from pathlib import Path

    from support.runtimes import Gate

pytestmark = pytest.mark.ray


@pytest.fixture
def cluster(rt: oc.Runtime, monkeypatch: pytest.MonkeyPatch) -> None:
    """``RAY_ADDRESS`` for commands."""
    monkeypatch.setenv("RAY_ADDRESS", str(ray.get_runtime_context().gcs_address))


def folder_of(rt: oc.Runtime, agent: str) -> Path:
    return rt.state_dir / "agents" / agent / "sessions"


def archived(rt: oc.Runtime, agent: str, session_id: str) -> list[Path]:
    return list(folder_of(rt, agent).glob(f"{session_id}.jsonl.deleted.*"))


def row_of(rt: oc.Runtime, key: str) -> dict[str, Any]:
    row = rt.session(key)
    assert row is not None
    return row


def test_a_main_session_forgets_all_and_keeps_its_depth_over_ten_resets(rt: oc.Runtime) -> None:
    key = "agent:remembering:main"
    seen: set[str] = set()
    rt.ask("remembering", "hi")
    rt.reset(key)  # of what other tests have made it remember
    for _ in range(10):
        assert [rt.ask("remembering", "hi").value for _ in range(2)] == [1, 2]
        before = row_of(rt, key)
        report = rt.reset("agent:Remembering:main")
        assert (report.key, report.failed) == (key, 0)
        after = row_of(rt, key)
        assert (after["depth"], after["key"], after["rootKey"]) == (0, key, key)
        assert after["sessionId"] != before["sessionId"]
        seen.add(before["sessionId"])
        assert rt.history(key) == []
    assert len(seen) == 10
    for session_id in seen:
        (kept,) = eventually(lambda s=session_id: archived(rt, "remembering", s))
        assert kept.read_text().count('"hi"') == 2
    assert rt.ask("remembering", "history").value == [["user", "history"], ["system", "a note of its own"]]


def test_a_reset_stops_what_yielded_what_is_below_and_what_waits_in_line(rt: oc.Runtime, gate: Gate) -> None:
    key = "agent:yields_to_held:main"
    with ThreadPoolExecutor() as threads:
        asked = [threads.submit(rt.ask, "yields_to_held", str(gate)) for _ in range(2)]
        gate.wait_for(3)
        eventually(lambda: sorted(run["state"] for run in rt.runs(session=key)) == ["paused", "queued"])
        before = row_of(rt, key)
        with pytest.raises(oc.ResetRefused, match=r"not reset: .* see what with .* then reset it again"):
            rt.reset(key, timeout=0.0)
        # Stopped by now, but for what is on its way: the mark of that apart, the conversation is as it was.
        assert row_of(rt, key) | {"abortedLastRun": None} == before | {"abortedLastRun": None}
        report = rt.reset(key)
        assert (report.failed, row_of(rt, key)["sessionId"] != before["sessionId"]) == (0, True)
        for one in asked:
            with pytest.raises(oc.RunCancelled):
                one.result(20)
    children = rt.sessions(requester=key)
    assert [child["status"] for child in children] == ["ended"] * 2
    assert all(rt.runs(session=child["key"])[0]["state"] == "cancelled" for child in children)
    eventually(lambda: archived(rt, "yields_to_held", before["sessionId"]))
    assert all(rt.history(child["key"]) for child in children)  # their transcripts stay


def test_a_reset_is_the_operators(rt: oc.Runtime) -> None:
    with pytest.raises(oc.ResetRefused, match="client's root"):
        rt.reset(rt.root_key)
    with pytest.raises(KeyError):
        rt.reset("agent:echo:subagent:nobody")
    receipt = rt.spawn("x", "echo")
    rt.result(receipt)
    rt.delete(receipt.session_key)
    with pytest.raises(oc.ResetRefused, match="it was deleted"):
        rt.reset(receipt.session_key)


def test_a_reset_from_a_loop(rt: oc.Runtime) -> None:
    async def reset() -> oc.StopReport:
        async with oc.AsyncRuntime.connect(rt.name) as client:
            return await client.reset("agent:remembering:main")

    rt.ask("remembering", "hi")
    before = row_of(rt, "agent:remembering:main")["sessionId"]
    assert asyncio.run(reset()).failed == 0
    assert row_of(rt, "agent:remembering:main")["sessionId"] != before


def test_sessions_reset_on_the_command_line(rt: oc.Runtime, cluster: str, capsys: pytest.CaptureFixture[str]) -> None:
    rt.ask("remembering", "hi")
    key = "agent:remembering:main"
    before = row_of(rt, key)["sessionId"]
    assert run(["sessions", "reset", key, "--name", rt.name, "--json"]) == 0
    done = json.loads(capsys.readouterr().out)
    assert (done["previousSessionId"], done["sessionId"]) == (before, row_of(rt, key)["sessionId"])
    assert rt.ask("remembering", "hi").value == 1
    assert run(["sessions", "reset", rt.root_key, "--name", rt.name]) == 1
    assert "client's root" in capsys.readouterr().err


def test_cleanup_delete_archives_once_its_end_was_heard_of(rt: oc.Runtime) -> None:
    receipt = rt.spawn("some words", "echo", cleanup="delete")
    eventually(lambda: rt.runs(session=receipt.session_key)[0]["state"] == "succeeded")
    row = row_of(rt, receipt.session_key)
    eventually(lambda: len(rt.history(receipt.session_key)) == 2)
    assert (row["status"], row["cleanup"], archived(rt, "echo", row["sessionId"])) == ("ended", "delete", [])
    assert rt.result(receipt).raise_for_status().text == "some words"
    (kept,) = eventually(lambda: archived(rt, "echo", row["sessionId"]))
    assert row_of(rt, receipt.session_key)["status"] == "archived"
    assert kept.read_text().count("some words") == 2
    assert not (folder_of(rt, "echo") / f"{row['sessionId']}.jsonl").exists()
    assert rt.result(receipt).text == "some words"  # its record stays


def test_cleanup_delete_of_children_by_spawn_and_by_the_tool(rt: oc.Runtime) -> None:
    gone, kept, by_tool = rt.result(rt.spawn("go", "cleaning")).raise_for_status().value
    assert [row_of(rt, key)["status"] for key in (gone, kept, by_tool)] == ["archived", "ended", "archived"]


@contextmanager
def minutes_of(rt: oc.Runtime, seconds: float) -> Iterator[None]:
    """Archive after one minute of so many seconds: the registry's limits are set from here."""
    before = rt._query("info")["settings"].limits
    short = replace(before, archive_after_minutes=1, archive_minute=seconds)
    ray.get(rt._registry().reload.remote(short, {}))
    try:
        yield
    finally:
        ray.get(rt._registry().reload.remote(before, {}))


def test_kept_sessions_are_archived_after_their_time_and_what_nobody_heard_of_is_not(rt: oc.Runtime) -> None:
    with minutes_of(rt, 0.5):
        unheard = rt.spawn("unheard", "echo")
        late = rt.spawn("late", "one_child")
        results = rt.map("echo", [f"item {i}" for i in range(6)])
        keys = [result.session_key for result in results]
        for key in keys:
            eventually(lambda k=key: "archiveAt" in row_of(rt, k))  # its end was heard of
            assert 498 <= row_of(rt, key)["archiveAt"] - row_of(rt, key)["endedAt"] <= 501
        eventually(lambda: all(row_of(rt, key)["status"] == "archived" for key in keys))
        for key in keys:
            assert len(eventually(lambda k=key: archived(rt, "echo", row_of(rt, k)["sessionId"]))) == 1
        assert [row_of(rt, one.session_key)["status"] for one in (unheard, late)] == ["ended"] * 2
        for one in (unheard, late):
            rt.result(one).raise_for_status()
        (below,) = rt.sessions(requester=late.session_key)
        for key in (unheard.session_key, late.session_key, below["key"]):
            eventually(lambda k=key: row_of(rt, k)["status"] == "archived")
