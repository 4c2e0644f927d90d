"""core.announce: SPEC.md F1, F3, F5, F6; what the conformance cases leave open."""

from __future__ import annotations

from typing import Any

import pytest

from openclaw_ray.core import announce
from openclaw_ray.core.announce import AnnounceStatus, Finding, Handover, RetryLadder, SessionLink
from openclaw_ray.core.lifecycle import ResultStatus

ASKED = {"role": "user", "content": "do it"}


def said(text: str, *blocks: dict[str, Any]) -> dict[str, Any]:
    return {"role": "assistant", "content": [{"type": "text", "text": text}, *blocks]}


CALL = {"type": "toolCall", "id": "c", "name": "read", "arguments": {}}


# --------------------------------------------------------------------------- which text


def test_a_failed_run_never_replays_what_it_said() -> None:
    chosen = announce.select_result("error", [ASKED, said("almost done")], error="boom")
    assert (chosen.result, chosen.partial, chosen.status_label) == (
        "(no output)",
        "almost done",
        "failed: boom",
    )
    assert chosen.delivery is Handover.DELIVER
    assert not chosen.missing


def test_the_word_failed_in_a_text_does_not_make_a_failure() -> None:
    chosen = announce.select_result("ok", [ASKED, said("FAILED: everything")])
    assert (chosen.status, chosen.result) == (AnnounceStatus.OK, "FAILED: everything")


@pytest.mark.parametrize(
    "messages", [[], [ASKED], [ASKED, said(" \n")], [ASKED, {"role": "tool", "content": "42"}]]
)
def test_a_run_without_visible_text_is_a_missing_deliverable(messages: list[dict[str, Any]]) -> None:
    chosen = announce.select_result("ok", messages)
    assert (chosen.result, chosen.missing, chosen.delivery) == ("(no output)", True, Handover.DELIVER)


def test_a_silence_token_does_not_hide_a_failure() -> None:
    for token in ("ANNOUNCE_SKIP", "NO_REPLY"):
        chosen = announce.select_result("error", [ASKED, said(token)], error="boom")
        assert (chosen.delivery, chosen.partial) == (Handover.DELIVER, None)


def test_announce_skip_never_shows_as_text() -> None:
    for status in AnnounceStatus:
        assert "SKIP" not in announce.select_result(status, [ASKED, said("ANNOUNCE_SKIP")]).result


def test_nothing_is_handed_up_if_nobody_expects_it() -> None:
    chosen = announce.select_result("ok", [ASKED, said("hello")], expects_completion=False)
    assert (chosen.delivery, chosen.result) == (Handover.SUPPRESS, "hello")


def test_a_message_from_another_session_begins_a_new_turn() -> None:
    other = {**said("please go on"), "provenance": {"kind": "inter_session"}}
    assert announce.select_result("ok", [ASKED, said("old"), other]).result == "(no output)"


def test_a_tool_call_takes_back_what_was_said_before_it() -> None:
    messages = [ASKED, said("thinking aloud"), {"role": "assistant", "content": [CALL]}]
    assert announce.select_result("ok", messages).result == "(no output)"


def test_a_reasoning_turn_does_not_hide_the_answer_before_it() -> None:
    reasoning = {"role": "assistant", "content": [{"type": "thinking", "thinking": "hm"}]}
    assert announce.select_result("ok", [ASKED, said("answer"), reasoning]).result == "answer"


def test_blocks_of_one_message_are_one_text() -> None:
    message = said("a ", {"type": "image"}, {"type": "text", "text": "b"}, {"type": "text"})
    assert announce.select_result("ok", [ASKED, message]).result == "a b"


def test_only_the_newest_hundred_messages_are_looked_at() -> None:
    rows = [said("old"), *[{"role": "toolResult", "content": "x"}] * 100]
    assert announce.select_result("ok", rows).result == "(no output)"


def test_tool_calls_of_a_timed_out_run_are_counted() -> None:
    one = {"role": "assistant", "content": [CALL]}
    assert announce.select_result("timeout", [ASKED, one]).result == "1 tool call, no visible output"
    assert announce.select_result("timeout", [ASKED, one, one]).result == "2 tool calls, no visible output"
    late = announce.select_result("timeout", [ASKED, one, said("half done")])
    assert (late.result, late.partial) == ("(no output)", "half done")


@pytest.mark.parametrize("content", [None, 5, [None, 5, {"type": "text", "text": 7}]])
def test_malformed_content_is_no_text(content: object) -> None:
    row = {"role": "assistant", "content": content}
    assert announce.select_result("ok", [ASKED, row]).result == "(no output)"


def test_every_result_status_has_a_word() -> None:
    assert {announce.announce_status(status) for status in ResultStatus} == set(AnnounceStatus)


# --------------------------------------------------------------------------- order, retries, route


def test_findings_come_by_creation_then_end_then_key() -> None:
    rows = [
        Finding("d", "k4", 2, 3),
        Finding("c", "k3", 1, None),
        Finding("b", "k2", 1, 9),
        Finding("a", "k1", 1, 9),
    ]
    assert [row.run_id for row in announce.findings_order(rows)] == ["a", "b", "c", "d"]


def test_of_one_child_session_only_the_newest_run_is_told() -> None:
    old, new, tie = (
        Finding("old", "k", 1, 2),
        Finding("new", "k", 2, 3),
        Finding("tie", "k", 2, 3, generation=1),
    )
    for rows in ([old, new, tie], [tie, new, old]):
        assert announce.findings_order(rows) == [tie]


def test_the_ladder_is_5_10_20_and_then_gives_up() -> None:
    assert announce.LADDER.times() == (0, 5, 15, 35)
    assert [announce.LADDER.wait_after(failed) for failed in (1, 2, 3, 4)] == [5, 10, 20, None]
    assert RetryLadder(()).times() == (0,)


SESSIONS = {
    "agent:main:main": SessionLink(True),
    "agent:main:subagent:a": SessionLink(False, "agent:main:main"),
    "agent:main:subagent:b": SessionLink(True, "agent:main:subagent:a"),
    "agent:main:subagent:c": SessionLink(False, "agent:main:subagent:c"),
}


@pytest.mark.parametrize(
    ("requester", "route"),
    [
        ("agent:main:main", announce.Route("agent:main:main", deliver=True)),
        ("agent:main:subagent:b", announce.Route("agent:main:subagent:b")),
        ("agent:main:subagent:a", announce.Route("agent:main:main", deliver=True, fallback=True)),
        ("agent:main:subagent:c", announce.Route(None)),
        ("agent:main:subagent:ghost", announce.Route(None)),
    ],
)
def test_a_completion_goes_to_whoever_is_left(requester: str, route: announce.Route) -> None:
    assert announce.route(requester, SESSIONS.get) == route
