"""Tools that look at sessions and change them, over trees without Ray (SPEC.md B5-B7, G3; SCENARIOS.md 41, 52)."""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import openclaw_ray as oc
from openclaw_ray.core.session_asks import Asker
from openclaw_ray.core.session_rows import LIST_BYTES
from openclaw_ray.testing import FakeClock, LocalRuntime, eventually

ANYBODY = {"agents": {"defaults": {"subagents": {"allowAgents": ["*"], "maxChildrenPerAgent": 20}}}}
ALL = {**ANYBODY, "tools": {"sessions": {"visibility": "all"}, "agentToAgent": {"enabled": False}}}
KEY = "sk-proj-abcdefghijklmnopqrstuvwxyz0123456789"


class _Door:
    """What sessions wait at. A file, as their code is pickled and made anew."""

    def __init__(self) -> None:
        self.place = Path(tempfile.gettempdir()) / f"door-{os.getpid()}"

    def set(self) -> None:
        self.place.touch()

    def clear(self) -> None:
        self.place.unlink(missing_ok=True)

    def is_set(self) -> bool:
        return self.place.exists()


_open = _Door()


@oc.agent(follow_up=True)
def lead(turn: oc.SyncTurn) -> Any:
    """Spawns what it is told to, waits for the door, then calls tools; each call may say ``{child}``."""
    said = json.loads(turn.text) if turn.kind == "message" else turn.input
    if not isinstance(said, dict):
        return None
    kids = [turn.spawn(task=task, agent_id=agent, label=label) for agent, task, label in said.get("spawn", ())]
    if said.get("join"):
        turn.join()
    out = []
    for name, params in said.get("calls", ()):
        text = json.dumps(params)
        for number, kid in enumerate(kids):
            text = text.replace(f"{{{number}}}", kid.session_key)
        out.append(turn.call(name, **json.loads(text)).to_json())
    if said.get("hold"):
        _hold(turn)
    turn.map("quick", [])
    return out


@oc.agent(spawns=False)
def waits(turn: oc.SyncTurn) -> str:
    _hold(turn)
    return "waited"


@oc.agent(spawns=False)
def quick(turn: oc.SyncTurn) -> str:
    turn.append("tool", f"refresh_token: {KEY}")
    return f"the key is {KEY}, and OPENAI_API_KEY={KEY}"


def _hold(turn: oc.SyncTurn) -> None:
    while not _open.is_set():
        turn.check()
        time.sleep(0.002)


@contextlib.contextmanager
def runtime(config: Any = ANYBODY, **options: Any) -> Iterator[LocalRuntime]:
    _open.clear()
    with LocalRuntime(agents=[lead, waits, quick], config=config, **options) as rt:
        try:
            yield rt
        finally:
            _open.set()
    _open.clear()


def does(rt: LocalRuntime, **said: Any) -> list[dict[str, Any]]:
    """What a session's calls gave."""
    found: list[dict[str, Any]] = rt.result(rt.spawn("go", "lead", input=said), timeout=20).raise_for_status().value
    return found


def asked(rt: LocalRuntime, **said: Any) -> list[dict[str, Any]]:
    """The same of the main session, which may have what sub-agents may not (SPEC.md E2)."""
    found: list[dict[str, Any]] = rt.ask("lead", json.dumps(said), timeout=20).value
    return found


def bound(rt: LocalRuntime, key: str) -> LocalRuntime:
    """The same runtime as the turn that runs in session ``key`` would be given by ``connect``."""
    run = eventually(lambda: rt._local.core.s.runs.get(rt._local.core.s.sessions[key].run))
    eventually(lambda: run.in_turn)
    made = object.__new__(LocalRuntime)
    made.__dict__.update(rt.__dict__, _asker=Asker(key, run.activation))
    return made


# ---------------------------------------------------------------------- sessions_list


def test_a_session_sees_itself_and_what_is_below_it() -> None:
    with runtime() as rt:
        beside = rt.spawn("beside", "waits")
        [listed] = does(rt, spawn=[("quick", "do it well", "mine")], join=True, calls=[("sessions_list", {})])
        keys = [row["key"] for row in listed["sessions"]]
        assert beside.session_key not in keys
        assert (listed["count"], listed["hasMore"], listed["visibility"]) == (2, False, {"mode": "tree"})
        [child] = [row for row in listed["sessions"] if row.get("label") == "mine"]
        [own] = [row for row in listed["sessions"] if row is not child]
        assert (child["agentId"], child["kind"], child["depth"], child["status"]) == ("quick", "other", 2, "done")
        assert child["parentSessionKey"] == own["key"]
        assert own["childSessions"] == [child["key"]]
        assert own["status"] == "running"
        assert own["updatedAt"] >= own["createdAt"]


