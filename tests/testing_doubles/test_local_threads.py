"""Conversations of sessions over whole trees: bound, spoken in, answered, ended (SPEC.md B1, B8, C stage 3, F5)."""

from __future__ import annotations

import asyncio
import json
import threading
from typing import Any

import pytest
from support.gates import GATES

import openclaw_ray as oc
from openclaw_ray.core.errors import InboxFull, SpawnError, SpawnForbidden
from openclaw_ray.core.protocol.threads import BIND_WITHIN
from openclaw_ray.testing import Conversations, FakeClock, LocalRuntime, eventually, run_turn

HOUR = 3600.0


class Main(oc.Agent):
    """Spawns what its input says, or what a user asks for, and tells what became of it."""

    def on_turn(self, turn: oc.SyncTurn) -> Any:
        if turn.kind == "completion":
            return f"heard: {[done.text for done in turn.completions]}"
        if turn.text == "hello":
            return f"hello from {turn.session.key}"
        params = dict(turn.input or {"thread": True, "label": "helper", "agent_id": "expert"})
        try:
            receipt = turn.spawn(params.pop("task", "be of help"), **params)
        except (SpawnError, SpawnForbidden) as error:
            return f"{error.receipt.status}: {error}"
        return f"spawned {receipt.session_key}"


class Expert(oc.Agent):
    """Counts what it hears, in its state."""

    def on_turn(self, turn: oc.SyncTurn) -> str | None:
        heard = turn.state["heard"] = turn.state.get("heard", 0) + 1
        if turn.text == "fail":
            raise RuntimeError("no idea")
        if turn.text == "hush":
            return "NO_REPLY"
        return f"{turn.session.label or turn.session.agent_id} {heard}: {turn.text}"


@oc.agent
def curious(turn: oc.SyncTurn) -> Any:
    """What a turn sees of its own session and conversation."""
    return f"{turn.session.mode} in {turn.session.conversation}: {turn.history(limit=5)[0]['text']}"


def config(**more: Any) -> dict[str, Any]:
    subagents = {"allowAgents": ["*"], **more.pop("subagents", {})}
    return {"agents": {"defaults": {"subagents": subagents}}, **more}


class Place:
    """A runtime with a chat, and one conversation of users in it."""

    def __init__(self, chat: Conversations | None = None, clock: FakeClock | None = None, **more: Any) -> None:
        self.chat = chat or Conversations()
        self.clock = clock
        self.rt = LocalRuntime(agents=[Main, Expert, curious], config=config(**more), clock=clock, channel=self.chat)
        self.desk = self.chat.open_conversation("desk")

    def __enter__(self) -> Place:
        self.rt.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self.rt.__exit__(*error)

    def spawn(self, **params: Any) -> str:
        """What main says about a spawn that its input asks for."""
        receipt = self.rt.spawn("go", "main", input=params)
        return str(self.rt.result(receipt, timeout=20).text)

    def helper(self) -> tuple[Any, str]:
        """A helper with a thread that has said its first word; its session key."""
        assert self.desk.ask("get me somebody").startswith("spawned ")
        thread = self.chat.thread("helper")
        assert thread.reply() == "helper 1: be of help"
        assert thread.bound_to is not None
        return thread, thread.bound_to

    def sessions(self, agent: str) -> list[dict[str, Any]]:
        return [row for row in self.rt.sessions(limit=100) if row["agentId"] == agent]


# ---------------------------------------------------------------------- bound and spoken in


def test_a_user_talks_with_a_child_in_its_thread_and_it_remembers() -> None:
    with Place() as place:
        thread, key = place.helper()
        assert thread.parent is place.desk
        assert thread.ask("one") == "helper 2: one"
        assert thread.ask("two") == "helper 3: two"
        assert thread.bound_to == key
        assert [row["key"] for row in place.sessions("expert")] == [key]
        [row] = [row for row in place.rt.threads() if row["mode"] == "session"]
        assert (row["sessionKey"], row["conversation"], row["state"]) == (key, thread.id, "bound")


def test_what_is_said_elsewhere_goes_to_the_main_session() -> None:
    with Place() as place:
        assert place.desk.ask("hello") == "hello from agent:main:main"
        assert place.desk.bound_to is None
        other = place.chat.open_conversation("other")
        assert other.ask("hello") == "hello from agent:main:main"
        assert len(place.desk.replies) == 1


