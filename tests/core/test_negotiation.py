"""The ping-pong after a message, and circles of waits: pure rules (SPEC.md B2; SCENARIOS 48, 49)."""

from __future__ import annotations

import pytest

from openclaw_ray.core.lifecycle import RunState
from openclaw_ray.core.protocol.negotiation import (
    Action,
    Phase,
    Said,
    announce_prompt,
    heard_text,
    next_move,
    reply_prompt,
)
from openclaw_ray.core.wait_graph import wait_cycle

OK = RunState.SUCCEEDED


def played(limit: int, replies: list[Said], chain_left: int = 100) -> tuple[list[str], str | None]:
    """Who took turns, for replies that come in order, and why it ended; the last reply repeats itself."""
    phase, turns, taken = Phase.REPLY, 0, list[str]()
    while True:
        said = replies.pop(0) if len(replies) > 1 else replies[0]
        move = next_move(phase, turns, limit, chain_left - turns, said)
        if move.action in (Action.OVER, Action.ANNOUNCE):
            return [*taken, *(["announce"] if move.action is Action.ANNOUNCE else [])], move.why
        phase, turns = Phase.TURNS, turns + 1
        taken.append(move.action.value)


@pytest.mark.parametrize("limit", range(6))
def test_two_that_always_answer_take_exactly_as_many_turns_as_there_may_be_the_requester_first(limit: int) -> None:
    taken, why = played(limit, [Said(OK, "more")])
    turns = [word for word in taken if word != "announce"]
    assert turns == ["requester", "target", "requester", "target", "requester"][:limit]
    assert ("announce" in taken) == (limit > 0)
    assert why == "limit reached"


@pytest.mark.parametrize(
    ("said", "why"),
    [
        (Said(OK, "REPLY_SKIP"), "reply_skip"),
        (Said(OK, " **reply_skip.** "), "reply_skip"),
        (Said(OK, "NO_REPLY"), "no_reply"),
        (Said(OK, "ANNOUNCE_SKIP"), "announce_skip"),
        (Said(OK, " \n"), "empty"),
        (Said(OK, None), "empty"),
        (Said(RunState.FAILED), "failed"),
        (Said(RunState.TIMED_OUT), "failed"),
        (Said(RunState.LOST), "failed"),
        (Said(RunState.CANCELLED, "text"), "stopped"),
    ],
)
@pytest.mark.parametrize("at", range(6))
def test_each_end_has_its_name_at_any_turn(said: Said, why: str, at: int) -> None:
    taken, found = played(5, [*[Said(OK, "more")] * at, said])
    assert found == why
    assert len([word for word in taken if word != "announce"]) == at
    assert ("announce" in taken) == (at > 0 and why not in ("failed", "stopped"))


def test_a_mention_of_a_token_is_an_answer() -> None:
    assert played(1, [Said(OK, "I will say REPLY_SKIP later")])[1] == "limit reached"


def test_the_chain_ends_it_before_the_limit_and_says_so() -> None:
    taken, why = played(5, [Said(OK, "more")], chain_left=2)
    assert (taken, why) == (["requester", "target", "announce"], "chain bound")


@pytest.mark.parametrize("phase", [Phase.ANNOUNCE, Phase.OVER])
def test_nothing_follows_an_announce(phase: Phase) -> None:
    assert next_move(phase, 3, 5, 9, Said(OK, "more")).action is Action.OVER


@pytest.mark.parametrize(
    ("said", "text"),
    [
        (Said(OK, "made known"), "made known"),
        (Said(OK, "ANNOUNCE_SKIP"), None),
        (Said(OK, "no_reply"), None),
        (Said(OK, " "), None),
        (Said(RunState.FAILED, "made known"), None),
    ],
)
def test_an_announce_may_say_nothing(said: Said, text: str | None) -> None:
    assert heard_text(said) == text


def test_the_prompts_name_who_talks_which_turn_it_is_and_how_to_stop() -> None:
    reply = reply_prompt("agent:a:main", "agent:b:main", 2, 5)
    assert all(part in reply for part in ("agent:a:main", "agent:b:main", "turn 2 of at most 5", "REPLY_SKIP"))
    last = announce_prompt("agent:b:main", "agent:a:main", "the question", "the first", None)
    assert all(part in last for part in ("the question", "the first", "(nothing)", "ANNOUNCE_SKIP"))


EDGES = {"a": ["b"], "b": ["c", "d"], "c": [], "d": ["e"], "e": ["a"], "x": ["x"]}


@pytest.mark.parametrize(
    ("waiter", "target", "circle"),
    [
        ("a", "a", ("a", "a")),
        ("c", "a", ("c", "a", "b", "c")),
        ("e", "b", ("e", "b", "d", "e")),
        ("z", "a", ()),
        ("c", "x", ()),
        ("c", "nobody", ()),
    ],
)
def test_a_circle_is_found_and_named_from_the_waiter_back_to_it(
    waiter: str, target: str, circle: tuple[str, ...]
) -> None:
    assert wait_cycle(waiter, target, lambda key: EDGES.get(key, [])) == circle