def test_under_visibility_all_agents_that_may_not_meet_stay_out_of_sight() -> None:
    with runtime(ALL) as rt:
        beside = rt.spawn("beside", "waits")
        other = rt.spawn("beside", "lead", input={"hold": True})
        listed, history = does(
            rt, calls=[("sessions_list", {}), ("sessions_history", {"sessionKey": beside.session_key})]
        )
        keys = {row["key"] for row in listed["sessions"]}
        assert other.session_key in keys
        assert beside.session_key not in keys
        assert (history["status"], history["reason"]) == ("forbidden", "a2a_disabled")
        assert history["path"] == "tools.agentToAgent.enabled"


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ({"label": "THREE"}, {"three"}),
        ({"search": "task two"}, {"two"}),
        ({"agentId": "quick"}, {"one"}),
        ({"activeOnly": True, "agentId": "waits"}, {"two", "three"}),
        ({"excludeSubagents": True}, set()),
        ({"kinds": ["main"]}, set()),
        ({"kinds": ["other"], "search": "task"}, {"one", "two", "three"}),
        ({"archived": True}, set()),
        ({"activeMinutes": 1, "search": "task"}, {"one", "two", "three"}),
    ],
)
def test_a_list_has_what_its_filters_say(filters: dict[str, Any], expected: set[str]) -> None:
    with runtime() as rt:
        spawn = [("quick", "task one", "one"), ("waits", "task two", "two"), ("waits", "task three", "three")]
        receipt = rt.spawn("go", "lead", input={"spawn": spawn, "hold": True})
        eventually(lambda: rt.runs(agent="quick", state="succeeded"))
        eventually(lambda: len(rt.runs(agent="waits", state="running")) == 2)
        listed = rt.call("sessions.list", {**filters, "spawnedBy": receipt.session_key})
        assert {row["label"] for row in listed["sessions"]} == expected
        assert {row["label"]: row["status"] for row in listed["sessions"]} == {
            label: "done" if label == "one" else "running" for label in expected
        }


def test_pages_of_a_list_give_each_session_once() -> None:
    with runtime() as rt:
        spawn = [("quick", f"task {n}", str(n)) for n in range(7)]
        receipt = rt.spawn("go", "lead", input={"spawn": spawn, "join": True, "hold": True})
        eventually(lambda: len(rt.runs(agent="quick", state="succeeded")) == 7)
        seen, offset = [], 0
        while offset is not None:
            page = rt.call("sessions.list", {"spawnedBy": receipt.session_key, "limit": 3, "offset": offset})
            assert page["limitApplied"] == 3
            seen += [row["label"] for row in page["sessions"]]
            offset = page.get("nextOffset")
            assert page["hasMore"] is (offset is not None)
        assert seen == [str(n) for n in reversed(range(7))]


def test_messages_in_a_list_are_masked_without_tool_rows_and_bounded() -> None:
    with runtime() as rt:
        calls = [("sessions_list", {"messageLimit": 20, "includeLastMessage": True, "includeDerivedTitles": True})]
        [listed] = does(rt, spawn=[("quick", f"password: {KEY}", "q")], join=True, calls=calls)
        [child] = [row for row in listed["sessions"] if row.get("label") == "q"]
        assert [message["role"] for message in child["messages"]] == ["user", "assistant"]
        assert child["lastMessage"].startswith("the key is sk-pro…")
        assert child["derivedTitle"] == "password: sk-pro…6789"
        assert KEY not in json.dumps(listed)