def test_a_session_child_is_announced_to_nobody_and_kept() -> None:
    with Place() as place:
        _, key = place.helper()
        eventually(lambda: not place.rt.runs(state=["queued", "running", "paused"], limit=10)[1:] or None)
        assert place.desk.replies == (f"spawned {key}",)
        runs = place.rt.runs(session=key, limit=10)
        assert [run["deliveryStatus"] for run in runs] == ["not_required"]
        rows = place.rt.history("agent:main:main")
        assert not [row for row in rows if "be of help" in row["text"]]


def test_a_session_child_holds_up_nobody_and_a_stop_from_above_reaches_it() -> None:
    @oc.agent(id="main")
    def main(turn: oc.SyncTurn) -> str:
        return turn.spawn("wait", agent_id="waiter", label="w", thread=True).status

    @oc.agent
    async def waiter(turn: oc.Turn) -> str:
        await asyncio.sleep(600)
        return "at last"

    chat = Conversations()
    with LocalRuntime(agents=[main, waiter], config=config(), channel=chat) as rt:
        assert chat.open_conversation("desk").ask("go") == "accepted"
        assert [row["agentId"] for row in rt.runs(state=["queued", "running"], limit=10) if row["depth"]] == ["waiter"]
        assert rt.stop("agent:main:main").stopped == 1
        assert chat.thread("w").lines == ()


def test_a_run_child_with_a_thread_tells_both() -> None:
    with Place() as place:
        said = place.spawn(thread=True, mode="run", label="helper", agent_id="expert")
        assert place.chat.thread("helper").reply() == "helper 1: be of help"
        assert said == "heard: ['helper 1: be of help']"
        assert place.chat.thread("helper").ask("more") == "helper 2: more"


def test_a_turn_sees_its_mode_and_where_it_answers() -> None:
    with Place() as place:
        place.spawn(thread=True, agent_id="curious", label="c")
        thread = place.chat.thread("c")
        said = thread.reply()
        assert said.startswith(f"session in {thread.id}: ")
        assert "This session stays" in said


def test_how_a_run_failed_is_said_and_silence_is_not() -> None:
    with Place() as place:
        thread, _ = place.helper()
        assert thread.ask("fail") == "[failed] no idea"
        thread.say("hush")
        assert thread.ask("and?") == "helper 3: and?"


def test_messages_of_other_sessions_are_answered_to_them_alone() -> None:
    with Place() as place:
        thread, key = place.helper()
        assert place.rt.send(key, "between us").reply == "helper 2: between us"
        assert thread.ask("you there?") == "helper 3: you there?"
        assert len(thread.replies) == 2


def test_the_driver_spawns_a_session_with_a_thread() -> None:
    with Place() as place:
        receipt = place.rt.spawn("be of help", "expert", label="mine", thread=True)
        thread = place.chat.thread("mine")
        assert thread.reply() == "mine 1: be of help"
        assert thread.bound_to == receipt.session_key
        assert receipt.context in (None, "isolated")


def test_a_spawn_by_the_tool_says_what_the_mode_means() -> None:
    @oc.agent(id="main")
    def caller(turn: oc.SyncTurn) -> Any:
        return turn.call("sessions_spawn", task="x", thread=True, agentId="expert", label="t").to_json()

    chat = Conversations()
    with LocalRuntime(agents=[caller, Expert], config=config(), channel=chat) as rt:
        said = rt.ask("main", "go", timeout=20).value
        assert (said["status"], said["mode"], said["expectsCompletionMessage"]) == ("accepted", "session", False)
        assert "conversation" in said["note"]
        assert chat.thread("t").reply() == "t 1: x"


