"""What a child is given at its birth, over whole trees: folder, model, files, branch, prompt; and what is refused."""

from __future__ import annotations

import hashlib
import os
import stat
import time
from pathlib import Path
from typing import Any

import pytest

import openclaw_ray as oc
from openclaw_ray.core.branching import FORK_ROW_CHARS
from openclaw_ray.core.errors import FolderError, SandboxUnavailable
from openclaw_ray.testing import LocalRuntime

MARKER = "the-marker-of-the-parent-4711"
SESSION_FIELDS = ("cwd", "workspace", "model", "thinking", "context", "sandboxed", "depth")


@oc.agent
def asks(turn: oc.SyncTurn) -> Any:
    """Spawns what its input says, and gives what the child returned."""
    params = dict(turn.input)
    turn.append("assistant", f"I know {MARKER}")
    receipt = turn.spawn(params.pop("task", "look"), **params)
    [done] = turn.join()
    return {"receipt": receipt.to_json(), "child": done.result.value, "text": done.text, "me": _view(turn)}


@oc.agent
def shows(turn: oc.SyncTurn) -> Any:
    return _shown(turn)


@oc.agent
def both(turn: oc.SyncTurn) -> Any:
    """The same agent at two depths: the upper one spawns itself."""
    if turn.session.depth > 1 or turn.input is None:
        return _shown(turn)
    params = dict(turn.input)
    turn.append("assistant", params.pop("say", f"I know {MARKER}"))
    receipt = turn.spawn("look", **params)
    [done] = turn.join()
    return {"receipt": receipt.to_json(), "child": done.result.value, "error": done.result.error, "me": _view(turn)}


def _view(turn: oc.SyncTurn) -> dict[str, Any]:
    return {name: getattr(turn.session, name) for name in SESSION_FIELDS}


def _shown(turn: oc.SyncTurn) -> dict[str, Any]:
    files = {}
    for path in turn.session.attachments:
        mode = stat.S_IMODE(os.stat(path).st_mode), stat.S_IMODE(os.stat(os.path.dirname(path)).st_mode)
        files[os.path.basename(path)] = (Path(path).read_bytes(), mode, path)
    prompt = turn.prompt()
    history = [row["text"] for row in turn.history(limit=50)]
    return {"view": _view(turn), "files": files, "history": history, "system": prompt.system, "input": turn.input}


def config(**more: Any) -> dict[str, Any]:
    agents = more.pop("agents", {})
    defaults = {"subagents": {"allowAgents": ["*"], **agents.pop("subagents", {})}, **agents.pop("defaults", {})}
    return {"agents": {"defaults": defaults, **agents}, **more}


def run(agent: str, given: Any, **more: Any) -> Any:
    with LocalRuntime(agents=[asks, shows, both], config=config(**more)) as rt:
        receipt = rt.spawn("go", agent, input=given)
        result = rt.result(receipt, timeout=20)
        result.raise_for_status()
        return result.value


ENABLED = {"tools": {"sessions_spawn": {"attachments": {"enabled": True, "maxFileBytes": 100, "maxTotalBytes": 150}}}}


# ---------------------------------------------------------------------- nothing is asked for


def test_a_plain_child_has_no_facts_and_knows_nothing_of_its_parent() -> None:
    with LocalRuntime(agents=[asks, shows, both], config=config()) as rt:
        value = rt.result(rt.spawn("go", "both", input={}), timeout=20).value
        assert all(session.facts is None for session in rt._local.core.s.sessions.values())
    child = value["child"]
    assert MARKER not in repr(child)
    assert child["view"] == {**dict.fromkeys(("workspace", "model", "thinking")), "context": "isolated",
                             "sandboxed": False, "depth": 2, "cwd": os.getcwd()}  # fmt: skip
    assert set(value["receipt"]) == {"status", "runId", "childSessionKey"}


def test_the_first_message_has_its_parts_and_the_system_prompt_no_task() -> None:
    child = run("asks", {"agent_id": "shows", "task": "count the quails"})["child"]
    [first] = child["history"]
    parts = ["[Subagent Context]", "depth 2 of 5", "[Subagent Task]\ncount the quails", "Runtime: agent=shows"]
    assert [part in first for part in parts] == [True] * 4
    assert "count the quails" not in child["system"]


# ---------------------------------------------------------------------- folder


def test_an_own_child_inherits_the_folder_and_anothers_has_that_agents(tmp_path: Path) -> None:
    homes = {name: str(tmp_path / name) for name in ("asks", "shows", "both")}
    entries = {name: {"workspace": home} for name, home in homes.items()}
    there = tmp_path / "there"
    there.mkdir()
    found = run("both", {}, agents={"entries": entries})
    assert (found["me"]["cwd"], found["child"]["view"]["cwd"]) == (homes["both"], homes["both"])
    found = run("asks", {"agent_id": "shows"}, agents={"entries": entries})
    assert (found["me"]["cwd"], found["child"]["view"]["cwd"]) == (homes["asks"], homes["shows"])
    found = run("asks", {"agent_id": "shows", "cwd": str(there)}, agents={"entries": entries})
    assert found["child"]["view"]["cwd"] == str(there)
    assert found["child"]["view"]["workspace"] == homes["shows"]


