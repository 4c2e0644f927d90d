"""The true cause of a death, from what Ray, the system and the kernel say of it."""

from __future__ import annotations

import pickle

import pytest
from rules.hand import Hand, without

from openclaw_ray.core.death import Death, DeathKind, Exit, says_enough, tell
from openclaw_ray.core.lifecycle import Cause
from openclaw_ray.core.protocol.crew import Crew
from openclaw_ray.core.protocol.messages import Completed, Grow
from openclaw_ray.core.results import ErrorInfo

# as Ray 2.60 says it, cut
CONNECTION = (
    "The actor is dead because its worker process has died. Worker exit type: SYSTEM_ERROR Worker exit detail: Worker "
    "unexpectedly exits with a connection error code 2. End of file. Some common causes include: (1) the process was "
    "killed by the OOM killer due to high memory usage, (2) ray stop --force was called, or (3) the worker crashed "
    "unexpectedly due to SIGSEGV or another unexpected error."
)
MEMORY = (
    "OutOfMemoryError: 1 worker(s) were killed due to the node running low on memory. Memory on the node (IP: "
    "10.0.0.2, ID: 57f70fa0aa7909fa) was 1.05GB used / 23.54GB limit (0.044728)"
)
NODE = "The actor died because its node has died. Node Id: 57f70fa0aa7909fa2398 the actor's node was terminated: crash"
OWNER = "The actor is dead because its owner has died. Owner Id: 0100 Owner Ip address: 10.0.0.2"
KILLED = "The actor is dead because it was killed by `ray.kill`."


@pytest.mark.parametrize(
    ("ray_says", "ended", "kind", "words"),
    [
        (CONNECTION, Exit(signal=9), DeathKind.SIGNAL, "signal 9 (SIGKILL)"),
        (CONNECTION, Exit(signal=11), DeathKind.SIGNAL, "signal 11 (SIGSEGV)"),
        (CONNECTION, Exit(signal=64), DeathKind.SIGNAL, "signal 64"),
        (CONNECTION, Exit(code=0), DeathKind.EXIT, "exit code 0"),
        (CONNECTION, Exit(code=7), DeathKind.EXIT, "exit code 7"),
        (CONNECTION, None, DeathKind.UNKNOWN, "connection error"),
        ("", None, DeathKind.UNKNOWN, "nobody has seen"),
        (MEMORY, Exit(signal=9), DeathKind.OUT_OF_MEMORY, "1.05GB used / 23.54GB"),
        (NODE, None, DeathKind.NODE, "node 57f70fa0 died"),
        (OWNER, Exit(signal=9), DeathKind.POOL, "the pool"),
        (KILLED, Exit(code=1), DeathKind.ENDED, "ray.kill"),
    ],
)
def test_the_cause_is_told_apart(ray_says: str, ended: Exit | None, kind: DeathKind, words: str) -> None:
    death = tell(ray_says, ended)
    assert death.kind is kind
    assert words in death.text
    assert "\n" not in death.text
    assert says_enough(ray_says) is (ray_says in (MEMORY, NODE, OWNER, KILLED))
    assert pickle.loads(pickle.dumps(death)) == death


@pytest.mark.parametrize(
    ("ended", "kind"),
    [
        (Exit(signal=15), DeathKind.POOL),
        (Exit(signal=9), DeathKind.POOL),
        (None, DeathKind.POOL),
        (Exit(code=1), DeathKind.POOL),
        (Exit(signal=11), DeathKind.SIGNAL),
        (Exit(code=7), DeathKind.EXIT),
    ],
)
def test_what_ends_with_the_pool_died_of_that_unless_it_ended_itself(ended: Exit | None, kind: DeathKind) -> None:
    assert tell(CONNECTION, ended, pool_gone=True).kind is kind


def test_a_kill_while_the_kernel_ends_processes_for_want_of_memory_is_one_of_them() -> None:
    assert tell(CONNECTION, Exit(signal=9), starved=1).kind is DeathKind.OUT_OF_MEMORY
    assert tell(CONNECTION, Exit(signal=11), starved=1).kind is DeathKind.SIGNAL
    assert tell(CONNECTION, Exit(code=1), starved=1).kind is DeathKind.EXIT


def test_a_dead_node_is_named_by_the_registry_where_ray_does_not() -> None:
    death = tell("The actor died because its node has died.", node="abcdef0123456789")
    assert (death.kind, death.node) == (DeathKind.NODE, "abcdef0123456789")


def test_a_wait_status_is_a_code_or_a_signal() -> None:
    assert [Exit.of_status(s) for s in (0, 7 << 8, 9, 11 | 0x80)] == [
        Exit(code=0),
        Exit(code=7),
        Exit(signal=9),
        Exit(signal=11),
    ]


def test_the_run_its_announce_and_its_row_say_the_cause() -> None:
    """DESIGN.md 8, SCENARIOS.md 82."""
    hand = Hand(actors=2)
    hand.start("r")
    hand.start("sibling")
    hand.do(hand.registry.died(hand.run("r").actor, tell(MEMORY)))
    outcome = hand.run("r").outcome
    assert outcome is not None
    assert outcome.error is not None
    assert (outcome.error.type, outcome.error.cause) == ("ProcessDied", Cause.PROCESS_DIED)
    assert outcome.error.to_json()["death"] == {"kind": "out_of_memory", "signal": "SIGKILL"}
    assert hand.state("sibling") == "running"
    hand.poll()
    [end] = hand.messages(Completed)
    assert "low on memory" in end.completion.status_label


def test_an_error_of_an_older_version_has_no_death() -> None:
    assert ErrorInfo("ProcessDied", "gone", None, "process_died").to_json() == {
        "type": "ProcessDied",
        "message": "gone",
        "cause": "process_died",
    }
    assert Death(DeathKind.EXIT, "it left", 3).to_json() == {"kind": "exit", "exitCode": 3}


def test_a_process_that_dies_before_its_hello_is_asked_for_again_at_once() -> None:
    """7.1: the pool stands on what it creates, so nobody waits out the 90 seconds of a growth that never arrives."""

    def schedule() -> tuple[int, float]:
        hand = Hand()
        hand.admit("r")
        [first] = hand.take(Grow)
        hand.do(hand.registry.growth_failed(first.actors[0], "its process ended"))
        began = hand.clock.mono()
        while not hand.sent(Grow):
            hand.wait(1.0)
        return len(hand.sent(Grow)), hand.clock.mono() - began

    assert schedule() == (1, 0.0)
    with without(Crew, "growth_failed", lambda self, actor_id, why, has=None: _late(self, actor_id)):
        assert schedule()[1] >= 89.0


def _late(crew: object, actor_id: str) -> None:
    """Growth is given up by its time alone."""
    s = crew.s  # type: ignore[attr-defined]
    if s.clock.mono() - s.actors[actor_id].born_at >= 90.0:
        del s.actors[actor_id]
