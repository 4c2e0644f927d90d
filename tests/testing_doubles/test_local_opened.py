"""Sessions that a client opens beside an agent's main one: a conversation for each user (SPEC.md D1; DESIGN.md 7)."""

from __future__ import annotations

import threading
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest
from support.gates import GATES

import openclaw_ray as oc
from openclaw_ray.core.errors import SpawnError, SpawnForbidden, UnknownAgent
from openclaw_ray.core.protocol.messages import Admit
from openclaw_ray.testing import Conversations, LocalRuntime, assert_at_rest, eventually

ALL = {"tools": {"sessions": {"visibility": "all"}}, "agents": {"defaults": {"subagents": {"allowAgents": ["*"]}}}}


@oc.agent(id="main", follow_up=True)
def main(turn: oc.SyncTurn) -> Any:
    """Counts what it hears, and does what it is told."""
    if turn.kind == "completion":
        turn.state["news"] = turn.state.get("news", 0) + 1
        return None
    if turn.text == "news":
        return turn.state.get("news", 0)
    heard = turn.state["heard"] = turn.state.get("heard", 0) + 1
    word, _, rest = turn.text.partition(" ")
    if word == "send":
        sent = turn.call("sessions_send", sessionKey=rest, message="hello", timeoutSeconds=5).to_json()
        return f"{sent['status']}: {sent.get('reply') or sent.get('error')}"
    if word == "later":
        return turn.send(rest, "hello", timeout_seconds=0).status
    if word == "list":
        return sorted(row["key"] for row in turn.call("sessions_list")["sessions"])
    if word == "hold":
        from support.gates import GATES

        GATES["held"].wait(20)
    if word == "spawn":
        return [one.text for one in turn.join([turn.spawn("child", agent_id="child")])]
    return f"{turn.session.key} {heard}: {turn.text}"


@oc.agent(id="child", spawns=False)
def child(turn: oc.SyncTurn) -> str:
    return f"below {turn.session.requester_key}"


def runtime(config: Any = None) -> LocalRuntime:
    return LocalRuntime([main, child], config or {"agents": {"defaults": {"subagents": {"allowAgents": ["*"]}}}})


def test_each_user_has_a_conversation_of_their_own() -> None:
    with runtime() as rt:
        assert rt.ask("agent:main:ada", "hello", timeout=20).text == "agent:main:ada 1: hello"
        assert rt.ask("agent:main:bob", "hello", timeout=20).text == "agent:main:bob 1: hello"
        assert rt.ask("Agent:Main:ADA", "again", timeout=20).text == "agent:main:ada 2: again"
        assert rt.ask("main", "hello", timeout=20).text == "agent:main:main 1: hello"
        rows = {row["key"]: row for row in rt.sessions()}
        assert set(rows) >= {"agent:main:ada", "agent:main:bob", "agent:main:main"}
        row = rows["agent:main:ada"]
        assert (row["depth"], row["role"], row["agentId"], row["rootKey"]) == (0, "main", "main", "agent:main:ada")
        texts = [row["text"] for row in rt.history("agent:main:ada")]
        assert texts == ["hello", "agent:main:ada 1: hello", "again", "agent:main:ada 2: again"]


def test_memory_has_those_who_talk_and_no_others() -> None:
    with runtime() as rt:
        sessions = rt._local.core.s.sessions
        for user in range(20):
            rt.ask(f"agent:main:user-{user}", "hello", timeout=20)
        assert rt.ask("agent:main:user-3", "spawn", timeout=20).value == ["below agent:main:user-3"]
        eventually(lambda: not [key for key in sessions if ":user-" in key] or None)
        assert rt.stop("agent:main:user-3").total == 0
        assert rt.ask("agent:main:user-3", "hello", timeout=20).text == "agent:main:user-3 3: hello"
        assert rt.send(rt.session("agent:main:user-4")["sessionId"], "by id").reply == "agent:main:user-4 2: by id"
        assert len([row for row in rt.sessions(limit=100) if ":user-" in row["key"]]) == 20
        eventually(lambda: assert_at_rest(rt))


def test_a_session_that_is_still_to_hear_of_its_message_does_not_rest_until_it_has() -> None:
    with runtime({**ALL, "session": {"agentToAgent": {"maxPingPongTurns": 1}}}) as rt:
        assert rt.ask("agent:main:ada", "later main", timeout=20).text == "accepted"
        eventually(lambda: rt.ask("agent:main:ada", "news", timeout=20).value == 1)
        eventually(lambda: "agent:main:ada" not in rt._local.core.s.sessions)
        assert rt.ask("agent:main:ada", "news", timeout=20).value == 1, "it has heard once"


