"""Whose model, whose message, whose sandbox: what they take away reaches list, prompt and dispatch (SPEC.md E3, E6)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

import openclaw_ray as oc
from openclaw_ray.core.protocol.records import Session, thaw
from openclaw_ray.core.session_facts import SessionFacts
from openclaw_ray.testing import LocalRuntime, eventually, run_turn

Seen = dict[str, Any]


@oc.agent
def looks(turn: oc.SyncTurn) -> Seen:
    """What it has, in three ways; with ``deeper`` a child's look, too, and with ``later`` one of its own wake."""
    seen = _seen(turn)
    if turn.text.startswith("deeper"):
        turn.spawn(turn.text.removeprefix("deeper").strip() or "look", agent_id="looks", label="below")
        [done] = turn.join()
        seen["below"] = done.result.raise_for_status().value
    if turn.text == "later":
        turn.spawn("look", agent_id="looks")
        turn.yield_()
    return seen


@oc.agent
def waits(turn: oc.SyncTurn) -> Seen:
    """A sub-agent whose run goes on with a message, as often as there is one."""
    turn.state["seen"] = [*turn.state.get("seen", ()), _seen(turn)]
    if turn.text == "enough":
        return turn.state["seen"]
    turn.yield_(wait_for="message")
    raise AssertionError("a yield does not return")


@oc.agent
def talks(turn: oc.SyncTurn) -> str:
    """Sends on what it is told; in its turn of the ping-pong it says what it then has."""
    if turn.source is not None:
        return "REPLY_SKIP" if turn.source.turn != 1 else f"listed: {','.join(turn.tools)}"
    turn.send("agent:answers:main", "hello", timeout_seconds=0)
    return "sent"


@oc.agent
def answers(turn: oc.SyncTurn) -> str:
    turn.state["heard"] = [*turn.state.get("heard", ()), turn.text]
    return "REPLY_SKIP" if turn.source is not None and turn.source.turn else "hello yourself"


def _seen(turn: oc.SyncTurn) -> Seen:
    try:
        turn.call("subagents")
    except oc.ToolDenied as error:
        denied = (error.rule, error.path)
    else:
        denied = None
    prompt = turn.prompt()
    listed = list(turn.tools)
    assert prompt.tools == tuple(listed)
    assert ("subagents" in prompt.system) == ("subagents" in listed)
    who = None if turn.sender is None else turn.sender.to_json()
    return {"listed": listed, "denied": denied, "kind": turn.kind.value, "sender": who}


AGENTS = [looks, waits, talks, answers]
ADA, BOB = {"channel": "telegram", "id": "7"}, {"username": "@Bob"}
BY_SENDER = {"channel:telegram:7": {"deny": ["subagents"]}, "username:bob": {"deny": ["sessions_list"]}}
GLOBAL = ("sender", "tools.toolsBySender.channel:telegram:7.deny")


def config(entries: dict[str, Any] | None = None, **tools: Any) -> dict[str, Any]:
    subagents = {"allowAgents": ["*"]}
    return {"agents": {"defaults": {"subagents": subagents}, "entries": entries or {}}, "tools": tools}


def runtime(settings: dict[str, Any]) -> LocalRuntime:
    return LocalRuntime(agents=AGENTS, config=settings)


# ---------------------------------------------------------------------- provider and model


@pytest.mark.parametrize("model", ["acme/large", "ACME/Large", "acme/large@acme:work", "acme/other"])
def test_rules_of_a_provider_hold_for_sessions_with_its_models(model: str) -> None:
    key = "acme/large" if "arge" in model else "Acme"
    rules = {"byProvider": {key: {"deny": ["subagents"]}, "other": {"deny": ["sessions_list"]}}}
    with runtime(config({"looks": {"model": model}}, **rules)) as rt:
        before = rt.tools("looks")  # its main session is not there yet
        seen = rt.ask("looks", "deeper", timeout=20).value
        assert rt.tools("looks") == before
    for each in (seen, seen["below"]):  # the child has its caller's model
        assert each["denied"] == ("provider", f"tools.byProvider.{key}.deny")
        assert "sessions_list" in each["listed"]


def test_rules_of_a_provider_go_by_the_model_that_the_spawn_resolves() -> None:
    own = {"byProvider": {"acme": {"allow": ["sessions_*"]}}}
    with runtime(config({"looks": {"tools": own}})) as rt:
        free = rt.result(rt.spawn("look", "looks"), timeout=20).value
        bound = rt.result(rt.spawn("look", "looks", model="acme/small"), timeout=20).value
    assert free["denied"] is None
    assert bound["denied"] == ("agent provider", "agents.entries.looks.tools.byProvider.acme.allow")