def test_a_list_of_more_than_64_kib_says_so_and_goes_on() -> None:
    with runtime() as rt:
        spawn = [("quick", "long task " * 350, f"{n}" + "x" * 500) for n in range(20)]
        receipt = rt.spawn("go", "lead", input={"spawn": spawn, "join": True, "hold": True})
        eventually(lambda: len(rt.runs(agent="quick", state="succeeded")) == 20, 20)
        seen, offset, why = 0, 0, set()
        while offset is not None:
            given = {"spawnedBy": receipt.session_key, "messageLimit": 20, "includeLastMessage": True}
            page = rt.call("sessions.list", {**given, "offset": offset})
            assert len(json.dumps(page["sessions"], separators=(",", ":"))) <= LIST_BYTES
            seen, offset = seen + page["count"], page.get("nextOffset")
            why.add(page.get("truncationReason"))
        assert (seen, why) == (20, {"byte-limit", None})


def test_ended_children_are_linked_to_for_thirty_minutes() -> None:
    clock = FakeClock()
    with runtime(clock=clock) as rt:
        receipt = rt.spawn("go", "lead", input={"spawn": [("quick", "t", "q"), ("waits", "t", "w")], "hold": True})
        eventually(lambda: rt.runs(agent="quick", state="succeeded") and rt.runs(agent="waits", state="running"))
        labels = {row["key"]: row["label"] for row in rt.sessions(requester=receipt.session_key)}

        def linked() -> list[str]:
            rows = rt.call("sessions.list", {"agentId": "lead"})["sessions"]
            return sorted(labels[key] for key in rows[0]["childSessions"])

        assert linked() == ["q", "w"]
        clock.advance(29 * 60)
        assert linked() == ["q", "w"]
        clock.advance(2 * 60)
        assert linked() == ["w"]
        _open.set()
        rt.result(receipt, timeout=10)


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"limit": 201}, "a whole number from 1 to 200"),
        ({"messageLimit": 21}, "a whole number from 0 to 20"),
        ({"kinds": ["dog"]}, "it is a list of main, group"),
        ({"archived": "some"}, 'it is true, false or "all"'),
        ({"kind": "main"}, "did you mean kinds"),
    ],
)
def test_what_a_list_does_not_take_is_refused(params: dict[str, Any], words: str) -> None:
    with runtime() as rt, pytest.raises(oc.RunFailed, match=words):
        does(rt, calls=[("sessions_list", params)])


def test_rows_of_subagents_link_to_children_that_are_not_in_mind_any_more() -> None:
    with runtime() as rt:
        inner = {"spawn": [("quick", "t", "q")], "join": True}
        receipt = rt.spawn("go", "lead", input=inner)
        rt.result(receipt, timeout=10)
        [child] = rt._local.view("children", {"requester": rt.root_key}, 10, 0)
        assert child.session_key == receipt.session_key
        assert list(child.children) == [row["key"] for row in rt.sessions(requester=receipt.session_key)]
        assert child.error is None


# ---------------------------------------------------------------------- sessions_history


def test_a_childs_history_is_masked_and_what_is_stored_is_not_changed() -> None:
    with runtime() as rt:
        calls = [
            ("sessions_history", {"sessionKey": "{0}"}),
            ("sessions_history", {"key": "{0}", "includeTools": True}),
        ]
        plain, tools = does(rt, spawn=[("quick", "t", None)], join=True, calls=calls)
        assert [row["role"] for row in plain["messages"]] == ["user", "assistant"]
        assert [row["role"] for row in tools["messages"]] == ["user", "tool", "assistant"]
        assert KEY not in json.dumps([plain, tools])
        assert tools["messages"][1]["content"] == "refresh_token: sk-pro…6789"
        assert (plain["contentRedacted"], plain["truncated"], plain["totalMessages"]) == (True, False, 3)
        stored = rt.history(plain["sessionKey"])
        assert KEY in stored[1]["text"]
        raw = rt.call("chat.history", {"key": plain["sessionKey"], "includeRaw": True})
        assert [row["content"] for row in raw["messages"]] == [row["text"] for row in stored]
        masked = rt.call("chat.history", {"key": plain["sessionKey"]})
        assert (masked["messages"], masked["bytes"]) == (plain["messages"], plain["bytes"])


