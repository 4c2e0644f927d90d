"""Messages between sessions, without Ray: replies, waits, ping-pong, circles, chains, news (SPEC.md B2)."""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import pytest

import openclaw_ray as oc
from openclaw_ray.testing import LocalRuntime, assert_at_rest, eventually

ALL: dict[str, Any] = {"tools": {"sessions": {"visibility": "all"}}}


def turns_of(most: int) -> dict[str, Any]:
    return {"tools": {"sessions": {"visibility": "all"}, "agentToAgent": {"maxPingPongTurns": most}}}


SAID: dict[str, list[tuple[str, int, str]]] = defaultdict(list)
NEWS: dict[str, list[Any]] = defaultdict(list)
GO = threading.Event()


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    SAID.clear()
    NEWS.clear()
    GO.clear()
    yield
    GO.set()


def heard(turn: Any) -> None:
    """Note what a turn was started with."""
    from test_local_sends import NEWS, SAID

    if turn.source is not None:
        SAID[turn.session.agent_id].append((turn.source.step, turn.source.turn, turn.text))
    NEWS[turn.session.agent_id] += [event.sent or event.text for event in turn.events if event is not turn.events[-1]]
    if turn.kind == "completion":
        NEWS[turn.session.agent_id].append(turn.events[-1].sent)


class Talker(oc.Agent):
    """Answers each message with its own name, the turn's number and, if told to, a token at one turn."""

    name = ""

    async def on_turn(self, turn: oc.Turn) -> str | None:
        heard(turn)
        if turn.source is None and turn.kind == "message":
            word, _, rest = turn.text.partition(" ")
            sent = await turn.send(rest or "bob", word, timeout_seconds=10)
            return f"{sent.status}|{sent.reply}|{sent.ended}"
        if turn.source is None:
            return None
        if turn.source.step == "announce":
            return "ANNOUNCE_SKIP" if "quiet" in SAID_FIRST(turn) else "made known"
        word = SAID_FIRST(turn)
        if word.startswith("skip") and turn.source.turn == int(word[4:]):
            return "**reply_skip**"
        if word.startswith("empty") and turn.source.turn == int(word[5:]):
            return "  "
        if word.startswith("fail") and turn.source.turn == int(word[4:]):
            raise ValueError("no more")
        return f"{self.name}{turn.source.turn}"


def SAID_FIRST(turn: oc.Turn) -> str:
    """The first message of the exchange that a turn belongs to."""
    assert turn.source is not None
    from test_local_sends import FIRST

    return FIRST.setdefault(turn.source.exchange, turn.text)


FIRST: dict[str, str] = {}


class Alice(Talker):
    name = "a"


class Bob(Talker):
    name = "b"


def over(rt: LocalRuntime, count: int = 1) -> list[Any]:
    """The exchanges that have ended, as events."""
    found: list[Any] = []

    def ended() -> None:
        found[:] = [event for event in rt._local.events_after(0, 0.0) if event.kind == "exchange"]
        assert len(found) >= count

    eventually(ended, 10)
    return found


@pytest.mark.parametrize("most", [0, 1, 5])
@pytest.mark.parametrize(("one", "other"), [("alice", "bob"), ("bob", "alice")])
def test_the_ping_pong_has_exactly_as_many_turns_as_are_set_from_either_side(most: int, one: str, other: str) -> None:
    with LocalRuntime([Alice, Bob], turns_of(most)) as rt:
        first = f"{other[0]}0"
        ended = "limit reached" if most == 0 else "None"
        assert rt.ask(one, f"hi {other}", timeout=10).text == f"ok|{first}|{ended}"
        [event] = over(rt)
        assert (event.reason, event.done, event.total) == ("limit reached", most, most)
        eventually(lambda: assert_at_rest(rt), 10)
        odd = [turn for step, turn, _ in SAID[one] if step == "reply"]
        even = [turn for step, turn, _ in SAID[other] if step == "reply"]
        assert (odd, even) == ([n for n in range(1, most + 1) if n % 2], [n for n in range(1, most + 1) if not n % 2])
        assert [step for step, _, _ in SAID[other]].count("announce") == (most > 0)
        assert [step for step, _, _ in SAID[one]].count("announce") == 0
        if most:
            [news] = NEWS[one]
            assert (news.turns, news.ended, news.announce, news.pending) == (most, "limit reached", "made known", False)
        else:
            assert NEWS[one] == []


