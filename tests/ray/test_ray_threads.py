"""A user talks with a session on a process of its own, by a client of the runtime that serves a channel."""

from __future__ import annotations

import os
import signal

import pytest

import openclaw_ray as oc
from openclaw_ray.testing import Conversations
from openclaw_ray.testing.eventually import eventually

pytestmark = [pytest.mark.ray, pytest.mark.timeout(120)]


def test_a_user_talks_with_a_child_that_a_session_has_spawned(rt: oc.Runtime) -> None:
    chat = Conversations()
    with oc.Runtime.connect(rt.name) as client:
        client.serve(chat)
        client.ask("echo", "a word that comes after the channel's", timeout=60)
        key = rt.ask("counts", "call expert", timeout=60).text
        thread = chat.thread("expert")
        assert thread.reply() == "1: begin"
        assert thread.bound_to == key
        assert [thread.ask("one"), thread.ask("two")] == ["2: one", "3: two"]
        [row] = [row for row in rt.threads() if row["mode"] != "home"]
        assert (row["sessionKey"], row["conversation"], row["mode"]) == (key, thread.id, "session")
        assert {run["deliveryStatus"] for run in rt.runs(session=key, limit=5)} == {"not_required"}
        desk = chat.open_conversation("desk")
        assert desk.ask("hello", sender={"id": "7"}) == "main: hello"
        assert desk.ask("/agents") == "agents:\n(none)", "the child is another session's"
        assert thread.ask("/session idle 2h", sender={"id": "7"}).startswith("idle is now 2h")
        thread.leave()
        eventually(lambda: thread.ended == "unbound")
        assert [row for row in rt.threads() if row["mode"] != "home"] == []
        assert rt.send(str(key), "still there?").reply == "4: still there?"
        rt.delete(str(key))

        chat.refuses = "the room is full"
        assert rt.ask("counts", "call expert", timeout=60).text == "thread: the room is full"
    # its client has left: nobody can bind any more
    said = rt.ask("counts", "call expert", timeout=60).text
    assert said is not None
    assert "needs a channel that can bind a conversation" in said
    assert [row for row in rt.sessions(limit=200) if row.get("label") == "expert" and row["status"] != "archived"] == []


def test_each_user_has_a_session_which_the_first_message_opens(rt: oc.Runtime) -> None:
    assert [rt.ask(f"agent:counts:{user}", "hello", timeout=60).text for user in ("ada", "bob", "ada")] == [
        "1: hello",
        "1: hello",
        "2: hello",
    ]
    with pytest.raises(oc.SpawnError, match="is a child's, which is spawned"):
        rt.ask("agent:counts:subagent:ada", "hello")
    rt.delete("agent:counts:ada")
    assert rt.ask("agent:counts:ada", "hello", timeout=60).text == "1: hello"


@pytest.mark.long
def test_a_conversation_outlives_the_registry(shared: oc.Runtime) -> None:
    from agents import Counts

    chat = Conversations()
    with oc.Runtime.start(agents=[Counts], channel=chat, config={"ray": {"pool": {"prewarm": 1, "max": 6}}}) as rt:
        receipt = rt.spawn("begin", label="expert", thread=True)
        thread = chat.thread("expert")
        assert thread.reply() == "1: begin"
        os.kill(rt._query("info")["pid"], signal.SIGKILL)
        assert thread.ask("one", timeout=60) == "2: one"
        assert rt.unbind(receipt.session_key) == 1
        eventually(lambda: thread.ended == "unbound")