def test_an_opened_session_is_deleted_and_opened_anew_and_reset() -> None:
    with runtime() as rt:
        key = "agent:main:direct:42"
        rt.ask(key, "hello", timeout=20)
        before = rt.session(key)["sessionId"]
        rt.reset(key)
        assert rt.ask(key, "hello", timeout=20).text == f"{key} 1: hello"
        assert rt.session(key)["sessionId"] != before
        rt.delete(key)
        assert rt.session(key)["status"] == "archived"
        assert rt.ask(key, "hello", timeout=20).text == f"{key} 1: hello"
        assert rt.session(key)["status"] != "archived"


@pytest.mark.parametrize(
    ("key", "word"),
    [
        ("agent:main:subagent:nobody", "is a child's, which is spawned"),
        ("agent:main:driver:x", "is a client's root"),
        ("agent:main:main:ada", "means the agent's main session"),
        ("agent:main:cron:job", "is a scheduled job's"),
        ("agent:main:ada:thread:1", "thread of agent:main:ada"),
        ("agent:main:a b", "no spaces"),
        ("agent::ada", "no agent or session"),
        ("agent:nobody:ada", "no agent or session"),
    ],
)
def test_what_cannot_be_opened_says_why_and_leaves_nothing(key: str, word: str) -> None:
    with runtime() as rt:
        before = len(rt.sessions())
        with pytest.raises((SpawnError, UnknownAgent), match=word):
            rt.ask(key, "hello", timeout=20)
        assert len(rt.sessions()) == before
        assert rt.runs() == []


def test_a_session_opens_none_and_neither_does_a_send() -> None:
    with runtime(ALL) as rt:
        said = rt.ask("main", "send agent:main:ada", timeout=20).text
        assert said == "error: no session 'agent:main:ada'; the first message of a client opens it (rt.ask)"
        with pytest.raises(SpawnError, match=r"the first message of a client opens it"):
            rt.send("agent:main:ada", "hello")
        assert "agent:main:ada" not in {row["key"] for row in rt.sessions()}


def test_a_users_session_sees_its_own_and_the_main_session_sees_all_of_its_agent() -> None:
    with runtime() as rt:
        for user in ("ada", "bob"):
            rt.ask(f"agent:main:{user}", "hello", timeout=20)
        assert rt.ask("agent:main:ada", "spawn", timeout=20).value == ["below agent:main:ada"]
        seen = rt.ask("agent:main:ada", "list", timeout=20).value
        assert [key for key in seen if "subagent" not in key] == ["agent:main:ada"]
        assert len(seen) == 2
        said = rt.ask("agent:main:ada", "send agent:main:bob", timeout=20).text
        assert said is not None
        assert said.startswith("forbidden: agent:main:ada may not use agent:main:bob: it was not spawned from there")
        assert rt.ask("agent:main:ada", "send main", timeout=20).text.startswith("forbidden: ")
        with pytest.raises(SpawnForbidden, match=r"tools\.sessions\.visibility"):
            rt.send("agent:main:bob", "hello", requester="agent:main:ada")
        assert rt.ask("main", "send agent:main:bob", timeout=20).text == "ok: agent:main:bob 2: hello"
        assert {"agent:main:ada", "agent:main:bob"} <= set(rt.ask("main", "list", timeout=20).value)


@pytest.mark.parametrize("route", ["ask", "say"])
def test_no_step_of_a_session_opens_one_or_speaks_for_a_user_whatever_it_claims_to_be(route: str) -> None:
    hold = GATES["held"] = threading.Event()
    with LocalRuntime([main, child], ALL, channel=Conversations()) as rt, ThreadPoolExecutor(1) as users:
        asked = users.submit(rt.ask, "main", "hold", 60)
        try:
            [row] = eventually(lambda: rt.runs(agent="main", state="running"))
            local, key = rt._local, row["sessionKey"]
            run = local.core.s.runs[row["runId"]]
            process, own = local.sessions[run.actor], run.activation
            for requester, activation in (
                (key, own),
                (key, f"{own}9"),
                (rt.root_key, own),
                (rt.root_key, ""),
                (key, ""),
            ):
                made = f"raw-{requester}-{activation}"
                admit = Admit(
                    made, "agent:main:ada", f"{made}-s", route, requester, "x", activation, conversation="memory-1"
                )
                future: Future[oc.Receipt] = Future()
                process.courier.admit([(admit, future)])
                receipt = future.result(60)
                assert receipt.status in ("forbidden", "error"), (requester, activation, receipt)
        finally:
            hold.set()
        assert asked.result(60).ok
        assert "agent:main:ada" not in {row["key"] for row in rt.sessions()}
        assert len(rt.runs()) == 1


def test_a_users_turn_goes_by_who_it_is() -> None:
    rules = {"tools": {"toolsBySender": {"id:42": {"deny": ["sessions_list"]}}}}
    with runtime(rules) as rt:
        ada = rt.ask("agent:main:ada", "list", timeout=20, sender={"id": "1"})
        assert ada.value == ["agent:main:ada"]
        with pytest.raises(oc.RunFailed, match=r"tools\.toolsBySender\.id:42\.deny names sessions_list"):
            rt.ask("agent:main:bob", "list", timeout=20, sender={"id": "42"})