def test_a_bound_child_begins_with_a_branch_unless_configured_or_asked_otherwise() -> None:
    @oc.agent(id="main")
    def forks(turn: oc.SyncTurn) -> str:
        if turn.session.depth:
            return f"{turn.session.context}, {len(turn.history(limit=50)) > 1}"
        return str(turn.spawn("look", label="f", thread=True, **json.loads(turn.text)).context)

    for settings, given, context in (
        ({}, {}, "fork"),
        ({}, {"context": "isolated"}, "isolated"),
        ({"session": {"threadBindings": {"defaultSpawnContext": "isolated"}}}, {}, "isolated"),
        ({"channels": {"memory": {"threadBindings": {"defaultSpawnContext": "isolated"}}}}, {}, "isolated"),
    ):
        chat = Conversations()
        with LocalRuntime(agents=[forks], config=config(**settings), channel=chat) as rt:
            said = rt.ask("main", json.dumps(given), timeout=20).text
            assert chat.thread("f").reply() == f"{context}, {context == 'fork'}"
            assert said in (context, "None")


# ---------------------------------------------------------------------- refused


@pytest.mark.parametrize(
    ("channel", "settings", "word"),
    [
        (None, {}, "this session has none"),
        (Conversations("sms", binds=False), {}, "needs a channel that can bind"),
        (Conversations(), {"session": {"threadBindings": {"enabled": False}}}, "session.threadBindings.enabled"),
        (Conversations(), {"session": {"threadBindings": {"spawnSessions": False}}}, "threadBindings.spawnSessions"),
        (Conversations(), {"channels": {"memory": {"threadBindings": {"enabled": False}}}}, "enabled"),
    ],
)
def test_without_a_channel_that_may_bind_a_thread_is_refused(
    channel: Conversations | None, settings: dict[str, Any], word: str
) -> None:
    with LocalRuntime(agents=[Main, Expert], config=config(**settings), channel=channel) as rt:
        said = rt.result(rt.spawn("go", "main", input={"thread": True, "agent_id": "expert"}), timeout=20).text
        assert said is not None
        assert said.startswith("error: thread")
        assert word in said
        with pytest.raises(SpawnError, match="thread"):
            rt.spawn("x", "expert", thread=True)
        assert not [row for row in rt.sessions(limit=100) if row["agentId"] == "expert"]


def test_a_channel_may_bind_where_the_others_may_not() -> None:
    settings = {
        "session": {"threadBindings": {"enabled": False}},
        "channels": {"memory": {"threadBindings": {"enabled": True}}},
    }
    with Place(**settings) as place:
        place.helper()
        assert place.rt.spawn("x", "expert", thread=True).accepted


def test_a_session_without_a_thread_is_refused_as_ever() -> None:
    with Place() as place:
        assert place.spawn(mode="session", agent_id="expert").startswith("error: mode session needs thread: true")


@pytest.mark.parametrize("raises", [False, True])
def test_when_the_channel_refuses_no_child_is_left(raises: bool) -> None:
    with Place(subagents={"maxChildrenPerAgent": 1}) as place:
        if raises:
            place.chat.bind = lambda wish: 1 // 0  # type: ignore[method-assign,assignment]
        else:
            place.chat.refuses = "the guild is full"
        said = place.spawn(thread=True, agent_id="expert")
        assert said.startswith("error: thread: ")
        assert ("ZeroDivisionError" if raises else "the guild is full") in said
        assert place.sessions("expert") == []
        assert place.rt.threads() == []
        # the reservation is given back: the one place there is can be had
        place.chat.__dict__.pop("bind", None)
        place.chat.refuses = None
        assert place.spawn(thread=True, agent_id="expert", label="h").startswith("spawned ")


def test_a_refused_spawn_never_asks_the_channel() -> None:
    with Place(subagents={"allowAgents": []}) as place:
        assert place.spawn(thread=True, agent_id="expert").startswith("forbidden: ")
        assert place.chat.threads() == ()


def test_a_spawn_in_flight_counts_against_the_cap() -> None:
    chat = Conversations()
    bind = chat.bind
    GATES.clear()
    go_on = GATES.setdefault("go on", threading.Event())

    def slow(wish: Any) -> str:
        GATES["asked"].set()
        assert go_on.wait(20)
        return bind(wish)

    chat.bind = slow  # type: ignore[method-assign]
    GATES["asked"] = threading.Event()

    @oc.agent(id="main")
    async def main(turn: oc.Turn) -> str:
        from support.gates import GATES

        first = asyncio.ensure_future(turn.spawn("one", agent_id="expert", thread=True))
        await asyncio.to_thread(GATES["asked"].wait, 20)
        try:
            await turn.spawn("two", agent_id="expert")
        except SpawnForbidden as error:
            said = str(error)
        else:
            said = "spawned two"
        GATES["go on"].set()
        return f"{(await first).status}; {said}"

    with LocalRuntime(agents=[main, Expert], config=config(subagents={"maxChildrenPerAgent": 1}), channel=chat) as rt:
        said = rt.ask("main", "go", timeout=30).text
        assert said is not None
        assert said.startswith("accepted; maxChildrenPerAgent reached: 1 of 1")


