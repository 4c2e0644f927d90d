"""A start that recovers: what may go on does, what was at work is told of, and nothing begins twice."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from openclaw_ray.core.limits import Recovery
from openclaw_ray.core.protocol.messages import Admit, Join, Start
from openclaw_ray.core.protocol.parts import Payload
from openclaw_ray.core.protocol.resuming import Held, Resuming
from openclaw_ray.core.protocol.state import State
from rules.asking import admit, agent, key_of, root_of
from rules.hand import Hand, without

MAIN = "agent:w:main"
RESUMABLE = replace(agent("r", allow_agents=("*",)), resumable=True)
AGENTS = (agent("w", allow_agents=("*",)), RESUMABLE)


def fresh(actors: int = 3, **limits: Any) -> Hand:
    hand = Hand(drivers=(), **limits)
    hand.do(hand.registry.open_boot("first"))
    hand.do(hand.registry.register(AGENTS, "b1", b"code"))
    hand.do(hand.registry.prewarm(actors))
    hand.grow()
    hand.say("driver", Join("driver", root_of("driver"), "w", leased=False))
    return hand


@pytest.fixture
def hand() -> Hand:
    return fresh()


def boots(hand: Hand) -> int:
    return int(hand.journal.get("meta", "incarnation") or b"0")


def down(hand: Hand, *, recover: bool = True, agents: tuple[Any, ...] = AGENTS, decide: bool = True) -> dict[str, int]:
    """The machine goes down with every process; the runtime is started again."""
    hand.crash_registry()
    for here in (hand.actors, hand.couriers, hand.turns, hand.effects, hand.heard):
        here.clear()
    hand.do(hand.registry.open_boot(f"boot {boots(hand)}", recover))
    hand.do(hand.registry.register([replace(a, bundle="b2") for a in agents], "b2", b"code"))
    return decided(hand) if recover and decide else {}


def decided(hand: Hand) -> dict[str, int]:
    words, effects = hand.registry.recover()
    hand.do(effects)
    return words


def up(hand: Hand, actors: int = 2) -> None:
    """Processes for the new start."""
    hand.do(hand.registry.prewarm(actors))
    hand.grow()
    hand.tick()


def error(hand: Hand, run: str) -> str:
    outcome = hand.run(run).outcome
    assert outcome is not None
    assert outcome.error is not None
    assert outcome.error.cause == "interrupted"
    return outcome.error.message


# ---------------------------------------------------------------------- each place that a run can be in


def test_one_that_had_not_begun_begins_once_with_the_new_code(hand: Hand) -> None:
    hand.ask("a")
    hand.ask("b")
    hand.begin("a").started()
    assert down(hand) == {"interrupted": 1, "requeued": 1}
    assert not hand.sent(Start)
    up(hand)
    turn = hand.begin("b")
    assert (turn.spec.bundle, turn.spec.kind, turn.spec.text) == ("b2", "message", "b")
    turn.settle("done")
    assert hand.state("b") == "succeeded"


def test_one_in_the_middle_of_a_turn_never_begins_again(hand: Hand) -> None:
    hand.ask("a")
    hand.begin("a").started()
    assert down(hand) == {"interrupted": 1}
    up(hand)
    assert not hand.sent(Start)
    assert hand.state("a") == "failed"
    assert "not resumable" in error(hand, "a")
    assert "check it" in error(hand, "a")


def test_a_start_that_was_never_confirmed_may_have_run(hand: Hand) -> None:
    hand.ask("a")
    assert len(hand.take(Start, "a")) == 1
    assert down(hand) == {"interrupted": 1}
    up(hand)
    assert not hand.sent(Start)


def test_a_resumable_one_gets_one_message_in_the_same_run(hand: Hand) -> None:
    hand.ask("a", agent_id="r")
    hand.begin("a").started()
    assert down(hand) == {"resumed": 1}
    up(hand)
    turn = hand.begin("a")
    assert turn.spec.kind == "resume"
    assert turn.spec.text.startswith("[Resumed]")
    assert turn.spec.text.endswith("[Task]\na")
    turn.settle("went on")
    assert hand.state("a") == "succeeded"


def test_policy_finalize_resumes_nothing() -> None:
    hand = fresh(recovery=Recovery.FINALIZE)
    hand.ask("a", agent_id="r")
    hand.begin("a").started()
    assert down(hand) == {"interrupted": 1}
    assert "ray.recovery is finalize" in error(hand, "a")


def test_what_hangs_under_a_client_is_cancelled_with_it(hand: Hand) -> None:
    turn = hand.start("a", agent_id="r")
    turn.started()
    turn.child("b", agent_id="r").started()
    assert down(hand) == {}
    assert (hand.state("a"), hand.state("b")) == ("cancelled", "cancelled")
    assert "client is gone" in (hand.run("b").outcome or Any).error.message  # type: ignore[union-attr]


def test_without_recovery_nothing_goes_on(hand: Hand) -> None:
    hand.ask("a", agent_id="r")
    hand.ask("b", agent_id="r")
    hand.begin("a").started()
    down(hand, recover=False)
    up(hand)
    assert not hand.sent(Start)
    assert {hand.state("a"), hand.state("b")} == {"cancelled"}


def test_what_was_held_and_is_not_recovered_by_the_next_start_is_lost(hand: Hand) -> None:
    hand.ask("a", agent_id="r")
    hand.begin("a").started()
    down(hand, decide=False)
    down(hand, recover=False)
    assert hand.state("a") == "lost"
    assert not hand.registry.s.sessions["agent:r:main"].run


# ---------------------------------------------------------------------- parents and children


def yielded(hand: Hand, *children: str) -> None:
    hand.ask("a")
    turn = hand.begin("a")
    turn.started()
    turn.spawn_all(list(children))
    turn.settle("", yielded=True)
    assert hand.run("a").pause == "yielded"


def test_a_parent_that_had_yielded_wakes_once_with_every_end(hand: Hand) -> None:
    yielded(hand, "b", "c")
    hand.begin("b").settle("b is done")
    hand.begin("c").started()
    assert down(hand) == {"waiting": 1, "interrupted": 1}
    up(hand)
    turn = hand.begin("a")
    assert turn.spec.kind == "wake"
    assert [(c.run, c.completion.result.status) for c in turn.spec.completions] == [("b", "ok"), ("c", "error")]
    turn.settle("both heard")
    assert hand.state("a") == "succeeded"
    assert {hand.run(run).delivery.value for run in "bc"} == {"delivered"}


def test_a_wake_that_was_due_comes_after_the_restart() -> None:
    hand = fresh(actors=1)
    yielded(hand, "b")
    turn = hand.begin("b")
    turn.settle("b is done", unclean=("a thread",))  # the only process is not used again
    assert hand.state("a") == "queued"
    assert down(hand) == {"waiting": 1}
    up(hand)
    assert [c.run for c in hand.begin("a").spec.completions] == ["b"]


def test_a_resumed_parent_is_given_what_its_children_came_to(hand: Hand) -> None:
    hand.ask("a", agent_id="r")
    turn = hand.begin("a")
    turn.started()
    turn.child("b", agent_id="w").started()
    turn.child("c", agent_id="w").settle("c is done")
    assert down(hand) == {"resumed": 1, "interrupted": 1}
    up(hand)
    again = hand.begin("a")
    assert [(c.run, c.completion.result.status) for c in again.spec.completions] == [("b", "error"), ("c", "ok")]


def test_a_queued_child_of_an_interrupted_parent_still_runs() -> None:
    hand = fresh(actors=1)
    hand.ask("a")
    turn = hand.begin("a")
    turn.started()
    turn.spawn("b")
    assert hand.state("b") == "queued"
    assert down(hand) == {"interrupted": 1, "requeued": 1}
    up(hand)
    hand.begin("b").settle("b is done")
    assert (hand.state("a"), hand.state("b")) == ("failed", "succeeded")
    assert "b" in hand.registry.s.sessions[MAIN].pending


def test_one_under_a_stop_stays_stopped(hand: Hand) -> None:
    yielded(hand, "b")
    hand.begin("b").started()
    hand.stop(MAIN)
    assert down(hand) == {}
    up(hand)
    assert not hand.sent(Start)
    assert (hand.state("a"), hand.state("b")) == ("cancelled", "cancelled")


# ---------------------------------------------------------------------- loops, time, leftovers


def test_a_third_resume_within_two_minutes_is_a_tombstone(hand: Hand) -> None:
    hand.ask("a", agent_id="r")
    hand.begin("a").started()
    for _ in range(2):
        assert down(hand) == {"resumed": 1}
        up(hand)
        hand.begin("a").started()
        hand.clock.advance(10)
    assert down(hand) == {"tombstone": 1}
    session = hand.registry.s.sessions["agent:r:main"]
    assert hand.state("a") == "failed"
    assert "2 resumes" in error(hand, "a")
    assert session.wedged_at is not None
    # also for a later run of the session, and after another restart, until it is cleared
    hand.say("d2", Join("d2", root_of("d2"), "w", leased=False))
    hand.ask("b", "d2", agent_id="r")
    up(hand)
    hand.begin("b").started()
    hand.clock.advance(600)
    assert down(hand) == {"interrupted": 1}
    cleared, _ = hand.registry.clear_tombstones()
    assert cleared == ("agent:r:main",)
    assert hand.registry.s.sessions["agent:r:main"].wedged_at is None


def test_resumes_far_apart_are_no_loop(hand: Hand) -> None:
    hand.ask("a", agent_id="r")
    hand.begin("a").started()
    for _ in range(4):
        assert down(hand) == {"resumed": 1}
        up(hand)
        hand.begin("a").started()
        hand.clock.advance(61)


def test_a_resume_that_never_began_does_not_count(hand: Hand) -> None:
    hand.ask("a", agent_id="r")
    hand.begin("a").started()
    for _ in range(5):
        assert down(hand) == {"resumed": 1}
    assert hand.registry.s.sessions["agent:r:main"].resumes == ()


def test_a_deadline_goes_on_by_the_clock_on_the_wall(hand: Hand) -> None:
    hand.admit(
        "a", session_key="agent:r:main", session_id="r-main", route="ask", agent_id="r", timeout=30.0
    )
    hand.begin("a").started()
    hand.clock.advance(31)
    assert down(hand) == {"interrupted": 1}
    assert hand.state("a") == "timed_out"


def test_one_of_long_ago_is_not_resumed(hand: Hand) -> None:
    hand.ask("a", agent_id="r")
    hand.begin("a").started()
    hand.clock.advance(2 * 3600 + 1)
    assert down(hand) == {"interrupted": 1}
    assert "long ago" in error(hand, "a")


def test_an_agent_that_is_not_there_any_more(hand: Hand) -> None:
    hand.ask("a", agent_id="r")
    assert down(hand, agents=AGENTS[:1]) == {"interrupted": 1}
    assert "not registered any more" in error(hand, "a")


def test_a_large_input_went_with_its_giver(hand: Hand) -> None:
    for run in "ab":
        hand.admit(
            run,
            session_key=MAIN,
            session_id="w-main",
            route="ask",
            agent_id="w",
            input=Payload(None, "ref", 70_000) if run == "b" else None,
        )
    hand.begin("a").started()
    assert down(hand) == {"interrupted": 2}
    assert "70000 bytes" in error(hand, "b")


# ---------------------------------------------------------------------- crashes in between, and rules taken out


def test_a_registry_that_dies_before_the_decision_finds_it_held(hand: Hand) -> None:
    hand.ask("a", agent_id="r")
    hand.ask("b", agent_id="r")
    hand.begin("a").started()
    down(hand, decide=False)
    boot = hand.journal.get("meta", "boot")
    assert boot is not None
    for _ in range(2):
        hand.crash_registry()
        hand.do(hand.registry.open_boot(boot.decode(), True))
        hand.adopt()
        hand.do(hand.registry.prewarm(2))
        hand.grow()
        assert not hand.sent(Start)
    assert decided(hand) == {"resumed": 1, "requeued": 1}
    assert decided(hand) == {}
    hand.begin("a").settle("went on")
    hand.begin("b").settle("done")


def test_a_registry_that_dies_after_the_decision_starts_it_once(hand: Hand) -> None:
    hand.ask("a", agent_id="r")
    hand.begin("a").started()
    down(hand)
    hand.crash_registry()
    hand.adopt()
    assert decided(hand) == {}
    up(hand)
    hand.begin("a").settle("went on")
    assert hand.run("a").turns == 2


def test_without_holding_a_run_is_in_line_before_its_code_is_there() -> None:
    hand = fresh(actors=0)
    hand.ask("a")

    def enqueue(self: State, run: Any, *, resume: bool = False) -> None:
        run.interrupted, was = "", run.interrupted
        real(self, run, resume=resume)
        run.interrupted = was

    real = State.enqueue
    with without(State, "enqueue", enqueue):
        down(hand, decide=False)
        hand.crash_registry()
        hand.adopt()
        assert "a" in hand.registry.s.queue
    down(hand, decide=False)
    hand.crash_registry()
    hand.adopt()
    assert "a" not in hand.registry.s.queue


def test_without_the_rule_a_second_interruption_forgets_the_first(hand: Hand) -> None:
    hand.ask("a", agent_id="r")
    hand.begin("a").started()

    def stood(self: Resuming, run: Any) -> Held:
        return Held.TURN if run.in_turn else Held.CHILDREN if run.turns > 0 else Held.QUEUED

    with without(Resuming, "_stood", stood):
        down(hand)
        assert down(hand) != {"resumed": 1}


def test_a_large_value_that_the_pool_of_before_held_is_gone(hand: Hand) -> None:
    yielded(hand, "b", "c")
    hand.begin("b").settle("b is done", held=100_000)
    hand.do(hand.registry.value_held("b", hand.run("b").held_by))
    assert hand.run("b").held_by == "pool"
    hand.begin("c").started()
    down(hand)
    up(hand)
    turn = hand.begin("a")
    assert [(c.run, c.actor) for c in turn.spec.completions] == [("b", ""), ("c", "")]
    turn.settle("both heard")
    assert hand.state("a") == "succeeded"


# ---------------------------------------------------------------------- messages that are waited for, steers


@pytest.mark.parametrize("told", [True, False])
def test_a_run_that_waits_for_a_message_does_after_the_restart_and_keeps_what_it_was_told(told: bool) -> None:
    hand = fresh(actors=2)
    hand.ask("a")
    top = hand.begin("a")
    top.started()
    child = top.child("b")
    top.settle("", yielded=True)
    child.settle("", yielded=True, waits_for="message", unclean=("a thread",))
    if told:
        other = hand.ask("m1", agent_id="r")
        hand.begin("m1").started()  # it has the only process that is left
        assert other.accepted
        _say(hand, "b", "m")
        assert hand.state("b") == "queued"
    assert down(hand)["waiting"] == 2
    hand.say("late", Join("late", root_of("late"), "w", leased=False))
    if not told:
        assert hand.run("b").pause == "message"
        _say(hand, "b", "m", by="late")
    up(hand)
    turn = hand.begin("b")
    assert (turn.spec.kind, turn.spec.text) == ("message", "go on")
    turn.settle("told")
    assert hand.begin("a").spec.kind == "wake"


def _say(hand: Hand, run: str, message: str, by: str = "driver") -> None:
    asked = admit(message, root_of(by), session_key=key_of(run), session_id="s", route="ask", task="go on")
    hand.courier(by).admit(asked, message)
    assert hand.receipts(by, 1)[0].told


def test_a_run_that_was_steered_before_the_restart_goes_on_as_the_new_one() -> None:
    hand = fresh(actors=2)
    hand.ask("a", agent_id="r")
    top = hand.begin("a")
    top.started()
    top.child("b", agent_id="w").started()
    hand.courier(top.actor).admit(
        Admit("b+", "", "", "steer", top.spec.session_key, "rather this", top.activation, steers="b"), "b+"
    )
    assert hand.receipts(top.actor, 1)[0].accepted
    down(hand)
    assert hand.state("b") in ("lost", "cancelled")
    up(hand, 3)
    assert hand.begin("b+").settle().word == "settled"


def test_a_session_knows_that_the_runtime_went_down_in_its_run(hand: Hand) -> None:
    hand.ask("a")
    hand.begin("a").started()
    assert down(hand) == {"interrupted": 1}
    assert hand.registry.s.sessions[MAIN].aborted