@pytest.mark.parametrize("turn", [0, 1, 2, 3, 4, 5])
def test_a_skip_at_any_turn_ends_it_there(turn: int) -> None:
    with LocalRuntime([Alice, Bob], turns_of(5)) as rt:
        text = rt.ask("alice", f"skip{turn} bob", timeout=10).text
        assert text == ("no_reply|None|reply_skip" if turn == 0 else "ok|b0|None")
        [event] = over(rt)
        assert (event.reason, event.done) == ("reply_skip", turn)
        eventually(lambda: assert_at_rest(rt), 10)
        assert max((n for who in SAID.values() for step, n, _ in who if step == "reply"), default=0) == turn


@pytest.mark.parametrize(("word", "reason"), [("empty2", "empty"), ("fail2", "failed")])
def test_an_empty_reply_and_a_failure_end_it_by_name(word: str, reason: str) -> None:
    with LocalRuntime([Alice, Bob], turns_of(5)) as rt:
        rt.ask("alice", f"{word} bob", timeout=10)
        [event] = over(rt)
        assert (event.reason, event.done) == (reason, 2)
        eventually(lambda: NEWS["alice"], 10)
        [news] = NEWS["alice"]
        assert news.ended == reason
        assert (news.error is None) == (reason == "empty")
        if reason == "failed":
            assert "agent:bob:main" in news.error
            assert "no more" in news.error


def test_the_operator_hears_all_of_it_in_one_answer_if_it_sends_for_a_session() -> None:
    with LocalRuntime([Alice, Bob], turns_of(3)) as rt:
        sent = rt.send("bob", "hi", 10, requester="alice")
        assert (sent.status, sent.reply, sent.turns, sent.ended) == ("ok", "b0", 3, "limit reached")
        assert (sent.latest, sent.announce) == ("a3", "made known")
        json = sent.to_json()
        assert (json["turns"], json["ended"]) == (3, "limit reached")
        assert json["delivery"] == {"status": "skipped", "mode": "announce"}
        eventually(lambda: assert_at_rest(rt), 10)
        eventually(lambda: not rt._local.core.s.exchanges, 10)


def test_a_row_of_the_transcript_says_that_the_message_is_no_users() -> None:
    with LocalRuntime([Alice, Bob], turns_of(1)) as rt:
        rt.send("bob", "hi", 10, requester="alice")
        rows = rt.history("agent:bob:main")
        assert next(row["text"] for row in rows if row["role"] == "user") == "hi"
        assert rows[0]["provenance"] == {
            "kind": "inter_session",
            "sourceSessionKey": "agent:alice:main",
            "sourceTool": "sessions_send",
        }
        texts = [row["text"] for row in rt.history("agent:alice:main") if row.get("provenance")]
        assert texts == ["b0"], "each message once"


# --------------------------------------------------------------------------- circles


@oc.agent(id="loner", spawns=False)
def loner(turn: oc.SyncTurn) -> Any:
    began = time.monotonic()
    waits = turn.call("sessions_send", sessionKey="current", message="me", timeoutSeconds=20)
    return {**waits.to_json(), "took": time.monotonic() - began}


@oc.agent(id="ring", spawns=False)
def ring(turn: oc.SyncTurn) -> Any:
    """``a b c``: waits for the first, which waits for the next, …; the last waits for the one that began."""
    names = turn.text.split()
    began = time.monotonic()
    got = turn.call("sessions_send", sessionKey=f"agent:{names[0]}:main", message=" ".join(names[1:] + names[:1]))
    return {**got.to_json(), "took": time.monotonic() - began}


@oc.agent(id="ring2", spawns=False)
def ring2(turn: oc.SyncTurn) -> Any:
    names = turn.text.split()
    got = turn.call("sessions_send", sessionKey=f"agent:{names[0]}:main", message=" ".join(names[1:] + names[:1]))
    return str(got.to_json())


@oc.agent(id="ring3", spawns=False)
def ring3(turn: oc.SyncTurn) -> Any:
    names = turn.text.split()
    got = turn.call("sessions_send", sessionKey=f"agent:{names[0]}:main", message=" ".join(names[1:] + names[:1]))
    return str(got.to_json())


@pytest.mark.parametrize(
    ("names", "circle"),
    [
        (("ring2", "ring"), "agent:ring2:main waits for agent:ring:main waits for agent:ring2:main"),
        (
            ("ring2", "ring3", "ring"),
            "agent:ring3:main waits for agent:ring:main waits for agent:ring2:main waits for agent:ring3:main",
        ),
    ],
)
def test_a_wait_that_would_close_a_circle_is_refused_at_once_and_named(names: tuple[str, ...], circle: str) -> None:
    with LocalRuntime([ring, ring2, ring3], turns_of(0)) as rt:
        answer = rt.ask("ring", " ".join(names), timeout=10).value
        assert answer["took"] < 1
        assert circle in answer["reply"]