def test_a_channel_that_never_answers_is_given_up() -> None:
    clock = FakeClock()
    go_on = threading.Event()
    chat = Conversations()
    bind = chat.bind

    def late(wish: Any) -> str:
        assert go_on.wait(20)
        return bind(wish)

    chat.bind = late  # type: ignore[method-assign]
    with Place(chat, clock) as place:
        receipt = place.rt.spawn("go", "main", input={"thread": True, "agent_id": "expert", "label": "late"})
        eventually(lambda: [row for row in place.rt.threads() if row["state"] == "binding"])
        clock.advance(BIND_WITHIN + 1)
        said = place.rt.result(receipt, timeout=20).text
        assert said is not None
        assert "did not bind a conversation in 60 s" in said
        go_on.set()  # too late: what it has bound by then is unbound again
        eventually(lambda: place.chat.threads() and place.chat.threads()[0].ended == "spawn-failed")
        assert place.sessions("expert") == []


def test_a_conversation_belongs_to_one_session() -> None:
    with Place(Conversations(placement="current")) as place:
        assert place.desk.ask("get me somebody").startswith("helper 1: ")
        assert place.desk.bound_to is not None
        key = place.desk.bound_to
        assert place.desk.ask("one") == "helper 2: one"
        said = place.spawn(thread=True, agent_id="expert")
        assert said == "error: thread: there is no conversation here that is free to be bound"
        place.desk.leave()
        eventually(lambda: place.desk.bound_to is None)
        assert place.desk.ask("hello") == "hello from agent:main:main"
        assert place.rt.session(key) is not None


def test_users_focus_a_child_that_is_there_and_unfocus_it() -> None:
    with Place() as place:
        place.desk.ask("get me somebody")
        thread = place.chat.thread("helper")
        key = thread.bound_to
        assert thread.reply() == "helper 1: be of help"
        with pytest.raises(SpawnError):
            place.desk.say("/focus nobody")
        assert "nobody" in place.desk.reply()
        assert place.desk.ask("/focus helper") == f"bound to {key}"
        assert place.desk.ask("one") == "helper 2: one"
        assert thread.ask("two") == "helper 3: two"  # it may have several
        assert place.desk.ask("/unfocus") == f"unbound from {key}"
        assert place.desk.ask("hello") == "hello from agent:main:main"
        assert thread.ask("three") == "helper 4: three"


# ---------------------------------------------------------------------- the ends of a binding


def test_users_leave_and_the_session_lives_on() -> None:
    with Place() as place:
        thread, key = place.helper()
        thread.leave()
        eventually(lambda: thread.ended == "unbound")
        assert place.rt.send(key, "still there?").reply == "helper 2: still there?"
        assert thread.ask("hello") == "hello from agent:main:main"
        assert [row for row in place.rt.threads() if row["mode"] == "session"] == []


def test_the_operator_drops_a_binding() -> None:
    with Place() as place:
        thread, key = place.helper()
        assert place.rt.unbind(key) == 1
        eventually(lambda: thread.ended == "unbound")
        assert place.rt.unbind(key) == 0


def test_a_binding_ends_after_idle_hours_of_silence() -> None:
    clock = FakeClock()
    with Place(clock=clock, session={"threadBindings": {"idleHours": 2}}) as place:
        thread, _ = place.helper()
        clock.advance(1.5 * HOUR)
        assert thread.ask("still here") == "helper 2: still here"
        clock.advance(1.5 * HOUR)
        assert thread.bound_to is not None
        clock.advance(0.6 * HOUR)
        eventually(lambda: thread.ended == "idle")


