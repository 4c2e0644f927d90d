"""Memory audiences over a runtime of threads: what the host stamps, and what a reset above does to those below."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import openclaw_ray as oc
from openclaw_ray.core.audience import AudienceKind
from openclaw_ray.testing import LocalRuntime


@oc.agent
def main(turn: oc.SyncTurn) -> str:
    """Says what it may see; a main session has a child of its own agent and one of another say it, too."""
    try:
        said = turn.audience().use().kind.value
    except oc.AudienceDenied as error:
        said = error.reason
    if turn.session.depth == 0:
        turn.spawn("look", label="same")
        turn.spawn("look", agent_id="other", label="other")
        said = " ".join([said, *(done.text for done in turn.join())])
    return said


@oc.agent
async def other(turn: oc.Turn) -> str:
    try:
        return (await turn.audience().use()).kind.value
    except oc.AudienceDenied as error:
        return error.reason


@pytest.fixture
def rt() -> Iterator[LocalRuntime]:
    config = {"agents": {"defaults": {"subagents": {"allowAgents": ["*"]}}}}
    with LocalRuntime([main, other], config=config) as rt:
        yield rt


def key_of(rt: LocalRuntime, label: str) -> str:
    [key] = [row["key"] for row in rt.sessions() if row.get("label") == label]
    return str(key)


def test_the_owners_chat_hands_its_memory_down_its_own_agent_and_no_further(rt: LocalRuntime) -> None:
    assert rt.ask("main", "look", timeout=10).text == "owner-private owner-private stale-lineage"


def test_a_reset_above_is_felt_below_and_a_new_child_is_fine(rt: LocalRuntime) -> None:
    rt.ask("main", "look", timeout=10)
    child = key_of(rt, "same")
    assert rt.audience(child).kind is AudienceKind.OWNER_PRIVATE
    rt.reset("agent:main:main")
    with pytest.raises(oc.AudienceDenied, match="agent:main:main was reset since it spawned it") as denied:
        rt.audience(child)
    assert denied.value.reason == "stale-lineage"
    assert rt.ask("main", "look", timeout=10).text == "owner-private owner-private stale-lineage"


def test_a_deleted_session_has_none(rt: LocalRuntime) -> None:
    rt.ask("main", "look", timeout=10)
    child = key_of(rt, "same")
    rt.delete(child)
    with pytest.raises(oc.AudienceDenied, match="deleted"):
        rt.audience(child)


def test_a_programs_root_is_no_conversation(rt: LocalRuntime) -> None:
    assert rt.result(rt.spawn("look", "other"), timeout=10).text == "stale-lineage"
    with pytest.raises(oc.AudienceDenied, match="neither a chat"):
        rt.audience(rt.root_key)


def test_no_argument_sets_what_the_host_writes(rt: LocalRuntime) -> None:
    @oc.agent(id="sets")
    def sets(turn: oc.SyncTurn) -> str:
        for name in ("spawnedBySenderIsOwner", "spawnedBySessionId", "parentSessionLifecycleRevision"):
            try:
                turn.call("sessions_spawn", task="x", **{name: True})
            except oc.ToolInputError:
                continue
            return f"{name} was taken"
        return "all refused"

    rt.register([sets])
    assert rt.ask("sets", "go", timeout=10).text == "all refused"