def test_a_session_that_would_wait_for_itself_is_refused_at_once() -> None:
    with LocalRuntime([loner], ALL) as rt:
        answer = rt.ask("loner", "go", timeout=10).value
        assert answer["status"] == "error"
        assert answer["took"] < 1
        assert "agent:loner:main waits for agent:loner:main" in answer["error"]


@oc.agent(id="parent")
def parent(turn: oc.SyncTurn) -> Any:
    turn.spawn("ask up", agent_id="upward", input=turn.session.key)
    [done] = turn.join()
    return done.result.value


@oc.agent(id="upward", spawns=False)
def upward(turn: oc.SyncTurn) -> Any:
    try:
        turn.send(turn.input, "?")
    except oc.SpawnError as error:
        return {"status": error.receipt.status, "error": error.receipt.error}
    return {"status": "sent", "error": ""}


def test_a_child_does_not_wait_for_the_parent_that_waits_for_it() -> None:
    config = {**ALL, "agents": {"defaults": {"subagents": {"allowAgents": ["*"]}}}}
    with LocalRuntime([parent, upward], config) as rt:
        answer = rt.ask("parent", "go", timeout=10).value
        assert answer["status"] == "error"
        assert "agent:parent:main waits for agent:upward:subagent:" in answer["error"]


# --------------------------------------------------------------------------- chains


class Passer(oc.Agent):
    """Always sends on, and always answers."""

    to = ""

    async def on_turn(self, turn: oc.Turn) -> str:
        heard(turn)
        got = await turn.call("sessions_send", agentId=self.to, message="on and on", timeoutSeconds=0)
        if got.status == "forbidden":
            assert "chain bound" in (got.error or "")
        return "always"


class One(Passer):
    to = "two"


class Two(Passer):
    to = "three"


class Three(Passer):
    to = "one"


@pytest.mark.parametrize("most", [0, 5])
def test_a_ring_of_three_that_always_answer_and_send_on_ends_at_the_bound_of_the_chain(most: int) -> None:
    with LocalRuntime([One, Two, Three], turns_of(most)) as rt:
        rt.ask("one", "go", timeout=20)
        eventually(lambda: assert_at_rest(rt), 30)
        runs = len(rt.runs(limit=1_000))
        assert 6 <= runs < 300
        last = rt._local.core.s.seq
        time.sleep(0.2)  # nothing moves any more
        assert rt._local.core.s.seq == last


# --------------------------------------------------------------------------- waits, order, news


@oc.agent(id="slow", spawns=False)
def slow(turn: oc.SyncTurn) -> str:
    from test_local_sends import GO, SAID

    while not GO.is_set():
        turn.check()
        time.sleep(0.002)
    SAID["slow"].append(("", 0, turn.text))
    return f"did {turn.text}"


class Hasty(oc.Agent):
    """Waits for a moment only."""

    async def on_turn(self, turn: oc.Turn) -> str | None:
        heard(turn)
        if turn.source is None and turn.kind == "message" and turn.text.startswith("go"):
            sent = await turn.send("slow", turn.text, timeout_seconds=0.05)
            return f"{sent.status} {sent.to_json()['delivery']['status']} {sent.to_json()['targetDisposition']}"
        return "REPLY_SKIP"


class HastyAgent(Hasty):
    id = "hasty"


def test_a_wait_that_runs_out_is_accepted_and_the_reply_is_told_later_once() -> None:
    with LocalRuntime([slow, HastyAgent], turns_of(0)) as rt:
        assert rt.ask("hasty", "go", timeout=10).text == "accepted pending queued"
        assert NEWS["hasty"] == []
        GO.set()
        eventually(lambda: NEWS["hasty"], 10)
        rt.ask("hasty", "again", timeout=10)
        [news] = NEWS["hasty"]
        assert (news.status, news.reply, news.session_key) == ("ok", "did go", "agent:slow:main")
        rows = [row for row in rt.history("agent:hasty:main") if row.get("sent")]
        assert [row["text"] for row in rows] == ["did go"]
        assert SAID["slow"] == [("", 0, "go")], "no second delivery"


def test_several_that_come_late_are_told_together() -> None:
    with LocalRuntime([slow, HastyAgent], turns_of(0)) as rt:
        for number in range(3):
            rt.ask("hasty", f"go{number}", timeout=10)
        GO.set()
        eventually(lambda: len(NEWS["hasty"]) == 3, 10)
        rt.ask("hasty", "again", timeout=10)
        assert sorted(news.reply for news in NEWS["hasty"]) == ["did go0", "did go1", "did go2"]