# ---------------------------------------------------------------------- sandbox


def test_the_gate_of_the_sandbox_holds_for_a_session_that_is_in_one() -> None:
    """There is no backend that would run it: the record alone is made so."""
    with runtime(config(sandbox={"tools": {"deny": ["subagents"]}})) as rt:
        rt.ask("looks", "look", timeout=20)
        session = rt._local.core.s.sessions["agent:looks:main"]
        session.facts = replace(session.facts or SessionFacts(), sandboxed=True)
        seen = rt.ask("looks", "look", timeout=20).value
        assert seen["denied"] == ("sandbox", "tools.sandbox.tools.deny")
        assert rt.tools("looks").decide("agents_list").rule == "sandbox"  # not among those that the gate lets through


# ---------------------------------------------------------------------- senders


def test_what_is_said_of_a_sender_holds_for_the_turn_that_answers_it() -> None:
    with runtime(config(toolsBySender=BY_SENDER)) as rt:
        told = {
            name: rt.ask("looks", "look", timeout=20, sender=sender).value
            for name, sender in (("ada", ADA), ("bob", BOB), ("eve", {"id": "9"}), ("nobody", None))
        }
        assert {name: seen["denied"] for name, seen in told.items()} == {
            "ada": GLOBAL, "bob": None, "eve": None, "nobody": None
        }  # fmt: skip
        assert "sessions_list" not in told["bob"]["listed"]
        assert told["nobody"]["listed"] == told["eve"]["listed"] == list(rt.tools("looks").tools)
        assert told["ada"]["sender"] == ADA
        assert told["nobody"]["sender"] is None
        assert rt.tools("looks", sender=ADA).decide("subagents").path == GLOBAL[1]
        rows = [row for row in rt.history("agent:looks:main") if row["role"] == "user"]
        assert [row.get("sender") for row in rows] == [ADA, {"username": "@Bob"}, {"id": "9"}, None]


def test_an_agents_word_on_a_sender_takes_the_place_of_the_global_one_even_an_empty_one() -> None:
    own = {"looks": {"tools": {"toolsBySender": {"id:7": {}}}}}
    with runtime(config(own, toolsBySender=BY_SENDER)) as rt:
        assert rt.ask("looks", "look", timeout=20, sender=ADA).value["denied"] is None


def test_a_message_may_have_a_sender_and_so_may_one_that_the_gateway_call_sends() -> None:
    with runtime(config(toolsBySender=BY_SENDER)) as rt:
        sent = rt.send("looks", "look", 20, sender=oc.Sender(channel="telegram", id="7"))
        assert sent.result is not None
        assert sent.result.value["denied"] == GLOBAL
        rt.call("sessions.send", {"key": "looks", "message": "look", "timeoutSeconds": 20, "sender": ADA})
        assert [row.get("sender") for row in rt.history("agent:looks:main") if row["role"] == "user"] == [ADA, ADA]


def test_a_childs_snapshot_is_what_held_for_the_sender_of_the_turn_that_spawned_it() -> None:
    """SPEC.md E6: it stays whatever the configuration says by then, but for who writes to the child itself."""
    with runtime(config(toolsBySender=BY_SENDER)) as rt:
        seen = rt.ask("looks", "deeper deeper", timeout=20, sender=ADA).value
        rule = ("inherited", "sender by agent:looks:main")
        assert (seen["denied"], seen["below"]["denied"], seen["below"]["below"]["denied"]) == (GLOBAL, rule, rule)
        [child] = rt.sessions(requester="agent:looks:main")
        assert child["inheritedToolDeny"] == ["subagents"]
        limits = rt._local.core.s.limits
        rt._local.core.s.limits = replace(limits, tools=None)  # nothing is said of senders any more
        assert rt.ask("looks", "look", timeout=20, sender=ADA).value["denied"] is None
        resumed = rt.send(child["key"], "look", 20).result
        assert resumed is not None
        assert resumed.value["denied"] == rule
        rt._local.core.s.limits = limits
        by_bob = rt.send(child["key"], "look", 20, sender=BOB).result
        assert by_bob is not None
        assert by_bob.value["denied"] is None
        assert "sessions_list" not in by_bob.value["listed"]


def test_a_wake_of_a_senders_run_has_no_more_than_its_first_turn() -> None:
    with runtime(config(toolsBySender=BY_SENDER)) as rt:
        seen = rt.ask("looks", "later", timeout=20, sender=ADA).value
    assert (seen["kind"], seen["denied"], seen["sender"]) == ("wake", GLOBAL, None)