def test_pages_go_back_in_time_and_a_message_id_finds_its_page() -> None:
    with runtime() as rt:
        calls = [("sessions_history", {"sessionKey": "{0}", "limit": 1, "offset": n}) for n in range(4)]
        pages = does(rt, spawn=[("quick", "t", None)], join=True, calls=[*calls[:1], *calls[2:]])
        roles = [[row["role"] for row in page["messages"]] for page in pages]
        assert roles == [["assistant"], ["user"], []]
        assert [page.get("nextOffset") for page in pages] == [1, None, None]
        newest = pages[0]
        named = {"sessionKey": newest["sessionKey"], "sessionId": newest["sessionId"], "limit": 1}
        oldest = pages[1]["messages"][0]["messageId"]
        around = rt.call("sessions.history", {**named, "messageId": oldest})
        assert [row["messageId"] for row in around["messages"]] == [oldest]
        assert (around["offset"], around["hasMore"]) == (2, False)
        with pytest.raises(KeyError):
            rt.call("sessions.history", {**named, "messageId": "9:9"})
        with pytest.raises(oc.PatchRefused, match="not of another"):
            rt.call("sessions.history", {**named, "sessionId": "another"})
        with pytest.raises(oc.ToolInputError, match="it comes with the sessionId"):
            rt.call("sessions.history", {"key": newest["sessionKey"], "messageId": oldest})
        with pytest.raises(oc.ToolInputError, match="leave one of them out"):
            rt.call("sessions.history", {**named, "messageId": oldest, "offset": 1})


def test_the_own_history_has_what_this_turn_has_said() -> None:
    with runtime() as rt:
        own, by_id = asked(rt, calls=[("sessions_history", {"sessionKey": "current"}), ("session_status", {})])
        assert [row["role"] for row in own["messages"]] == ["user"]
        assert "sessions_history" in own["messages"][0]["content"]
        assert by_id["session"]["sessionId"] == own["sessionId"]


def test_a_session_is_named_by_key_id_or_alias_and_a_strange_name_is_unknown() -> None:
    with runtime() as rt:
        [status] = asked(rt, calls=[("session_status", {})])
        key, sid = status["session"]["key"], status["session"]["sessionId"]
        for name in (key, f" {key.upper()} ", sid):
            assert rt.call("sessions.history", {"sessionKey": name})["sessionKey"] == key
        with pytest.raises(KeyError):
            rt.call("sessions.history", {"sessionKey": "no-such-id"})


# ---------------------------------------------------------------------- session_status


def test_a_status_is_a_card_and_its_version_tells_a_change() -> None:
    with runtime() as rt:
        first, patched, second, third = asked(
            rt,
            calls=[
                ("session_status", {}),
                ("sessions", {"action": "patch", "key": "current", "label": "me"}),
                ("session_status", {}),
                ("session_status", {"sessionKey": "current"}),
            ],
        )
        assert first["text"].startswith(f"session {first['sessionKey']}\nagent lead, main, depth 0")
        assert patched["entry"]["label"] == "me"
        assert 'label "me"' in second["text"]
        assert first["stateVersion"] != second["stateVersion"] == third["stateVersion"]
        again, changed = asked(
            rt,
            calls=[
                ("session_status", {"changesSince": "0"}),
                ("session_status", {"model": "default"}),
            ],
        )
        assert again["changed"] is True
        assert changed["status"] == "ok"


def test_a_model_that_would_govern_nothing_is_refused_with_words() -> None:
    with runtime() as rt:
        [said] = asked(rt, calls=[("session_status", {"model": "openai/gpt-5"})])
        assert (said["status"], said["reason"]) == ("error", "model")
        assert "agent lead is a program" in said["error"]
        receipt = rt.spawn("x", "waits")
        with pytest.raises(oc.ToolInputError, match="nothing here that a session's own model could govern"):
            rt.call("sessions.patch", {"key": receipt.session_key, "label": "x", "model": "m"})


# ---------------------------------------------------------------------- sessions: patch, reset, delete


def test_a_label_is_one_live_childs_and_is_free_again_at_its_end() -> None:
    with runtime() as rt:
        first, second = rt.spawn("a", "waits", label="A"), rt.spawn("b", "waits", label="B")
        eventually(lambda: len(rt.runs(agent="waits", state="running")) == 2)
        with pytest.raises(oc.PatchRefused, match="label 'A' is in use by"):
            rt.patch(second.session_key, label="A")
        assert rt.patch(second.session_key, label="C")["label"] == "C"
        assert rt.session(second.session_key)["label"] == "C"
        with pytest.raises(oc.SpawnError, match="label 'C' is in use"):
            rt.spawn("c", "waits", label="C")
        third = rt.spawn("c", "waits", label="B")  # nobody has it any more
        _open.set()
        for receipt in (first, second, third):
            rt.result(receipt, timeout=10)
        assert rt.result(rt.spawn("d", "quick", label="C"), timeout=10).ok
        assert "label" not in rt.patch(third.session_key, label=None)


