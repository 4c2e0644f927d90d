"""Who speaks in a conversation, what users command there, what sessions make known there (SPEC.md B2, B8, E6)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

import openclaw_ray as oc
from openclaw_ray.core.errors import SpawnError, SpawnForbidden
from openclaw_ray.testing import Conversations, FakeClock, LocalRuntime, eventually

HOUR = 3600.0
ADA, BOB = {"id": "1", "name": "Ada"}, oc.Sender(id="2", name="Bob")


@oc.agent(id="main", follow_up=True)
def main(turn: oc.SyncTurn) -> Any:
    """Spawns, sends and tells what it may, as users ask for it."""
    word, _, rest = turn.text.partition(" ")
    if turn.kind == "completion":
        return None
    if turn.source is not None:
        return "go on"
    if word == "spawn":
        return turn.spawn("be of help", label=rest or "helper", agent_id="expert", thread=True).session_key
    if word == "work":
        turn.spawn("work", label=rest, agent_id="expert")
        return turn.join()[0].text
    if word == "talk":
        sent = turn.send(None, "let us talk", label=rest, timeout_seconds=0)
        return f"sent to {sent.session_key}"
    return told(turn)


@oc.agent(id="expert")
def expert(turn: oc.SyncTurn) -> Any:
    """Answers, talks a turn with who writes, and makes known what came of it."""
    if turn.source is None:
        return told(turn)
    if turn.source.step == "announce":
        return "ANNOUNCE_SKIP" if turn.session.label == "hushed" else f"{turn.session.label} makes it known"
    return "between us"


def told(turn: oc.SyncTurn) -> str:
    """Who wrote, and whether its turn may call the tool that only some senders may."""
    who = None if turn.sender is None else turn.sender.identity()
    return f"{turn.session.label or turn.session.key}: {who}, {'sessions_list' in list(turn.tools)}"


def config(**more: Any) -> dict[str, Any]:
    return {"agents": {"defaults": {"subagents": {"allowAgents": ["*"]}}}, **more}


class Place:
    """A runtime with a chat and a conversation of users."""

    def __init__(self, clock: FakeClock | None = None, chat: Conversations | None = None, **more: Any) -> None:
        self.chat = chat or Conversations()
        self.clock = clock
        self.rt = LocalRuntime([main, expert], config(**more), clock=clock, channel=self.chat)
        self.desk = self.chat.open_conversation("desk")

    def __enter__(self) -> Place:
        self.rt.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self.rt.__exit__(*error)

    def helper(self, label: str = "helper") -> tuple[Any, str]:
        """A helper whose thread has said its first word, and its key."""
        key = self.desk.ask(f"spawn {label}")
        thread = self.chat.thread(label)
        thread.reply()
        return thread, key

    def refused(self, text: str, sender: Mapping[str, Any] | oc.Sender | None = None) -> str:
        """What the desk is told of a command that is refused."""
        with pytest.raises((SpawnError, SpawnForbidden)) as caught:
            self.desk.say(text, sender=sender)
        said = self.desk.reply()
        assert said == str(caught.value)
        return said


# ---------------------------------------------------------------------- who speaks


ONLY_ADA = {"tools": {"toolsBySender": {"channel:memory:1": {}, "*": {"deny": ["sessions_list"]}}}}


def test_the_turn_knows_who_spoke_and_its_tools_are_those_of_the_sender() -> None:
    with Place(**ONLY_ADA) as place:
        assert place.desk.ask("hi", sender=ADA) == "agent:main:main: channel:memory:1, True"
        assert place.desk.ask("hi", sender=BOB) == "agent:main:main: channel:memory:2, False"
        thread, _ = place.helper()
        assert thread.ask("hi", sender=ADA) == "helper: channel:memory:1, True"
        assert thread.ask("hi", sender=BOB) == "helper: channel:memory:2, False"
        assert thread.ask("hi", sender=ADA) == "helper: channel:memory:1, True", "each turn goes by its own"


def test_what_a_user_has_spawned_for_it_is_bound_by_who_that_was() -> None:
    with Place(**ONLY_ADA) as place:
        place.desk.ask("spawn of-bob", sender=BOB)
        thread = place.chat.thread("of-bob")
        assert thread.reply() == "of-bob: None, False", "a senderless turn goes by the snapshot"
        assert thread.ask("hi", sender=ADA) == "of-bob: channel:memory:1, True", "a new sender's by his own rules"


def test_a_sender_that_is_none_is_refused_before_anything_is_said() -> None:
    with Place() as place:
        for wrong in ({"id": ""}, {"nickname": "x"}, {"channel": "memory"}, {"id": "1", "owner": "yes"}):
            with pytest.raises(ValueError, match="sender"):
                place.desk.say("hi", sender=wrong)
        assert place.desk.lines == ()
        assert place.rt.runs() == []


# ---------------------------------------------------------------------- /agents


def test_users_see_who_is_at_work_and_in_which_conversation() -> None:
    with Place() as place:
        assert place.desk.ask("/agents") == "agents:\n(none)"
        thread, key = place.helper()
        eventually(lambda: place.desk.ask("/agents").endswith(f'"helper" (done) {key} binding:{thread.id}'))
        assert place.desk.ask(f"/focus {key}") == f"bound to {key}"
        assert place.desk.ask("/agents").endswith(f"binding:{thread.id} binding:{place.desk.id}")
        assert place.desk.ask("/unfocus") == f"unbound from {key}"
        thread.leave()
        eventually(lambda: place.desk.ask("/agents") == "agents:\n(none)")
        assert place.rt.runs(session="agent:main:main") == place.rt.runs(session="agent:main:main", limit=1), (
            "commands are no messages"
        )


def test_where_nothing_can_be_bound_that_is_said() -> None:
    with Place(chat=Conversations(binds=False)) as place:
        place.rt.spawn("x", "main")
        place.desk.ask("hi")
        assert "no sub-agent" in place.refused("/focus agent:main:main")
        assert place.desk.ask("/agents") == "agents:\n(none)"


# ---------------------------------------------------------------------- /focus


def test_focus_takes_a_number_a_label_its_beginning_a_key_or_a_session_id() -> None:
    with Place() as place:
        _, key = place.helper()
        session_id = place.rt.session(key)["sessionId"]
        for word in ("1", "last", "helper", "help", key, session_id):
            assert place.desk.ask(f"/focus {word}") == f"bound to {key}", word
            assert place.desk.ask("/unfocus") == f"unbound from {key}"
        place.helper("help2")
        assert "means 2 children" in place.refused("/focus help")
        assert "no sub-agent" in place.refused("/focus agent:main:main")
        assert "'nobody'" in place.refused("/focus nobody")


def test_only_who_has_bound_a_conversation_binds_it_anew_drops_it_or_changes_its_times() -> None:
    with Place() as place:
        _, one = place.helper("one")
        _, two = place.helper("two")
        assert place.desk.ask("/focus one", sender=ADA) == f"bound to {one}"
        only = "only channel:memory:1 may change this binding"
        for word in ("focus two", "focus one", "unfocus", "session unbind", "session idle 1", "session max-age off"):
            command = f"/{word}"
            assert only in place.refused(command, BOB), command
            assert only in place.refused(command), "nor does one who is not known"
        assert place.desk.ask("/session idle", sender=BOB).startswith("idle is 1d"), "to look is for all"
        assert place.desk.ask("hello", sender=BOB).startswith("one: channel:memory:2"), "so is to speak"
        place.desk.ask("/session max-age 3", sender=ADA)
        [row] = [row for row in place.rt.threads() if row["conversation"] == place.desk.id]
        assert (row["boundBy"], row["maxAgeHours"], row.get("idleHours")) == ("channel:memory:1", 3.0, None)
        assert place.desk.ask("/focus two", sender=ADA) == f"bound to {two}"
        assert place.desk.ask("/unfocus", sender=ADA) == f"unbound from {two}"
        assert place.desk.ask("/focus one", sender=BOB) == f"bound to {one}", "it is free again"


def test_what_a_spawn_has_bound_is_everybodys_to_change() -> None:
    with Place() as place:
        thread, key = place.helper()
        assert thread.ask("/session idle 3", sender=BOB).startswith("idle is now 3h")
        assert thread.ask("/unfocus", sender=ADA) == f"unbound from {key}"


@pytest.mark.parametrize("visibility", ["self", "agent", "tree"])
def test_users_reach_what_the_main_session_may_see_and_are_told_the_same_as_its_tools(visibility: str) -> None:
    @oc.agent(id="main")
    def asks(turn: oc.SyncTurn) -> Any:
        if turn.text.startswith("agent:"):
            return turn.call("session_status", sessionKey=turn.text).to_json()["error"]
        return turn.spawn("be", label="own", agent_id="expert", thread=True).session_key

    chat = Conversations()
    settings = config(tools={"sessions": {"visibility": visibility}})
    with LocalRuntime([asks, expert], settings, channel=chat) as rt:
        desk = chat.open_conversation("desk")
        own = desk.ask("go")
        beside = rt.spawn("x", "expert", label="beside").session_key
        for key in [beside] if visibility == "tree" else [own, beside]:
            denial = rt.ask("main", key, timeout=20).value or rt.ask("main", key, timeout=20).text
            with pytest.raises(SpawnForbidden) as caught:
                desk.say(f"/focus {key}")
            assert str(caught.value) == denial == desk.reply()
            assert "tools.sessions.visibility" in denial
            assert caught.value.receipt.path == "tools.sessions.visibility"
        assert (own in desk.ask("/agents")) is (visibility == "tree")
        assert beside not in desk.ask("/agents")
        with pytest.raises((SpawnError, SpawnForbidden)):
            desk.say("/focus beside")


# ---------------------------------------------------------------------- times of one binding


def test_a_time_set_in_a_conversation_is_that_conversations_alone() -> None:
    clock = FakeClock()
    with Place(clock, session={"threadBindings": {"idleHours": 2}}) as place:
        one, _ = place.helper("one")
        two, _ = place.helper("two")
        assert one.ask("/session idle") == (
            "idle is 2h: this conversation is unbound after 2h of silence, in 2h as it stands"
        )
        clock.advance(HOUR)
        assert one.ask("/session idle").endswith("in 1h as it stands"), "to look is no word"
        assert one.ask("/session idle 5").endswith("in 5h as it stands"), "to set it is one"
        clock.advance(1.1 * HOUR)
        eventually(lambda: two.ended == "idle")
        clock.advance(3.8 * HOUR)
        assert one.bound_to is not None
        clock.advance(0.2 * HOUR)
        eventually(lambda: one.ended == "idle")


def test_off_is_never_and_an_age_is_that_of_the_binding() -> None:
    clock = FakeClock()
    with Place(clock, session={"threadBindings": {"idleHours": 2, "maxAgeHours": 30}}) as place:
        thread, _ = place.helper()
        assert thread.ask("/session idle off") == "idle is now off: this conversation stays bound whatever its silence"
        assert thread.ask("/session max-age").startswith("max-age is 1d6h")
        clock.advance(10 * HOUR)
        assert thread.ask("/session max-age 12h").endswith("after 12h of age, in 2h as it stands")
        clock.advance(1.9 * HOUR)
        assert thread.bound_to is not None
        clock.advance(0.2 * HOUR)
        eventually(lambda: thread.ended == "max-age")


def test_times_are_of_bound_conversations_and_a_slip_is_told_of() -> None:
    with Place() as place:
        assert place.refused("/session idle 3") == "this conversation is bound to no session"
        assert "no time" in place.refused("/session idle soon")
        assert "/focus <label" in place.refused("/focus")
        assert place.rt.runs() == []


# ---------------------------------------------------------------------- what comes of a ping-pong


def replies(count: int) -> dict[str, Any]:
    return {
        "tools": {"sessions": {"visibility": "all"}},
        "session": {"agentToAgent": {"maxPingPongTurns": count}},
    }


def exchanges(rt: LocalRuntime, count: int = 1) -> list[Any]:
    """The exchanges that are over, as events; waited for."""
    found: list[Any] = []

    def ended() -> None:
        found[:] = [event for event in rt._events_after(0, 0.0) if event.kind == "exchange"]
        assert len(found) >= count

    eventually(ended)
    return found


@pytest.mark.parametrize("most", [1, 3])
def test_the_last_word_of_a_ping_pong_is_said_where_its_target_is_bound_and_nothing_else_is(most: int) -> None:
    with Place(**replies(most)) as place:
        thread, key = place.helper()
        assert place.desk.ask("talk helper") == f"sent to {key}"
        assert thread.reply() == "helper makes it known"
        [over] = exchanges(place.rt)
        assert over.done == most
        assert len(thread.replies) == 2
        assert len(place.desk.replies) == 2


def test_a_target_that_is_bound_nowhere_is_heard_where_the_question_was_asked() -> None:
    with Place(**replies(1)) as place:
        other = place.chat.open_conversation("other")
        assert place.desk.ask("work loose") == "loose: None, True"
        assert other.ask("hello").startswith("agent:main:main")
        assert place.desk.ask("talk loose").startswith("sent to ")
        assert place.desk.reply() == "loose makes it known"
        assert len(other.replies) == 1


def test_nothing_is_made_known_that_is_skipped_or_that_no_user_asked_for() -> None:
    with Place(**replies(1)) as place:
        thread, _ = place.helper("hushed")
        place.desk.ask("talk hushed")
        exchanges(place.rt)
        place.desk.ask("work loose")
        place.rt.ask("main", "talk loose", timeout=20)
        exchanges(place.rt, 2)
        eventually(lambda: not place.rt.runs(state=["queued", "running", "paused"], limit=10) or None)
        assert len(thread.replies) == 1
        assert len(place.desk.replies) == 3
