"""Conversations over crashes of the registry: what is owed is in the journal (`core.protocol.threads`)."""

from __future__ import annotations

from typing import Any

import pytest

from openclaw_ray.core.clock import FakeClock
from openclaw_ray.core.lifecycle import RunState
from openclaw_ray.core.limits import AgentLimits, RuntimeLimits
from openclaw_ray.core.protocol.journal import JournalFault, MemoryJournal
from openclaw_ray.core.protocol.messages import (
    BINDING,
    Admit,
    Admitted,
    BindThread,
    Bye,
    ChannelUp,
    Got,
    Grow,
    Hello,
    Join,
    Outcome,
    Post,
    Posted,
    Settled,
    Start,
    Step,
    StopAsk,
    ThreadBound,
    ThreadOver,
    Unbind,
)
from openclaw_ray.core.protocol.registry import Registry
from openclaw_ray.core.protocol.state import AgentEntry
from openclaw_ray.core.results import Receipt
from openclaw_ray.core.session_facts import ChildAsk

ROOT = "agent:main:driver:one"
CHILD = "agent:main:subagent:c"
CHANNEL = ("memory", "")


class World:
    """A registry that may crash at any time, with one client that serves a channel."""

    def __init__(self) -> None:
        self.journal = MemoryJournal()
        self.clock = FakeClock()
        self.seqs: dict[str, int] = {}
        self.down: list[Any] = []
        self.effects: list[Any] = []
        self.crash()
        self.core.open_boot("boot")
        entry = AgentEntry("main", "b", "here", "h", True, False, False, AgentLimits("main", True))
        self.core.register([entry], "b", b"code")
        self.join("one")

    def join(self, client: str, root: str = ROOT) -> None:
        self.step(Join(client, root, "main", False), ChannelUp(client, *CHANNEL), client=client)

    def crash(self) -> None:
        """A new incarnation; what it says anew is in ``down``."""
        self.core = Registry(self.journal, RuntimeLimits(), self.clock, pool_max=16, cpus=2)
        for actor in list(self.core.s.actors):
            self.core.died(actor, "it went with the registry")
        self.down.clear()
        self.tick()

    def tick(self, seconds: float = 0.0) -> None:
        self.clock.advance(seconds)
        self.effects += self.core.tick()
        self.heard()

    def heard(self) -> None:
        batch = self.core.take_batch()
        if batch is not None:
            self.down += [m for numbered in batch.messages.values() for _, m in numbered]

    def step(self, *events: Any, admits: tuple[Admit, ...] = (), client: str = "one") -> Any:
        self.seqs[client] = self.seqs.get(client, 0) + 1
        answer, effects = self.core.step(Step(client, self.seqs[client], events, admits))
        assert answer.word == "ok"
        self.effects += effects
        self.down += [message for _, numbered in answer.down for _, message in numbered]
        self.heard()
        return answer

    def got(self, client: str = "one") -> None:
        """The client confirms all that it was told."""
        self.step(Got(client, self.core.s.incarnation, 1_000), client=client)

    def spawn(self, mode: str = "session") -> Receipt:
        ask = ChildAsk(thread=True, mode=mode)
        admit = Admit("run", CHILD, "sid", "spawn", ROOT, "task", label="l", ask=ask)
        receipt: Receipt = self.step(admits=(admit,)).receipts[0]
        return receipt

    def said(self, kind: type[Any]) -> list[Any]:
        """What has come of a kind since the last look."""
        found = [message for message in self.down if isinstance(message, kind)]
        self.down = [message for message in self.down if not isinstance(message, kind)]
        return found

    def bind(self, conversation: str = "c1", error: str = "") -> None:
        self.step(ThreadBound("run", *CHANNEL, conversation, error))

    def run(self, text: str = "done") -> None:
        """An actor comes and runs what waits."""
        grow = next(effect for effect in self.effects if isinstance(effect, Grow))
        actor = grow.actors[0]
        self.step(Hello(actor, "node", 1), client=actor)
        start = next(effect for effect in self.effects if isinstance(effect, Start))
        self.effects.clear()
        outcome = Outcome(RunState.SUCCEEDED, text)
        self.step(Settled(start.spec.run, start.spec.activation, outcome), client=actor)

    @property
    def active(self) -> int:
        return self.core.s.sessions[ROOT].active


def test_a_spawn_is_reserved_and_there_is_no_child_until_its_conversation_is_there() -> None:
    world = World()
    assert world.spawn().status == BINDING
    assert (world.active, CHILD in world.core.s.sessions, "run" in world.core.s.runs) == (1, False, False)
    [wish] = world.said(BindThread)
    assert (wish.session_key, wish.label, wish.task, wish.requester_key) == (CHILD, "l", "task", ROOT)
    world.bind()
    assert (world.active, CHILD in world.core.s.sessions, "run" in world.core.s.runs) == (1, True, True)
    [admitted] = world.said(Admitted)
    assert (admitted.run, admitted.receipt.status, admitted.receipt.session_key) == ("run", "accepted", CHILD)


def test_a_registry_that_crashes_while_a_child_is_bound_asks_again_and_keeps_the_reservation() -> None:
    world = World()
    world.spawn()
    world.said(BindThread)
    world.crash()
    assert len(world.said(BindThread)) == 1
    assert world.active == 1
    world.bind()
    assert world.active == 1
    assert len(world.said(Admitted)) == 1