@oc.agent(id="sender", spawns=False)
def sender(turn: oc.SyncTurn) -> int:
    for number in range(5):
        sent = turn.send("busy", f"{turn.text}.{number}", timeout_seconds=0)
        assert sent.status == "accepted"
    return 5


@oc.agent(id="busy", spawns=False)
def busy(turn: oc.SyncTurn) -> str:
    from test_local_sends import GO, SAID

    while turn.text == "first" and not GO.is_set():
        turn.check()
        time.sleep(0.002)
    SAID["busy"].append(("in", 0, turn.text))
    SAID["busy"].append(("out", 0, turn.text))
    return "done"


def test_fifty_sends_of_ten_senders_to_a_busy_session_are_handled_once_each_in_order_one_at_a_time() -> None:
    with LocalRuntime([sender, busy], turns_of(0)) as rt:
        rt.send("busy", "first", 0)
        for n in range(10):
            rt.spawn(str(n), "sender")
        eventually(lambda: len(rt._local.core.s.sessions["agent:busy:main"].waiting) == 50, 20)
        GO.set()
        eventually(lambda: len(SAID["busy"]) == 102, 20)
        words = [text for step, _, text in SAID["busy"] if step == "in"]
        assert SAID["busy"] == [(step, 0, word) for word in words for step in ("in", "out")], "one turn at a time"
        assert len(words) == len(set(words)) == 51
        for n in range(10):
            assert [word for word in words if word.startswith(f"{n}.")] == [f"{n}.{m}" for m in range(5)]
        eventually(lambda: assert_at_rest(rt), 10)


# --------------------------------------------------------------------------- children, labels, modes, rules


@oc.agent(id="worker", spawns=False)
def worker(turn: oc.SyncTurn) -> str:
    turn.state["seen"] = [*turn.state.get("seen", []), turn.text]
    return f"{turn.kind}:{','.join(turn.state['seen'])}:{len(turn.history())}"


@oc.agent(id="master")
def master(turn: oc.SyncTurn) -> Any:
    """Master and workers: ended children by their labels, context kept between sends (SPEC.md K)."""
    for label in ("w1", "w2"):
        turn.spawn("begin", agent_id="worker", label=label)
    turn.join()
    said = [turn.send(None, word, label="w1").reply for word in ("x", "y")]
    said.append(turn.call("sessions_send", label="w2", agentId="worker", message="z")["reply"])
    missing = turn.call("sessions_send", label="w3", message="z")
    return [*said, missing.status, missing.error]


def test_ended_children_are_sent_to_by_label_and_remember() -> None:
    config = {"agents": {"defaults": {"subagents": {"allowAgents": ["*"]}}}}
    with LocalRuntime([master, worker], config) as rt:
        x, y, z, status, error = rt.ask("master", "go", timeout=20).value
        assert (x, y, z) == ("message:begin,x:3", "message:begin,x,y:5", "message:begin,z:3")
        assert (status, "w3" in error) == ("error", True)
        eventually(lambda: assert_at_rest(rt), 10)
        # a plain function that has spawned is not called again
        assert [e.reason for e in over(rt, 3)] == ["one way"] * 3
        assert len([r for r in rt.runs(limit=100) if r["agentId"] == "master"]) == 1


def test_the_operator_reaches_an_ended_child_by_key_session_id_and_label() -> None:
    with LocalRuntime([worker], {}) as rt:
        receipt = rt.spawn("begin", "worker", label="here")
        rt.result(receipt, timeout=10)
        session_id = rt.session(receipt.session_key)["sessionId"]
        replies = [
            rt.send(receipt.session_key, "k").reply,
            rt.send(session_id, "i").reply,
            rt.send(None, "l", label="here", agent_id="worker").reply,
        ]
        assert [reply.split(":")[1] for reply in replies if reply] == ["begin,k", "begin,k,i", "begin,k,i,l"]
        assert rt.session(receipt.session_key)["status"] == "ended"


def test_a_notice_starts_no_turn_and_is_told_with_the_next_one() -> None:
    with LocalRuntime([Alice, Bob], turns_of(0)) as rt:
        rt.ask("bob", "skip0 alice", timeout=10)
        sent = rt.send("bob", "take note", mode="notify", requester="alice")
        assert sent.to_json() == {
            "status": "queued",
            "sessionKey": "agent:bob:main",
            "notificationId": sent.run_id,
            "durability": "process",
            "runStarted": False,
        }
        assert NEWS["bob"] == []
        rt.send("bob", "now", 10)
        assert NEWS["bob"] == ["take note"]
        rt.send("bob", "then", 10)
        assert NEWS["bob"] == ["take note"]