@pytest.mark.parametrize("name", ["spawnedBy", "spawnDepth", "inheritedToolDeny", "subagentRole"])
def test_lineage_is_not_to_be_patched(name: str) -> None:
    with runtime() as rt:
        receipt = rt.spawn("a", "quick")
        with pytest.raises(oc.ToolInputError, match="set by the host"):
            rt.call("sessions.patch", {"key": receipt.session_key, "label": "x", name: "y"})


def test_a_child_is_reset_and_deleted_by_its_parent() -> None:
    with runtime() as rt:
        calls = [
            ("sessions", {"action": "reset", "key": "{0}"}),
            ("sessions", {"action": "delete", "key": "{0}"}),
            ("sessions_list", {"archived": True}),
        ]
        reset, deleted, listed = does(rt, spawn=[("waits", "t", "w")], calls=calls)
        assert (reset["status"], reset["stop"]["stopped"]) == ("ok", 1)
        assert reset["sessionId"] != reset["previousSessionId"]
        assert (deleted["status"], deleted["deleted"]) == ("ok", True)
        assert [row["key"] for row in listed["sessions"]] == [deleted["key"]]


@pytest.mark.parametrize("what", ["patch", "reset", "delete"])
def test_what_has_changed_since_it_was_seen_is_left_alone(what: str) -> None:
    with runtime() as rt:
        receipt = rt.spawn("a", "waits")
        eventually(lambda: rt.runs(agent="waits", state="running"))
        row = rt.session(receipt.session_key)
        more = {"label": "x"} if what == "patch" else {}
        for seen in ({"sessionId": "older"}, {"expectedLifecycleRevision": row["lifecycleRevision"] + 1}):
            with pytest.raises((oc.PatchRefused, oc.ResetRefused, oc.DeleteRefused), match="changed"):
                rt.call(f"sessions.{what}", {"key": receipt.session_key, **more, **seen})
        assert rt.runs(agent="waits", state="running")
        ids = {"sessionId": row["sessionId"], "lifecycleRevision": row["lifecycleRevision"]}
        assert rt.call(f"sessions.{what}", {"key": receipt.session_key, **more, **ids})["ok"]


# ---------------------------------------------------------------------- one rule at every entrance


def _tool(name: str, **params: Any) -> Callable[[str], tuple[str, dict[str, Any]]]:
    return lambda key: (name, {**params, ("key" if name == "sessions" else "sessionKey"): key})


TOOLS = [
    _tool("sessions_history"),
    _tool("session_status"),
    _tool("sessions", action="patch", label="x"),
    _tool("sessions", action="reset"),
    _tool("sessions", action="delete"),
]
PROGRAM: list[Callable[[LocalRuntime, str], Any]] = [
    lambda rt, key: rt.session(key),
    lambda rt, key: rt.history(key),
    lambda rt, key: rt.patch(key, label="x"),
    lambda rt, key: rt.reset(key),
    lambda rt, key: rt.delete(key),
    lambda rt, key: rt.call("sessions.history", {"key": key}),
    lambda rt, key: rt.call("chat.history", {"key": key}),
    lambda rt, key: rt.call("sessions.patch", {"key": key, "label": "x"}),
    lambda rt, key: rt.call("sessions.reset", {"key": key}),
    lambda rt, key: rt.call("sessions.delete", {"key": key}),
]