def test_a_binding_ends_at_its_age_however_busy_it_is() -> None:
    clock = FakeClock()
    settings = {"threadBindings": {"idleHours": 0, "maxAgeHours": 3}}
    with Place(clock=clock, channels={"memory": settings}) as place:
        thread, _ = place.helper()
        for number in range(2):
            clock.advance(1.4 * HOUR)
            assert thread.ask("go on") == f"helper {number + 2}: go on"
        clock.advance(0.3 * HOUR)
        eventually(lambda: thread.ended == "max-age")


def test_a_binding_without_hours_stays() -> None:
    clock = FakeClock()
    with Place(clock=clock, session={"threadBindings": {"idleHours": 0}}) as place:
        thread, _ = place.helper()
        clock.advance(20 * 24 * HOUR)
        assert thread.ask("still here") == "helper 2: still here"


def test_a_bound_session_is_not_archived_and_then_as_any_other() -> None:
    clock = FakeClock()
    with Place(clock=clock, session={"threadBindings": {"idleHours": 5}}) as place:
        thread, key = place.helper()
        eventually(lambda: (place.rt.session(key) or {}).get("status") == "ended")
        clock.advance(4 * HOUR)
        assert (place.rt.session(key) or {})["status"] == "ended"
        assert thread.ask("still here") == "helper 2: still here"
        eventually(lambda: (place.rt.session(key) or {}).get("status") == "ended")
        clock.advance(5.1 * HOUR)
        eventually(lambda: thread.ended == "idle")
        assert (place.rt.session(key) or {})["status"] == "ended"
        clock.advance(1.1 * HOUR)
        eventually(lambda: (place.rt.session(key) or {}).get("status") == "archived")


def test_a_deleted_session_leaves_its_conversation() -> None:
    with Place() as place:
        thread, key = place.helper()
        eventually(lambda: (place.rt.session(key) or {}).get("status") == "ended")
        place.rt.delete(key)
        eventually(lambda: thread.ended == "deleted")
        assert thread.ask("hello") == "hello from agent:main:main"


def test_a_reset_session_keeps_its_conversation() -> None:
    with Place() as place:
        thread, key = place.helper()
        eventually(lambda: (place.rt.session(key) or {}).get("status") == "ended")
        place.rt.reset(key)
        assert thread.ask("who?") == "helper 1: who?"


def test_a_stopped_session_can_be_spoken_to_again() -> None:
    with Place() as place:
        thread, key = place.helper()
        place.rt.stop(key)
        assert thread.ask("go on") == "helper 2: go on"


def test_a_full_inbox_is_told_to_the_user() -> None:
    hold = GATES["hold"] = threading.Event()

    @oc.agent(id="main")
    def busy(turn: oc.SyncTurn) -> str:
        from support.gates import GATES

        GATES["hold"].wait(20)
        return turn.text

    chat = Conversations()
    with LocalRuntime(agents=[busy], config={"ray": {"inbox": {"max": 1}}}, channel=chat) as rt:
        desk = chat.open_conversation("desk")
        desk.say("one")
        eventually(lambda: rt.runs(state="running", session="agent:main:main"))
        desk.say("two")
        with pytest.raises(InboxFull):
            desk.say("three")
        hold.set()
        assert (desk.reply(), desk.reply()) == ("one", "two")


def test_the_events_tell_of_bindings() -> None:
    with Place() as place:
        thread, key = place.helper()
        place.rt.unbind(key)
        eventually(lambda: thread.ended)
        events = [e for e in place.rt._events_after(0, 0.1) if e.kind == "thread"]
        assert [(e.session_key, e.state, e.reason, e.text) for e in events] == [
            (key, "bound", None, thread.id),
            (key, "unbound", "unbound", thread.id),
        ]


# ---------------------------------------------------------------------- one turn


def test_run_turn_binds_a_conversation_for_a_child_that_is_made_up() -> None:
    @oc.agent
    def lead(turn: oc.SyncTurn) -> str:
        return turn.spawn("be of help", agent_id="expert", label="helper", thread=True).status

    chat = Conversations()
    ran = run_turn(lead, "go", children={"expert": "at your service"}, channel=chat)
    assert ran.result.text == "accepted"
    assert chat.thread("helper").reply() == "at your service"
    assert ran.spawned[0].ask is not None
    assert (ran.spawned[0].ask.thread, ran.spawned[0].ask.mode) == (True, "session")
    assert "needs a channel" in str(run_turn(lead, "go", children={"expert": "x"}).result.error)