def test_a_receipt_is_said_over_crashes_until_it_is_got() -> None:
    world = World()
    world.spawn()
    world.bind(error="no room")
    for _ in range(2):
        [admitted] = world.said(Admitted)
        assert (admitted.receipt.status, admitted.receipt.error) == ("error", "thread: no room")
        world.crash()
    world.got()
    world.crash()
    assert world.said(Admitted) == []
    assert (world.core.s.threads, world.active) == ({}, 0)


def test_the_same_answer_twice_changes_nothing() -> None:
    world = World()
    world.spawn()
    world.bind()
    world.bind()
    assert world.said(Unbind) == []
    assert len(world.said(Admitted)) == 1
    assert world.active == 1


def test_what_a_run_says_is_posted_until_the_channel_has_said_it() -> None:
    world = World()
    world.spawn()
    world.bind()
    world.run("hi there")
    for _ in range(2):
        [post] = world.said(Post)
        assert (post.conversation, post.text, post.run) == ("c1", "hi there", "run")
        world.crash()
    world.step(Posted("run", "run"))
    world.crash()
    assert world.said(Post) == []
    assert world.core.s.threads["run"].bound


def test_a_binding_that_ends_is_told_until_the_channel_has_done_it() -> None:
    world = World()
    world.spawn()
    world.bind()
    world.run()
    world.step(Posted("run", "run"))
    world.got()
    world.tick(25 * 3600.0)
    for _ in range(2):
        [over] = world.said(Unbind)
        assert (over.conversation, over.why) == ("c1", "idle")
        world.crash()
    world.step(ThreadOver(*CHANNEL, "c1", "run"))
    assert world.core.s.threads == {}
    world.crash()
    assert world.said(Unbind) == []


def test_a_user_is_heard_by_the_client_that_serves_the_channel_alone() -> None:
    world = World()
    world.spawn()
    world.bind()
    world.run()
    word = Admit("said", "", "s2", "say", ROOT, "and?", conversation="c1")
    assert world.step(admits=(word,)).receipts[0].session_key == CHILD
    other = "agent:main:driver:two"
    world.step(Join("two", other, "main", False), client="two")
    again = Admit("said2", "", "s3", "say", other, "and?", conversation="c1")
    assert world.step(admits=(again,), client="two").receipts[0].status == "error"
    stolen = Admit("said3", "", "s4", "say", ROOT, "and?", conversation="c1")
    assert world.step(admits=(stolen,), client="two").receipts[0].status == "forbidden"


def test_when_the_client_of_a_channel_leaves_bindings_wait_for_the_next_one() -> None:
    world = World()
    world.spawn()
    world.bind()
    world.run()
    world.step(Bye("one"))
    assert world.core.s.threads["run"].bound
    world.down.clear()
    world.join("two", "agent:main:driver:two")
    [post] = world.said(Post)
    assert post.conversation == "c1"
    word = Admit("said", "", "s2", "say", "agent:main:driver:two", "and?", conversation="c1")
    assert world.step(admits=(word,), client="two").receipts[0].session_key == CHILD


def test_what_is_being_bound_when_its_channel_goes_is_refused() -> None:
    world = World()
    two = "agent:main:driver:two"
    world.step(Join("two", two, "main", False), client="two")
    ask = ChildAsk(thread=True, mode="session")
    admit = Admit("run", CHILD, "sid", "spawn", two, "task", ask=ask)
    assert world.step(admits=(admit,), client="two").receipts[0].status == BINDING
    world.step(Bye("one"))
    [admitted] = world.said(Admitted)
    assert admitted.receipt.error == "thread: channel 'memory' is gone"
    assert world.core.s.sessions[two].active == 0


def test_what_breaks_a_rule_by_the_time_its_conversation_is_there_is_unbound() -> None:
    world = World()
    world.spawn()
    taken = Admit("other", "agent:main:subagent:o", "sid2", "spawn", ROOT, "task", label="l")
    assert world.step(admits=(taken,)).receipts[0].accepted
    world.bind()
    [admitted] = world.said(Admitted)
    assert admitted.receipt.status == "error"
    assert "label" in str(admitted.receipt.error)
    [over] = world.said(Unbind)
    assert (over.conversation, over.why) == ("c1", "spawn-failed")
    assert CHILD not in world.core.s.sessions
    assert world.active == 1, "the other one"
    world.step(ThreadOver(*CHANNEL, "c1", "run"))
    world.got()
    assert world.core.s.threads == {}


@pytest.mark.parametrize("stop", [{"key": ROOT}, {"key": "", "run": "run"}, {"key": CHILD}])
def test_a_stop_while_its_conversation_is_made_leaves_no_child(stop: dict[str, str]) -> None:
    world = World()
    world.spawn()
    world.step(StopAsk("stop", **stop))
    [admitted] = world.said(Admitted)
    assert admitted.receipt.error == "thread: it was stopped before a conversation was there"
    assert world.active == 0
    world.bind()
    [over] = world.said(Unbind)
    assert (over.conversation, over.why) == ("c1", "spawn-failed")
    assert (CHILD in world.core.s.sessions, "run" in world.core.s.runs) == (False, False)
    world.got()
    assert world.core.s.threads == {}


def test_a_commit_that_fails_leaves_neither_a_child_nor_a_word() -> None:
    world = World()
    world.spawn()
    world.said(BindThread)
    world.journal.fail_next = 1
    with pytest.raises(JournalFault):
        world.bind()
    world.crash()
    assert len(world.said(BindThread)) == 1
    assert CHILD not in world.core.s.sessions