def test_a_forbidden_pair_is_refused_for_the_same_reason_at_every_entrance() -> None:
    with runtime() as rt:
        beside = rt.spawn("beside", "waits", label="beside")
        eventually(lambda: rt.runs(agent="waits", state="running"))
        key = beside.session_key
        calls = {"calls": [tool(key) for tool in TOOLS], "hold": True}
        holder = rt.send("lead", json.dumps(calls), timeout_seconds=0).receipt
        eventually(lambda: rt.runs(agent="lead", state="running"))
        mine = bound(rt, holder.session_key)
        reasons = set()
        for call in PROGRAM:
            with pytest.raises(oc.SessionForbidden) as caught:
                call(mine, key)
            reasons.add((caught.value.reason, caught.value.path, str(caught.value)))
        assert key not in {row["key"] for row in mine.sessions()}
        assert key not in {row["sessionKey"] for row in mine.runs()}
        assert key not in {row["key"] for row in mine.call("sessions.list")["sessions"]}
        with pytest.raises(oc.SessionForbidden):
            mine.run(beside.run_id)
        with pytest.raises(oc.SessionForbidden):
            rt._local.ended(beside.run_id, mine._asker)
        with pytest.raises(oc.SessionForbidden):
            mine.events()
        with pytest.raises(oc.ToolInputError, match="operator alone"):
            mine.call("sessions.history", {"key": holder.session_key, "includeRaw": True})
        _open.set()
        said = rt.result(holder, timeout=20).raise_for_status().value
        reasons |= {(one["reason"], one["path"], one["error"]) for one in said}
        assert len(reasons) == 1
        assert next(iter(reasons))[0] == "visibility"
        assert rt.session(key)["label"] == "beside"
        assert rt.result(beside, timeout=10).ok
        assert {row["key"] for row in rt.sessions()} >= {key, holder.session_key}  # the operator sees all


def test_a_denial_does_not_tell_whether_there_is_such_a_session() -> None:
    with runtime() as rt:
        beside = rt.spawn("beside", "waits").session_key
        nobody = f"{beside[:-4]}0000"
        one, other = asked(rt, calls=[("session_status", {"sessionKey": key}) for key in (beside, nobody)])
        assert one["error"].replace(beside, nobody) == other["error"]
        assert one["reason"] == other["reason"] == "visibility"


def test_what_is_in_sight_is_not_to_be_ended_for_that() -> None:
    with runtime({**ANYBODY, "tools": {"sessions": {"visibility": "all"}}}) as rt:
        beside = rt.spawn("beside", "waits")
        eventually(lambda: rt.runs(agent="waits", state="running"))
        calls = [("sessions", {"action": what, "key": beside.session_key}) for what in ("reset", "delete")]
        calls.append(("sessions", {"action": "patch", "key": beside.session_key, "label": "x"}))
        calls.append(("sessions", {"action": "reset", "key": "current"}))
        *others, own = does(rt, calls=calls)
        for said in others:
            assert (said["status"], said["reason"]) == ("forbidden", "control")
            assert "not below this session" in said["error"]
        assert (own["status"], own["reason"]) == ("forbidden", "control")
        assert rt.runs(agent="waits", state="running")


@pytest.mark.parametrize("activation", ["", "other.1", "{sid}.99"])
def test_a_turn_that_does_not_run_is_told_nothing(activation: str) -> None:
    with runtime() as rt:
        holder = rt.spawn("go", "lead", input={"hold": True})
        mine = bound(rt, holder.session_key)
        sid = rt.session(holder.session_key)["sessionId"]
        registry = rt._local
        stale = Asker(holder.session_key, activation.format(sid=sid))
        assert registry.asked(mine._asker, "list", {}).ok
        for answer in (
            registry.asked(stale, "list", {}),
            registry.asked(stale, "session", {"key": holder.session_key}),
            registry.asked(stale, "may", {"key": holder.session_key, "what": "delete"}),
            registry.patch(stale, holder.session_key, "x"),
        ):
            assert (answer.status, answer.reason, answer.value) == ("forbidden", "stale", None)
        for what in ("sessions", "runs", "children", "agents"):
            with pytest.raises(oc.SessionForbidden, match="is not the turn that runs now"):
                registry.view(what, {"requester": holder.session_key}, 10, 0, stale)
        assert registry.delete(holder.session_key, sid, 1, stale) == "forbidden"
        assert registry.reset(holder.session_key, sid, 1, "new", stale) == "forbidden"
        with pytest.raises(oc.SessionForbidden, match="children of another session"):
            registry.view("children", {"requester": rt.root_key}, 10, 0, mine._asker)
        foreign = Asker(rt.root_key, mine._asker.activation)  # a right activation, of another session
        assert registry.asked(foreign, "list", {}).reason == "stale"
        assert rt.session(holder.session_key)["sessionId"] == sid
        _open.set()
        rt.result(holder, timeout=10)
        assert registry.asked(mine._asker, "list", {}).reason == "stale"  # its turn is over
