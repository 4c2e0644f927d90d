"""PROTOCOL.md 3.1, labels and task names; and what a session is told of its children (SPEC.md B4, B7)."""

from __future__ import annotations

import pickle

import pytest

from openclaw_ray.actors.caller_views import allowed_agents
from openclaw_ray.core.limits import Compat
from openclaw_ray.core.protocol.child_views import children_of
from openclaw_ray.core.protocol.names import ChildNames
from openclaw_ray.core.protocol.records import Run, Session, thaw
from openclaw_ray.core.subagent_rows import ChildFacts
from rules.asking import agent, key_of, root_of
from rules.hand import Hand, without


def test_a_label_is_one_un_ended_childs() -> None:
    """3.1: refused up front, before there is a child; free again after the end."""

    def schedule() -> list[str]:
        hand = Hand(actors=4)
        parent = hand.start("parent")
        words = [parent.spawn("a", label="L").status, parent.spawn("b", label="L").status]
        hand.begin("a").settle()
        return [*words, parent.spawn("c", label="L").status, parent.spawn("d", label="L").status]

    assert schedule() == ["accepted", "error", "accepted", "error"]
    with without(ChildNames, "taken", lambda self, requester, admit: None):
        assert schedule() == ["accepted"] * 4


def test_a_label_in_use_names_its_holder_and_leaves_nothing_behind() -> None:
    hand = Hand(actors=2)
    parent = hand.start("parent")
    parent.spawn("a", label="x" * 512)
    refused = parent.spawn("b", label="x" * 512)
    assert (refused.status, refused.limit) == ("error", "label")
    assert f"is in use by {key_of('a')} (" in (refused.error or "")
    assert len(refused.error or "") < 250
    assert hand.registry.s.sessions[key_of("parent")].active == 1
    assert hand.journal.get("runs", "b") is None


def test_two_of_one_label_in_one_step_are_one_child() -> None:
    hand = Hand(actors=2)
    parent = hand.start("parent")
    receipts = parent.spawn_all(["a", "b", "c"], label="L")
    assert [receipt.status for receipt in receipts] == ["accepted", "error", "error"]


def test_requesters_do_not_share_their_labels() -> None:
    hand = Hand(actors=4, drivers=("driver", "other"))
    parent = hand.start("parent")
    assert parent.spawn("a", label="L").accepted
    assert hand.admit("b", label="L").accepted
    assert hand.admit("c", by="other", label="L").accepted
    assert hand.admit("d", label="L").status == "error"


def test_an_operator_without_labels_is_asked_for_none() -> None:
    hand = Hand(actors=1)
    assert hand.admit("a").accepted
    assert hand.admit("b").accepted
    assert hand.registry.s.sessions[root_of("driver")].labels is None


def test_a_label_is_held_over_a_crash_of_the_registry() -> None:
    hand = Hand(actors=3)
    hand.admit("a", label="L")
    hand.begin("a")
    hand.crash_registry()
    hand.adopt()
    assert hand.admit("b", label="L").status == "error"
    hand.turns["a"].settle()
    assert hand.admit("c", label="L").accepted


def test_labels_of_ended_children_do_not_gather() -> None:
    hand = Hand(actors=2)
    for number in range(300):
        hand.start(f"r{number}", label=f"L{number}").settle()
    labels = hand.registry.s.sessions[root_of("driver")].labels
    assert labels is not None
    assert len(labels) <= 65


def test_a_task_name_is_no_label() -> None:
    """B4: two children may have one; what names them is then ambiguous."""
    hand = Hand(actors=3)
    parent = hand.start("parent")
    assert parent.spawn("a", task_name="part").accepted
    assert parent.spawn("b", task_name="part").accepted
    assert hand.run("a").task_name == "part"
    assert hand.registry.s.sessions[key_of("a")].task_name == "part"


