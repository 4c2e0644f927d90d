"""PROTOCOL.md 3.6 and SPEC.md C, stages 1e-g and 4: what a child is to be is settled in the step that admits it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from openclaw_ray.core.attachments import Attached, AttachmentLimits, FileFacts
from openclaw_ray.core.bounds import SANDBOX_BACKEND
from openclaw_ray.core.limits import AgentSettings
from openclaw_ray.core.protocol.messages import Archive, Branch, Consumed, Payload, Row, Rows
from openclaw_ray.core.session_facts import ChildAsk, SessionFacts
from rules.asking import agent, key_of
from rules.hand import Hand

FILES = Attached((FileFacts("a", 5, "0" * 64), FileFacts("b", 7, "1" * 64)), "agents/w/attachments/x")


def facts_of(hand: Hand, session: str) -> SessionFacts | None:
    return hand.registry.s.sessions[key_of(session)].facts


def family(settings: AgentSettings | None = None, other: AgentSettings | None = None, **limits: Any) -> Hand:
    """The agents ``w`` and ``x``, each with these settings."""
    hand = Hand(actors=4, agents=[agent("x", settings=other, allow_agents=("*",))], **limits)
    if settings is not None:
        own = hand.registry.s.agents["w"]
        hand.registry.s.agents["w"] = replace(own, limits=replace(own.limits, settings=settings, allow_agents=("*",)))
    return hand


# ---------------------------------------------------------------------- nothing


def test_a_plain_child_has_no_facts_and_its_receipt_no_more_than_names() -> None:
    hand = family()
    turn = hand.start("a")
    receipt = turn.spawn("b")
    assert (facts_of(hand, "a"), facts_of(hand, "b"), turn.spec.facts) == (None, None, None)
    assert (receipt.model, receipt.context, receipt.attachments) == (None, None, None)


# ---------------------------------------------------------------------- folder, model, level


def test_the_folder_goes_to_own_children_and_never_to_another_agent() -> None:
    hand = family(AgentSettings(workspace="/w", model="m/w"), AgentSettings(workspace="/x", model="m/x"))
    turn = hand.start("a", ask=ChildAsk(cwd="/elsewhere", model="m/call"))
    turn.spawn("own")
    turn.spawn("other", agent_id="x")
    a, own, other = (facts_of(hand, name) for name in ("a", "own", "other"))
    assert a is not None
    assert own is not None
    assert other is not None
    assert (a.cwd, a.workspace, a.home, a.model) == ("/elsewhere", "/w", "/w", "m/call")
    assert (own.cwd, own.workspace, own.home, own.model) == ("/elsewhere", "/elsewhere", "/w", "m/call")
    assert (other.cwd, other.workspace, other.home, other.model) == ("/x", "/x", "/x", "m/x")


def test_an_agent_without_a_folder_has_none_of_its_callers() -> None:
    hand = family(AgentSettings(workspace="/w", model="m/w"))
    turn = hand.start("a")
    turn.spawn("other", agent_id="x")
    assert facts_of(hand, "other") is None


def test_a_level_that_is_none_refuses_and_reserves_nothing() -> None:
    hand = family(AgentSettings(default_thinking="turbo"))
    receipt = hand.admit("a")
    assert (receipt.status, receipt.limit) == ("error", "thinking")
    assert "agents.defaults.subagents.thinking" in (receipt.error or "")
    assert key_of("a") not in hand.registry.s.sessions
    assert hand.admit("b", ask=ChildAsk(thinking="Extra High")).accepted
    facts = facts_of(hand, "b")
    assert facts is not None
    assert facts.thinking == "xhigh"


def test_a_main_session_has_what_is_configured() -> None:
    hand = family(AgentSettings(workspace="/w", model="m/w", thinking="low"))
    assert hand.ask("hello").accepted
    facts = hand.registry.s.sessions["agent:w:main"].facts
    assert facts == SessionFacts(workspace="/w", cwd="/w", home="/w", model="m/w", thinking="low")


# ---------------------------------------------------------------------- sandbox (SPEC.md I2)


def boxed(hand: Hand, session: str) -> None:
    """As if there were a backend: the session runs in a sandbox."""
    record = hand.registry.s.sessions[key_of(session)]
    record.facts = SessionFacts(sandboxed=True, workspace="/w")


def test_a_sandboxed_session_gets_no_open_child_neither_directly_nor_through_another_agent() -> None:
    hand = family(AgentSettings(sandbox="off", workspace="/w"))
    turn = hand.start("a")
    middle = turn.child("m", agent_id="x")
    for session, asker in (("a", turn), ("m", middle)):
        boxed(hand, session)
        for target in ("w", "x"):
            receipt = asker.spawn(f"{session}-{target}", agent_id=target)
            assert (receipt.status, receipt.limit) == ("forbidden", "sandbox")


def test_a_required_sandbox_is_forbidden_where_the_child_would_have_none() -> None:
    receipt = family().admit("a", ask=ChildAsk(sandbox_required=True))
    assert (receipt.status, receipt.limit, receipt.path) == ("forbidden", "sandbox", "agents.defaults.sandbox.mode")


@pytest.mark.parametrize("mode", ["non-main", "all"])
def test_without_a_backend_nothing_that_is_to_be_sandboxed_is_made(mode: str) -> None:
    path = "agents.entries.w.sandbox.mode"
    hand = family(AgentSettings(sandbox=mode, sandbox_path=path, workspace="/w"))
    for ask in (None, ChildAsk(sandbox_required=True), ChildAsk(cwd="/w")):
        receipt = hand.admit("a", ask=ask)
        assert (receipt.status, receipt.limit, receipt.path) == ("error", SANDBOX_BACKEND, path)
    receipt = hand.admit("a", ask=ChildAsk(cwd="/elsewhere"))
    assert (receipt.status, receipt.limit) == ("forbidden", "cwd")
    assert hand.ask("hello").accepted is (mode == "non-main")
    assert key_of("a") not in hand.registry.s.sessions


def test_a_main_session_of_before_is_not_run_open_after_the_mode_changed() -> None:
    hand = family(AgentSettings())
    assert hand.ask("hello").accepted
    own = hand.registry.s.agents["w"]
    hand.registry.s.agents["w"] = replace(own, limits=replace(own.limits, settings=AgentSettings(sandbox="all")))
    assert hand.ask("again").limit == SANDBOX_BACKEND


# ---------------------------------------------------------------------- fork


def rows(hand: Hand) -> list[Any]:
    hand.push()
    return hand.rows


def row(turn: Any, number: int, text: str) -> Rows:
    spec = turn.spec
    return Rows(turn.run, turn.activation, (Row(spec.session_id, spec.number, number, "assistant", text, 1.0),))


def test_a_branch_stands_in_line_after_what_was_said_and_before_what_the_child_says() -> None:
    hand = family()
    turn = hand.start("a")
    turn.say(row(turn, 0, "before"))
    receipt = turn.spawn("b", ask=ChildAsk(context="fork"))
    turn.say(row(turn, 1, "after"))
    assert receipt.context == "fork"
    line = [one if isinstance(one, Branch) else one.text for one in rows(hand)]
    assert line == ["before", Branch("s-b", "s-a"), "after"]


def test_a_branch_that_no_hub_has_acknowledged_comes_again_after_a_registry_crash() -> None:
    hand = family()
    turn = hand.start("a")
    turn.spawn("b", ask=ChildAsk(context="fork"))
    hand.crash_registry()
    assert Branch("s-b", "s-a") in rows(hand)


def test_only_a_session_forks_and_only_for_its_own_agent() -> None:
    hand = family(AgentSettings(model="m/w"))
    turn = hand.start("a")
    for receipt in (
        turn.spawn("b", agent_id="x", ask=ChildAsk(context="fork")),
        hand.admit("c", ask=ChildAsk(context="fork")),
    ):
        assert (receipt.status, receipt.limit) == ("error", "context")
    assert not any(isinstance(one, Branch) for one in rows(hand))


# ---------------------------------------------------------------------- attachments


def test_the_configuration_in_force_has_the_last_word_on_attachments() -> None:
    for limits, answer in (
        (None, ("forbidden", "tools.sessions_spawn.attachments.enabled")),
        (AttachmentLimits(max_file_bytes=6), ("error", "tools.sessions_spawn.attachments.maxFileBytes")),
        (AttachmentLimits(max_total_bytes=11), ("error", "tools.sessions_spawn.attachments.maxTotalBytes")),
    ):
        receipt = family(attachments=limits).admit("a", ask=ChildAsk(attachments=FILES))
        assert (receipt.status, receipt.path) == answer


def test_the_input_with_the_files_goes_along_with_each_turn() -> None:
    hand = family(attachments=AttachmentLimits())
    turn = hand.start("a", input=Payload(data=b"files"), ask=ChildAsk(attachments=FILES))
    assert turn.spec.attachments == AttachmentLimits()
    assert turn.spec.facts is not None
    assert turn.spec.facts.attachments == FILES
    run, session = hand.run("a"), hand.registry.s.sessions[key_of("a")]
    run.turns = 2
    assert hand.registry.birth.spec(run, session).input == Payload(data=b"files")


@pytest.mark.parametrize(
    ("cleanup", "retain", "removed"),
    [("keep", False, True), ("keep", True, False), ("delete", True, True), ("delete", False, True)],
)
def test_what_becomes_of_the_files_with_the_session(cleanup: str, retain: bool, removed: bool) -> None:
    hand = family(attachments=AttachmentLimits(retain=retain), archive_after_minutes=60)
    hand.start("a", cleanup=cleanup, ask=ChildAsk(attachments=FILES)).settle()
    hand.start("plain", cleanup=cleanup).settle()
    hand.say("driver", Consumed("driver", ("a", "plain")))
    hand.wait(3601)
    hand.tick()
    found = {one.session_id: one.files for one in rows(hand) if isinstance(one, Archive)}
    assert found == {"s-a": removed, "s-plain": False}


def test_a_deleted_session_takes_its_files_along_even_if_they_were_to_be_kept() -> None:
    hand = family(attachments=AttachmentLimits(retain=True))
    hand.start("a", ask=ChildAsk(attachments=FILES)).settle()
    hand.say("driver", Consumed("driver", ("a",)))
    hand.do(hand.registry.delete(key_of("a"), "s-a", _revision(hand, "a"))[1])
    assert [one.files for one in rows(hand) if isinstance(one, Archive)] == [True]


def _revision(hand: Hand, session: str) -> int:
    from openclaw_ray.core.protocol.archiving import find_session

    found = find_session(hand.registry.s, key_of(session))
    assert found is not None
    return found.number