def test_a_callers_folder_never_gets_to_another_agent(tmp_path: Path) -> None:
    entries = {"asks": {"workspace": str(tmp_path / "asks")}}
    found = run("asks", {"agent_id": "shows"}, agents={"entries": entries})
    assert found["child"]["view"]["workspace"] is None
    assert str(tmp_path) not in repr(found["child"])


def test_a_workspace_is_made_and_a_folder_that_goes_before_the_start_ends_the_run(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.touch()
    with LocalRuntime(
        agents=[shows], config=config(agents={"entries": {"shows": {"workspace": str(blocked / "below")}}})
    ) as rt:
        result = rt.result(rt.spawn("go", "shows"), timeout=20)
    assert result.error is not None
    assert (result.error.type, result.error.cause) == (FolderError.__name__, "start_failed")
    assert str(blocked / "below") in result.error.message


# ---------------------------------------------------------------------- model and thinking


def test_model_and_level_go_down_and_the_receipt_says_so() -> None:
    agents = {"entries": {"both": {"model": "own/one"}, "shows": {"model": "other/two"}}}
    found = run("both", {"model": "call/three", "thinking": "Extra High"}, agents=agents)
    assert (found["me"]["model"], found["me"]["thinking"]) == ("own/one", None)
    assert (found["child"]["view"]["model"], found["child"]["view"]["thinking"]) == ("call/three", "xhigh")
    assert found["receipt"]["resolvedModel"] == "call/three"
    found = run("asks", {"agent_id": "shows"}, agents=agents)
    assert found["child"]["view"]["model"] == "other/two"


def test_a_level_that_is_none_refuses_the_spawn() -> None:
    with LocalRuntime(agents=[shows], config=config()) as rt:
        for bad in ({"thinking": "hard"}, {"model": "a b"}, {"model": "/b"}):
            with pytest.raises(oc.SpawnError) as caught:
                rt.spawn("go", "shows", **bad)
            assert (caught.value.receipt.status, caught.value.receipt.limit) == ("error", next(iter(bad)))


# ---------------------------------------------------------------------- attachments


def test_files_are_there_private_and_with_a_receipt() -> None:
    given = [{"name": "a.txt", "content": "hello"}, {"name": "b.bin", "content": b"\x00\x01"}]
    found = run("asks", {"agent_id": "shows", "attachments": given, "attach_as": {"mountPath": "in/"}}, **ENABLED)
    files = found["child"]["files"]
    assert {name: (data, modes) for name, (data, modes, _) in files.items()} == {
        "a.txt": (b"hello", (0o600, 0o700)),
        "b.bin": (b"\x00\x01", (0o600, 0o700)),
    }
    told = found["receipt"]["attachments"]
    assert (told["count"], told["totalBytes"]) == (2, 7)
    assert told["files"][0] == {"name": "a.txt", "bytes": 5, "sha256": hashlib.sha256(b"hello").hexdigest()}
    [first] = found["child"]["history"]
    assert '2 attached files (meant for "in/"): "a.txt", "b.bin"' in first
    assert "hello" not in first
    assert all(path in found["child"]["system"] for _, _, path in files.values())
    assert not any(os.path.exists(path) for _, _, path in files.values())  # a thread's files go with its turn


def test_an_input_beside_files_is_what_it_was() -> None:
    files = [{"name": "a", "content": "x"}]
    assert run("asks", {"agent_id": "shows", "attachments": files, "input": {"n": 1}}, **ENABLED)["child"]["input"] == {
        "n": 1
    }
    assert run("asks", {"agent_id": "shows", "attachments": files}, **ENABLED)["child"]["input"] is None


def test_files_beyond_the_bounds_are_refused_before_anything_is_made() -> None:
    with LocalRuntime(agents=[shows], config=config(**ENABLED)) as rt:
        for files in (
            [{"name": "a", "content": "x" * 101}],
            [{"name": "a", "content": "x" * 80}, {"name": "b", "content": "x" * 80}],
            [{"name": "a/b", "content": "x"}],
        ):
            with pytest.raises(oc.SpawnError) as caught:
                rt.spawn("go", "shows", attachments=files)
            assert caught.value.receipt.limit == "attachments"
        assert rt.runs(limit=10) == [] or all(row["route"] == "driver" for row in rt.runs(limit=10))


# ---------------------------------------------------------------------- fork


def test_a_fork_begins_with_the_parents_rows_up_to_the_call() -> None:
    found = run("both", {"context": "fork"})
    child = found["child"]
    assert found["receipt"]["context"] == child["view"]["context"] == "fork"
    said = [MARKER in text for text in child["history"]]
    assert said == [False, True, False]  # the parent's first message and what it said, then the child's own first
    assert "[Subagent Task]\nlook" in child["history"][-1]


def test_a_long_row_is_cut_in_a_branch() -> None:
    child = run("both", {"context": "fork", "say": "m" * (FORK_ROW_CHARS + 9)})["child"]
    assert child["history"][1].endswith("[9 more characters were cut]")
    assert len(child["history"][1]) < FORK_ROW_CHARS + 40


def test_too_long_a_conversation_is_not_branched() -> None:
    found = run("both", {"context": "fork", "say": "m" * (600 * 1024)})
    assert found["child"]["view"]["context"] == "isolated"
    assert "context" not in found["receipt"]
    assert len(found["child"]["history"]) == 1


def test_a_client_has_nothing_to_branch() -> None:
    with LocalRuntime(agents=[shows], config=config()) as rt, pytest.raises(oc.SpawnError, match="transcript"):
        rt.spawn("go", "shows", context="fork")


# ---------------------------------------------------------------------- bootstrap files


def test_the_agents_own_files_are_in_its_prompt_unless_a_light_one_is_asked_for(tmp_path: Path) -> None:
    home, other = tmp_path / "shows", tmp_path / "other"
    for folder in (home, other):
        folder.mkdir()
        for name in ("AGENTS.md", "TOOLS.md", "SOUL.md"):
            (folder / name).write_text(f"{name} of {folder.name}")
    agents = {"entries": {"shows": {"workspace": str(home)}}}
    system = run("asks", {"agent_id": "shows", "cwd": str(other)}, agents=agents)["child"]["system"]
    assert "AGENTS.md of shows" in system
    assert "TOOLS.md of shows" in system
    assert "SOUL.md" not in system
    assert "of other" not in system
    light = run("asks", {"agent_id": "shows", "light_context": True}, agents=agents)["child"]["system"]
    assert "of shows" not in light


@oc.agent
def watches(turn: oc.SyncTurn) -> Any:
    """What its prompt says of its children while one runs, and when two have ended that it was not told of."""
    turn.spawn("wait", agent_id="waits", label="the slow one", input=turn.input)
    done = turn.spawn("x", agent_id="shows", task_name="quick")
    while not turn._port.completion(done.run_id).done():
        turn.check()
    during = turn.prompt().ambient
    Path(turn.input).touch()
    turn.join()
    return {"during": during, "after": turn.prompt().ambient}


@oc.agent(spawns=False)
def waits(turn: oc.SyncTurn) -> str:
    while not os.path.exists(turn.input):
        turn.check()
        time.sleep(0.002)
    return "through"


def test_the_prompt_says_how_the_children_stand(tmp_path: Path) -> None:
    with LocalRuntime(agents=[watches, waits, shows], config=config()) as rt:
        said = rt.result(rt.spawn("go", "watches", input=str(tmp_path / "door")), timeout=20).raise_for_status().value
    active, recent, awaiting = said["during"].split("\n\n")
    assert active.startswith("## Active Subagents")
    assert '"label": "the slow one"' in active
    assert recent.startswith("## Recently Completed Subagents")
    assert '"taskName": "quick"' in recent
    assert awaiting.startswith("## Child results awaiting delivery")
    assert said["after"].startswith("## Recently Completed Subagents")
    assert "awaiting" not in said["after"]


# ---------------------------------------------------------------------- sandbox


def test_a_session_that_would_be_sandboxed_is_never_run_open() -> None:
    agents = {"entries": {"boxed": {"sandbox": {"mode": "non-main"}}, "shut": {"sandbox": {"mode": "all"}}}}
    with LocalRuntime(agents=[boxed, shut], config=config(agents=agents)) as rt:
        with pytest.raises(SandboxUnavailable, match=r"agents\.entries\.boxed\.sandbox\.mode"):
            rt.spawn("go", "boxed")
        with pytest.raises(SandboxUnavailable, match=r"agents\.entries\.shut\.sandbox\.mode"):
            rt.ask("shut", "go", timeout=10)
        assert rt.ask("boxed", "go", timeout=10).text == "open"  # a main session is not one of non-main
        [result] = rt.map("boxed", ["a"])
        assert result.error is not None
        assert result.error.cause == "refused"
        assert "agents.entries.boxed.sandbox.mode" in result.error.message


@oc.agent
def boxed(turn: oc.SyncTurn) -> str:
    return "open"


@oc.agent
def shut(turn: oc.SyncTurn) -> str:
    return "open"


def test_a_required_sandbox_is_forbidden_where_there_would_be_none() -> None:
    with LocalRuntime(agents=[shows], config=config()) as rt, pytest.raises(oc.SpawnForbidden) as caught:
        rt.spawn("go", "shows", sandbox="require")
    assert caught.value.receipt.path == "agents.defaults.sandbox.mode"