def test_an_end_is_told_under_label_else_task_name() -> None:
    hand = Hand(actors=3)
    parent = hand.start("parent")
    parent.spawn("a", task_name="part")
    parent.spawn("b", task_name="part", label="L")
    for run in ("a", "b"):
        end = hand.begin(run).settle()
        assert end.deliver is not None
        assert end.deliver.completion.label == ("part" if run == "a" else "L")


def test_a_journal_of_before_task_names_is_read() -> None:
    hand = Hand(actors=1)
    hand.start("a", label="L")
    for record in (hand.run("a"), hand.registry.s.sessions[key_of("a")]):
        older = pickle.dumps(pickle.loads(record.freeze())[:-1])
        back: Run | Session = thaw(type(record), older)
        assert (back.label, back.task_name) == ("L", None)
        newer = pickle.dumps((*pickle.loads(record.freeze()), "more"))
        with pytest.raises(ValueError, match="newer version"):
            thaw(type(record), newer)


@pytest.mark.parametrize(("compat", "status"), [(Compat.V2026_9, "accepted"), (Compat.V2026_7, "error")])
def test_a_timeout_of_one_call_is_a_matter_of_compat(compat: Compat, status: str) -> None:
    """DESIGN.md 11. A map's timeout and the operator's are no parameters of the tool."""
    hand = Hand(actors=3, compat=compat)
    parent = hand.start("parent")
    receipt = parent.spawn("a", timeout=5.0)
    assert receipt.status == status
    if not receipt.accepted:
        assert (receipt.limit, receipt.path) == (
            "runTimeoutSeconds",
            "agents.defaults.subagents.runTimeoutSeconds",
        )
    assert parent.spawn("b", timeout=5.0, route="map").accepted
    assert hand.admit("c", timeout=5.0).accepted


# ---------------------------------------------------------------------- what a session is told


def children(hand: Hand, requester: str, limit: int = 100) -> list[ChildFacts]:
    return children_of(hand.registry.s, hand.journal, key_of(requester), {"b": "a slot"}, limit)


def test_a_session_is_told_of_its_own_children_newest_first() -> None:
    hand = Hand(actors=4, max_concurrent=1)
    parent = hand.start("parent")
    parent.spawn("a", label="L", task_name="n")
    parent.spawn("b")
    middle = hand.begin("a")
    middle.child("below")
    hand.admit("other")
    b, a = children(hand, "parent")
    assert (a.run_id, a.session_key, a.label, a.task_name) == ("a", key_of("a"), "L", "n")
    assert (a.state, a.pending, a.children, a.active) == ("running", 1, (key_of("below"),), True)
    assert (b.run_id, b.state, b.waiting_for) == ("b", "queued", "a slot")
    assert [facts.run_id for facts in children(hand, "a")] == ["below"]
    assert children(hand, "below") == []


def test_ended_children_come_from_the_journal_and_un_ended_ones_are_never_left_out() -> None:
    hand = Hand(actors=4)
    parent = hand.start("parent")
    parent.spawn("long")
    for run in ("a", "b", "c"):
        parent.child(run).settle()
    listed = children(hand, "parent", limit=2)
    assert [(facts.run_id, facts.state) for facts in listed] == [
        ("c", "succeeded"),
        ("b", "succeeded"),
        ("long", hand.state("long")),
    ]
    assert listed[0].ended_at is not None
    assert not listed[0].active


def test_a_session_is_told_whom_it_may_name() -> None:
    strict = agent("strict", allow_agents=("w", "gone"), require_agent_id=True)
    hand = Hand(actors=2, agents=[agent("open", allow_agents=("*",)), strict])
    for name, any_agent, required, ids in (
        ("w", False, False, ("w",)),
        ("open", True, False, ("open", "strict", "w")),
        ("strict", False, True, ("w",)),
    ):
        hand.admit(name, agent_id=name)
        allowed = allowed_agents(hand.registry, key_of(name))
        assert (allowed.requester, allowed.allow_any, allowed.require_agent_id) == (name, any_agent, required)
        assert allowed.agents == ids