def test_a_run_that_waits_for_messages_is_bound_by_all_who_wrote_to_it() -> None:
    with runtime(config(toolsBySender=BY_SENDER)) as rt:
        receipt = rt.spawn("begin", "waits")
        key = receipt.session_key
        for text, sender in (("by ada", ADA), ("by bob", BOB), ("by the operator", None)):
            _when_it_waits(rt, key)
            rt.send(key, text, 0, sender=sender)
        _when_it_waits(rt, key)
        rt.send(key, "enough", 0)
        seen = rt.result(receipt, timeout=20).raise_for_status().value
    assert [each["sender"] for each in seen] == [None, ADA, {"username": "@Bob"}, None, None]
    denied = [each["denied"] and tuple(each["denied"]) for each in seen]  # some by way of JSON
    assert denied == [None, *[GLOBAL] * 4]
    assert ["sessions_list" in each["listed"] for each in seen] == [True, True, False, False, False]


def _when_it_waits(rt: LocalRuntime, key: str) -> None:
    eventually(lambda: rt.runs(session=key)[0]["state"] == "paused")


def test_what_a_session_says_in_a_ping_pong_is_still_for_the_sender_of_its_first_turn() -> None:
    denied = {"*": {"allow": ["sessions_send", "sessions_list"]}}
    settings = config(toolsBySender=denied)
    settings["tools"]["sessions"] = {"visibility": "all"}
    with runtime(settings) as rt:
        rt.ask("talks", "go", timeout=20, sender=ADA)
        eventually(lambda: any("listed:" in row["text"] for row in rt.history("agent:answers:main")))
        texts = [row["text"] for row in rt.history("agent:answers:main")]
    assert "listed: sessions_list,sessions_send" in texts


def test_only_what_the_operator_brings_in_has_a_sender() -> None:
    with runtime(config(toolsBySender=BY_SENDER)) as rt:
        for given, says in (
            ({}, "says who it is"),
            ({"owner": True}, "says who it is"),
            ({"id": ""}, r"sender\.id: a text"),
            ({"id": 7}, r"sender\.id: a text"),
            ({"idd": "7"}, "no field 'idd'"),
            ({"id": "7", "owner": "yes"}, "sender.owner"),
            ("id:7", "a Sender, or a mapping"),
        ):
            with pytest.raises(ValueError, match=says):
                rt.ask("looks", "look", sender=given)  # type: ignore[arg-type]
        with pytest.raises(oc.SpawnForbidden, match="is a session: what it sends has no sender"):
            rt.send("looks", "look", 0, requester="agent:answers:main", sender=ADA)
        with pytest.raises(oc.SpawnForbidden, match="a notice is told with a turn of somebody else"):
            rt.send("looks", "look", 0, mode="notify", sender=ADA)
        with pytest.raises(oc.ToolInputError, match="sender"):
            rt.call("sessions.send", {"key": "looks", "message": "look", "sender": {"idd": "7"}})
        assert not rt.sessions(agent=["looks"])


def test_a_turn_that_answers_somebody_is_not_the_owners() -> None:
    """SPEC.md I3: the owner's memory is for turns that the operator vouches for."""
    with runtime(config()) as rt:
        for sender, owner in ((None, True), (ADA, False), ({**ADA, "owner": True}, True)):
            rt.ask("looks", "deeper", timeout=20, sender=sender)
            [newest] = rt._local.core.s.journal.select("sessions", {"requester": "agent:looks:main"}, limit=1)
            stamp = thaw(Session, newest).stamp
            assert stamp is not None
            assert stamp.sender_is_owner is owner


def test_one_turn_alone_knows_who_wrote_to_it_and_has_a_prompt() -> None:
    @oc.agent
    def tells(turn: oc.SyncTurn) -> str:
        turn.spawn("part", agent_id="part", task_name="first")
        during = turn.prompt().ambient
        turn.join()
        turn.spawn("part two", agent_id="part")
        assert turn.sender is not None
        return f"{turn.sender.id}\n{turn.prompt().system}\n{during}\n--\n{turn.prompt().ambient}"

    said = run_turn(tells, "go", children={"part": "done it"}, sender=ADA).result.text
    assert said is not None
    head, after = said.split("\n--\n")
    assert head.startswith("7\n# Sub-agent")
    assert "# Tools\nYou may call: sessions," in head
    assert '"taskName": "first"' in head
    assert "## Child results awaiting delivery" in head
    assert '"task": "part two"' in after
    assert after.count('"sessionKey"') == 2
