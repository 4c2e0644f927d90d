"""What a turn sees of its session, and what a program sees of the runtime (DESIGN.md 7; SCENARIOS.md M)."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest

import openclaw_ray as oc
from openclaw_ray.core.errors import AskTimeout, RunFailed, SpawnError
from openclaw_ray.testing.eventually import eventually

if TYPE_CHECKING:
    from support.runtimes import Gate

pytestmark = pytest.mark.ray


# ---------------------------------------------------------------------- a turn's own view


def test_the_fields_of_a_session(rt: oc.Runtime) -> None:
    receipt = rt.spawn("look", "look_around", label="  a title  ")
    seen = rt.result(receipt).raise_for_status().value
    assert seen["key"] == receipt.session_key
    assert seen["key"].startswith("agent:look_around:subagent:")
    assert seen["requester_key"] == rt.root_key
    assert (seen["agent_id"], seen["depth"], seen["role"], seen["label"]) == (
        "look_around",
        1,
        "orchestrator",
        "a title",
    )
    assert (seen["kind"], seen["run_id"], seen["index"], seen["events"]) == (
        "task",
        receipt.run_id,
        None,
        ["task"],
    )
    assert seen["cwd"].startswith("/")
    [row] = [row for row in rt.sessions(agent="look_around") if row["key"] == receipt.session_key]
    assert row["sessionId"] == seen["session_id"]


def test_a_main_session_is_at_depth_0_and_answers_messages(rt: oc.Runtime) -> None:
    seen = rt.ask("look_around", "hello").value
    assert (seen["key"], seen["depth"], seen["role"], seen["kind"]) == (
        "agent:look_around:main",
        0,
        "main",
        "message",
    )
    again = rt.ask("agent:look_around:main", "hello").value
    assert again["session_id"] == seen["session_id"]


def test_items_know_their_position(rt: oc.Runtime) -> None:
    assert [result.value["index"] for result in rt.map("look_around", ["a", "b"])] == [0, 1]


def test_state_stays_from_turn_to_turn(rt: oc.Runtime) -> None:
    first = rt.ask("remembering", "count").value
    assert rt.ask("remembering", "count").value == first + 1


@pytest.mark.parametrize(
    ("text", "error"),
    [("too much", "StateTooLarge"), ("no json", "TypeError"), ("fail", "ValueError")],
)
def test_the_state_of_a_turn_that_fails_is_not_kept(rt: oc.Runtime, text: str, error: str) -> None:
    before = rt.ask("remembering", "count").value
    with pytest.raises(RunFailed, match=error):
        rt.ask("remembering", text)
    assert rt.ask("remembering", "count").value == before + 1


def test_a_turn_reads_its_history_with_its_own_rows(rt: oc.Runtime) -> None:
    rt.ask("remembering", "count")
    rows = rt.ask("remembering", "history").value
    assert rows[-2:] == [["user", "history"], ["system", "a note of its own"]]
    assert ["user", "count"] in rows[:-2]
    assert rows[rows.index(["user", "count"]) + 1][0] == "assistant"


# ---------------------------------------------------------------------- transcripts


def test_the_first_row_of_a_spawned_session_is_its_task(rt: oc.Runtime) -> None:
    receipt = rt.spawn("count the words", "echo")
    rt.result(receipt)
    rows = eventually(lambda: len(rows := rt.history(receipt.session_key)) == 2 and rows)
    assert [row["role"] for row in rows] == ["user", "assistant"]
    context = f"[Subagent Context] You are a sub-agent at depth 1 of 5, spawned by {rt.root_key}.\n\n"
    assert f"{context}[Subagent Task]\ncount the words\n\n" in rows[0]["text"]
    assert rows[1]["text"] == "count the words"


def test_history_comes_in_pages_newest_last(rt: oc.Runtime) -> None:
    for number in range(3):
        rt.ask("echo", f"message {number}")
    key = "agent:echo:main"
    everything = [row["text"] for row in rt.history(key, limit=1_000)]
    assert everything[-2:] == ["message 2", "message 2"]
    assert [row["text"] for row in rt.history(key, limit=2, offset=2)] == everything[-4:-2]


def test_the_history_of_an_unknown_session_is_a_key_error(rt: oc.Runtime) -> None:
    with pytest.raises(KeyError, match="agent:echo:subagent:none"):
        rt.history("agent:echo:subagent:none")


# ---------------------------------------------------------------------- usage and progress


def test_usage_is_summed_per_subtree_and_what_nobody_reported_is_marked(rt: oc.Runtime) -> None:
    # seven sessions; one of them reports nothing
    tree = (1, [(2, [(4, []), (8, [])]), (16, [(32, []), (None, [])])])
    receipt = rt.spawn("go", "spender", input=tree)
    result = rt.result(receipt)
    assert result.usage.input_tokens == 1 + 2 + 4 + 8 + 16 + 32
    assert result.usage.output_tokens == 6
    assert result.usage.cost == pytest.approx(3.0)
    assert result.usage.partial
    assert result.text == "14,48"
    whole = rt.result(rt.spawn("go", "spender", input=(1, [(2, []), (4, [])])))
    assert (whole.usage.input_tokens, whole.usage.partial) == (7, False)


def test_usage_that_nobody_reported_is_unknown_and_not_zero(rt: oc.Runtime) -> None:
    usage = rt.map("echo", ["x"])[0].usage
    assert usage.unknown
    assert usage.input_tokens is None


def test_progress_is_an_event_and_a_column(rt: oc.Runtime, gate: Gate) -> None:
    events = rt.events()
    receipt = rt.spawn("go", "reporting", input=gate.place)
    heard = next(e for e in events if e.kind == "progress" and e.run_id == receipt.run_id and e.done == 3)
    assert (heard.text, heard.total, heard.session_key) == ("step 3", 9, receipt.session_key)
    [row] = rt.runs(session=receipt.session_key)
    assert row["progress"] == "step 3"
    rt.stop(receipt.session_key)


# ---------------------------------------------------------------------- lists


def test_a_run_is_listed_with_its_process_while_it_runs_and_with_its_end_after(rt: oc.Runtime, gate: Gate) -> None:
    receipt = rt.spawn("a task", "hold", input=gate.place, label="title")
    gate.wait_for(1)
    [row] = rt.runs(session=receipt.session_key)
    assert {name: row[name] for name in ("state", "agentId", "depth", "label", "task", "route", "requesterKey")} == {
        "state": "running",
        "agentId": "hold",
        "depth": 1,
        "label": "title",
        "task": "a task",
        "route": "spawn",
        "requesterKey": rt.root_key,
    }
    assert row["pid"] > 0
    assert row["actor"].startswith("session-")
    gate.open()
    rt.result(receipt)
    ended = eventually(lambda: (r := rt.runs(session=receipt.session_key)[0])["deliveryStatus"] == "delivered" and r)
    assert (ended["state"], ended["status"], ended["displayStatus"], ended["text"]) == (
        "succeeded",
        "ok",
        "done",
        "through",
    )
    assert ended["createdAt"] <= ended["startedAt"] <= ended["endedAt"]


def test_lists_are_filtered_and_paged(rt: oc.Runtime) -> None:
    rt.map("echo", [f"item {number}" for number in range(7)])
    newest = rt.runs(agent="echo", limit=3)
    assert [row["agentId"] for row in newest] == ["echo"] * 3
    assert rt.runs(agent="echo", limit=2, offset=1) == newest[1:]
    assert {row["state"] for row in rt.runs(agent="echo", state=["failed", "succeeded"])} == {"succeeded"}
    assert rt.sessions(agent="echo", limit=1)[0]["status"] == "ended"


def test_a_filter_that_there_is_not_is_refused_at_once(rt: oc.Runtime) -> None:
    with pytest.raises(ValueError, match=r"cannot be filtered by 'colour'.*state"):
        rt.runs(colour="red")


def test_no_run_is_listed_twice_or_not_at_all_in_a_long_list(rt: oc.Runtime) -> None:
    results = rt.map("echo", [str(number) for number in range(150)])
    listed = [row["runId"] for page in range(4) for row in rt.runs(agent="echo", limit=50, offset=50 * page)]
    assert len(set(listed)) == len(listed)
    assert {result.run_id for result in results} <= set(listed)


# ---------------------------------------------------------------------- events and figures


def test_events_begin_where_they_are_asked_for(rt: oc.Runtime) -> None:
    events = rt.events()
    receipt = rt.spawn("x", "echo")
    rt.result(receipt)
    states = []
    for event in events:
        if event.run_id == receipt.run_id and event.kind == "run":
            states.append(event.state)
            if event.state == "succeeded":
                break
    assert states == ["queued", "running", "succeeded"]


def test_events_are_numbered_rising_and_can_be_read_again(rt: oc.Runtime) -> None:
    events = rt.events()
    rt.map("echo", ["a", "b", "c"])
    first = next(events)
    some = [first, *(next(events) for _ in range(5))]
    assert [event.seq for event in some] == sorted({event.seq for event in some})
    again = rt.events(after=first.seq)
    assert [next(again) for _ in range(5)] == some[1:]


def test_a_run_that_waits_for_nothing_is_a_warm_activation(rt: oc.Runtime) -> None:
    rt.map("echo", ["x"])
    before = rt.stats()
    rt.map("echo", ["x"])
    after = rt.stats()
    assert after.sessions_started == before.sessions_started + 1
    assert after.warm_activations == before.warm_activations + 1
    assert (after.queued, after.slots, after.waiting) == (0, 0, {})
    assert after.memory_bytes > 0
    assert after.registry_incarnation == 1


def test_refused_spawns_are_counted(rt: oc.Runtime) -> None:
    before = rt.stats().spawns_refused
    with pytest.raises(Exception, match="nobody"):
        rt.spawn("x", "nobody")
    assert rt.stats().spawns_refused == before + 1


def test_what_has_ended_and_was_heard_leaves_the_registrys_memory(rt: oc.Runtime, gate: Gate) -> None:
    def held() -> dict[str, int]:
        counts = rt._query("info")["counts"]
        # each session process has a downlink of its own
        receivers = counts["receivers"] - sum(state != "growing" for state, _, _ in counts["crew"].values())
        return {"receivers": receivers, **{name: counts[name] for name in ("runs", "sessions", "marks")}}

    before = held()
    rt.map("echo", [str(number) for number in range(50)])
    rt.map("nested", [1])
    rt.map("failing_map", ["go"])
    stopped = rt.spawn("go", "crowd", input=(gate.place, 2))
    rt.stop(stopped.session_key)
    rt.result(stopped)
    gate.open()
    rt.result(rt.spawn("first", "joins", input=gate.place))
    rt.result(rt.spawn("go", "no_join", input=gate.place))
    rt.imap("echo", ["never asked for"])
    stream = rt.imap("echo", [str(number) for number in range(50)], width=2)
    next(stream)
    stream.close()
    eventually(lambda: held() == before, what=f"what is held is as before: {before}")


def test_lists_answer_while_a_session_sleeps_through_everything(rt: oc.Runtime, gate: Gate) -> None:
    receipt = rt.spawn("sleep", "deaf", input=gate.place)
    gate.wait_for(1)
    assert rt.runs(session=receipt.session_key)[0]["state"] == "running"
    assert rt.map("echo", ["meanwhile"])[0].text == "meanwhile"
    assert rt.stop(receipt.session_key).forced == 1


# ---------------------------------------------------------------------- ask


def test_a_busy_session_takes_a_message_after_the_turn_that_runs(rt: oc.Runtime, gate: Gate) -> None:
    answers: list[str | None] = []

    def ask() -> None:
        answers.append(rt.ask("asked_hold", str(gate.place)).text)

    threads = [threading.Thread(target=ask) for _ in range(3)]
    for thread in threads:
        thread.start()
    gate.wait_for(1)
    eventually(lambda: len(rt.runs(session="agent:asked_hold:main", state="queued")) == 2)
    assert len(gate.entered) == 1
    gate.open()
    for thread in threads:
        thread.join(30)
    assert answers == ["through"] * 3


def test_the_timeout_of_an_ask_ends_the_waiting_not_the_run(rt: oc.Runtime, gate: Gate) -> None:
    with pytest.raises(AskTimeout, match=r"agent:asked_hold:main has not answered within 0.3 s") as caught:
        rt.ask("asked_hold", str(gate.place), timeout=0.3)
    [row] = rt.runs(session="agent:asked_hold:main", state="running")
    assert row["runId"] == caught.value.run_id
    gate.open()
    assert rt.result(oc.Receipt("accepted", caught.value.run_id), timeout=30).text == "through"


@pytest.mark.parametrize("to", ["nobody", "agent:nobody:main"])
def test_asking_nobody_is_refused_with_those_there_are(rt: oc.Runtime, to: str) -> None:
    with pytest.raises(SpawnError, match=r"no agent or session .*agents: .*echo"):
        rt.ask(to, "hello?")


def test_a_sub_agent_takes_messages_after_its_task(rt: oc.Runtime) -> None:
    receipt = rt.spawn("the task", "echo")
    assert rt.result(receipt).text == "the task"
    sent = rt.send(receipt.session_key, "and more")
    assert (sent.status, sent.reply) == ("ok", "and more")


def test_an_ask_that_fails_raises_what_it_was(rt: oc.Runtime) -> None:
    with pytest.raises(RunFailed, match="ValueError: on purpose"):
        rt.ask("remembering", "fail")