def test_a_forbidden_pair_is_refused_by_tool_program_runtime_and_call_alike() -> None:
    @oc.agent(id="prober", spawns=False)
    def prober(turn: oc.SyncTurn) -> Any:
        tool = turn.call("sessions_send", sessionKey="agent:bob:main", message="x").to_json()
        try:
            turn.send("agent:bob:main", "x")
        except oc.SpawnForbidden as error:
            return tool, error.receipt.error, error.receipt.path
        return tool, None, None

    with LocalRuntime([prober, Alice, Bob], {}) as rt:
        tool, error, path = rt.ask("prober", "go", timeout=10).value
        assert tool == {"status": "forbidden", "error": error}
        assert path == "tools.sessions.visibility"
        with pytest.raises(oc.SpawnForbidden, match="visibility"):
            rt.send("bob", "x", requester="prober")
        called = rt.call("sessions.send", {"key": "bob", "message": "x", "requesterSessionKey": "agent:prober:main"})
        assert called == {"status": "forbidden", "error": error}
        assert rt._local.core.s.exchanges == {}
        assert all(run["agentId"] == "prober" for run in rt.runs())


def test_a_stop_of_the_side_that_has_no_turn_ends_the_exchange_too() -> None:
    with LocalRuntime([slow, HastyAgent], turns_of(5)) as rt:
        rt.ask("hasty", "go", timeout=10)
        rt.stop("agent:hasty:main", timeout=10)
        [event] = over(rt)
        assert event.reason == "stopped"
        GO.set()
        eventually(lambda: SAID["slow"], 10)
        eventually(lambda: assert_at_rest(rt), 10)
        assert NEWS["hasty"] == [], "a stop does not wake it"
        rt.ask("hasty", "again", timeout=10)
        [news] = NEWS["hasty"]
        assert (news.status, news.ended) == ("error", "stopped")


def test_a_call_by_the_gateways_name_has_the_tools_words() -> None:
    with LocalRuntime([worker], {}) as rt:
        answer = rt.call("sessions.send", {"agentId": "worker", "message": "x", "timeoutSeconds": 5})
        assert (answer["status"], answer["reply"], answer["sessionKey"]) == ("ok", "message:x:1", "agent:worker:main")
        with pytest.raises(oc.ToolInputError, match="timeoutSeconds"):
            rt.call("sessions.send", {"agentId": "worker", "message": "x", "timeoutSeconds": -1})
        assert rt.call("sessions.send", {"key": "agent::x", "message": "x"})["status"] == "error"


def test_the_operator_sends_for_a_session_that_has_ended_and_its_rules_hold() -> None:
    with LocalRuntime([worker, Bob], {}) as rt:
        receipt = rt.spawn("begin", "worker")
        rt.result(receipt, timeout=10)
        with pytest.raises(oc.SpawnForbidden, match="visibility"):
            rt.send("bob", "x", requester=receipt.session_key)
    with LocalRuntime([worker, Bob], turns_of(2)) as rt:
        receipt = rt.spawn("begin", "worker")
        rt.result(receipt, timeout=10)
        sent = rt.send("bob", "x", 10, requester=receipt.session_key)
        assert (sent.status, sent.reply, sent.ended) == ("ok", "b0", "one way")


def test_an_ended_child_can_be_asked_and_awaited_too() -> None:
    with LocalRuntime([worker], {}) as rt:
        receipt = rt.spawn("begin", "worker")
        rt.result(receipt, timeout=10)
        assert rt.ask(receipt.session_key, "more", timeout=10).text == "message:begin,more:3"
        eventually(lambda: assert_at_rest(rt), 10)


def test_a_stop_of_the_sender_while_it_waits_ends_its_turn_and_the_exchange() -> None:
    @oc.agent(id="patient", spawns=False)
    def patient(turn: oc.SyncTurn) -> str:
        return str(turn.send("slow", "x", timeout_seconds=60))

    with LocalRuntime([slow, patient], turns_of(5)) as rt:
        rt.send("patient", "go", 0)
        eventually(lambda: any(x.waiter for x in rt._local.core.s.exchanges.values()), 10)
        began = time.monotonic()
        report = rt.stop("agent:patient:main", timeout=10)
        assert (report.stopped, report.failed) == (1, 0)
        assert time.monotonic() - began < 2
        # the operator's message to it, and its own
        assert [event.reason for event in over(rt, 2)] == ["stopped"] * 2
        GO.set()
        eventually(lambda: SAID["slow"], 10)
        eventually(lambda: assert_at_rest(rt), 10)
