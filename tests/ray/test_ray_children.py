"""What a child is given at its birth comes true in its process: folder, files, branch (SPEC.md C, stages 4 and 6)."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import children_agents
import pytest

import openclaw_ray as oc
from openclaw_ray.testing.eventually import eventually

if TYPE_CHECKING:
    from test_ray_code import AtRest

pytestmark = pytest.mark.ray

CONFIG = {
    "agents": {
        "defaults": {"subagents": {"allowAgents": ["*"], "model": "made/up"}},
        "entries": {"parent": {}, "child": {}},
    },
    "tools": {"sessions_spawn": {"attachments": {"enabled": True, "maxFileBytes": 300_000}}},
    "ray": {"pool": {"max": 6, "prewarm": 1}},
}


@pytest.fixture(scope="module")
def _own(shared: oc.Runtime) -> Iterator[oc.Runtime]:
    with oc.Runtime.start(agents=children_agents.AGENTS, config=CONFIG) as runtime:
        yield runtime


@pytest.fixture
def own(_own: oc.Runtime, at_rest: AtRest) -> Iterator[oc.Runtime]:
    """A runtime of this module's, with attachments."""
    with at_rest(_own) as runtime:
        yield runtime


def value_of(rt: oc.Runtime, agent: str, given: Any = None, **params: Any) -> Any:
    result = rt.result(rt.spawn("go", agent, input=given, **params), timeout=30)
    return result.raise_for_status().value


def snapshots(rt: oc.Runtime) -> list[Path]:
    return [path for path in rt.state_dir.glob("agents/*/attachments/*") if path.name]


def test_a_turn_runs_in_its_folder_and_the_next_one_in_the_processes_own(own: oc.Runtime, tmp_path: Path) -> None:
    before = value_of(own, "child")
    there = value_of(own, "child", cwd=str(tmp_path))
    assert (there["cwd"], there["view"], there["model"]) == (str(tmp_path), str(tmp_path), "made/up")
    after = value_of(own, "child")
    assert after["cwd"] == before["cwd"] == after["view"]
    assert after["pid"] == there["pid"]  # else this says nothing


def test_a_folder_that_went_before_the_start_fails_that_run_alone(own: oc.Runtime, tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    busy = [own.spawn("go", "child", cwd=str(gone))]
    gone.rmdir()
    result = own.result(busy[0], timeout=30)
    if result.error is not None:  # it may have been there in time
        assert (result.error.type, result.error.cause) == ("FolderError", "start_failed")
        assert str(gone) in result.error.message
    value_of(own, "child")


def test_a_snapshot_is_private_whole_and_below_the_state_dir_until_the_session_is_deleted(own: oc.Runtime) -> None:
    data = os.urandom(200_000)  # more than is journaled
    receipt = own.spawn("go", "child", attachments=[{"name": "a.bin", "content": data}, {"name": "b", "content": "x"}])
    told = receipt.attachments
    assert told is not None
    folder = own.state_dir / told.rel_dir
    found = own.result(receipt, timeout=30).raise_for_status().value
    assert found["folder"] == str(folder)
    digest = hashlib.sha256(data).hexdigest()
    assert found["files"]["a.bin"] == (200_000, digest, 0o600)
    assert folder.stat().st_mode & 0o777 == 0o700
    assert found["manifest"]["totalBytes"] == told.total_bytes == 200_001
    assert found["manifest"]["files"][0] == {"name": "a.bin", "bytes": 200_000, "sha256": digest}
    own.delete(receipt.session_key)
    eventually(lambda: not folder.exists())


def test_cleanup_delete_removes_the_files_and_a_refusal_leaves_none(own: oc.Runtime) -> None:
    files = [{"name": "a", "content": "x"}]
    before = snapshots(own)
    with pytest.raises(oc.SpawnForbidden):
        own.spawn("go", "nobody", attachments=files)
    with pytest.raises(oc.SpawnError):
        own.spawn("go", "child", attachments=[{"name": "a", "content": "x" * 300_001}])
    eventually(lambda: snapshots(own) == before)  # who is refused hears of it in the moment in which it is undone
    value_of(own, "child", attachments=files, cleanup="delete")
    eventually(lambda: snapshots(own) == before)


def test_a_reference_travels_and_is_judged_where_it_is_read(own: oc.Runtime) -> None:
    found = value_of(own, "parent", {"agent_id": "child", "content": b"y" * 250_000})
    [file] = found["receipt"]["attachments"]["files"]
    assert file == {"name": "big", "bytes": None, "sha256": None}
    assert found["child"]["files"]["big"][:2] == (250_000, hashlib.sha256(b"y" * 250_000).hexdigest())
    result = own.result(own.spawn("go", "parent", input={"agent_id": "child", "content": b"y" * 300_001}), timeout=30)
    assert result.error is not None
    assert "maxFileBytes" in result.error.message


def test_a_fork_is_a_copy_of_what_was_said_and_an_isolated_child_has_none_of_it(own: oc.Runtime) -> None:
    said = {"say": "the marker 4711"}
    forked = value_of(own, "child", {**said, "context": "fork"})
    assert forked["receipt"]["context"] == "fork"
    assert ["4711" in text for text in forked["child"]["history"]] == [False, True, False]
    rows = own.history(forked["receipt"]["childSessionKey"])
    assert [row.get("branchedFrom") is not None for row in rows[:3]] == [True, True, False]
    isolated = value_of(own, "child", said)
    assert "4711" not in repr(isolated["child"])
    assert "4711" not in repr(own.history(isolated["receipt"]["childSessionKey"]))
