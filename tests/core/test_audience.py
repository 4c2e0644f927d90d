"""core.audience: every row of SPEC.md I3, over stores of sessions that are changed under a lease."""

from __future__ import annotations

from dataclasses import replace

import pytest

from openclaw_ray.core.audience import (
    MOST_HOPS,
    Audience,
    AudienceKind,
    Denial,
    DenialReason,
    Lease,
    Line,
    Stamp,
    resolve,
)

ROOT = "agent:main:main"


class Store:
    """Sessions by key."""

    def __init__(self, *lines: Line) -> None:
        self.lines = {line.key: line for line in lines}

    def spawn(self, parent: str, key: str, *, owner: bool | None = True, agent: str = "main") -> str:
        above = self.lines[parent]
        stamp = Stamp(parent, above.session_id, above.revision, owner)
        self.lines[key] = Line(key, f"id-{key}", agent, 0, parent, stamp)
        return key

    def change(self, key: str, **fields: object) -> None:
        self.lines[key] = replace(self.lines[key], **fields)  # type: ignore[arg-type]

    def reset(self, key: str, *, same_id: bool = False) -> None:
        line = self.lines[key]
        revision = None if line.revision is None else line.revision + 1
        self.change(key, session_id=line.session_id if same_id else f"{line.session_id}'", revision=revision)

    def resolve(self, key: str) -> Audience | Denial:
        return resolve(key, self.lines.get)


@pytest.fixture
def store() -> Store:
    store = Store(Line(ROOT, "root-id", "main", 0, owner=True))
    store.spawn(ROOT, "agent:main:subagent:a")
    store.spawn("agent:main:subagent:a", "agent:main:subagent:b")
    return store


def reason(found: Audience | Denial) -> DenialReason:
    assert isinstance(found, Denial)
    assert found.text
    return found.reason


def kind(found: Audience | Denial) -> AudienceKind:
    assert isinstance(found, Audience), found
    return found.kind


def test_a_descendant_of_the_owners_chat_has_the_owners_memory(store: Store) -> None:
    found = store.resolve("agent:main:subagent:b")
    assert kind(found) is AudienceKind.OWNER_PRIVATE
    assert isinstance(found, Audience)
    assert (found.root_key, found.agent_id) == (ROOT, "main")
    assert [key for key, _, _ in found.lineage] == ["agent:main:subagent:b", "agent:main:subagent:a", ROOT]


@pytest.mark.parametrize("same_id", [False, True])
def test_a_reset_of_any_parent_voids_all_below(store: Store, same_id: bool) -> None:
    lease = Lease(store.resolve("agent:main:subagent:b"))  # type: ignore[arg-type]
    assert isinstance(lease.renewed(store.resolve("agent:main:subagent:b")), Audience)
    store.reset(ROOT, same_id=same_id)
    for key in ("agent:main:subagent:a", "agent:main:subagent:b"):
        assert reason(store.resolve(key)) is DenialReason.STALE_LINEAGE
    assert reason(lease.renewed(store.resolve("agent:main:subagent:b"))) is DenialReason.STALE_LINEAGE
    # even if everything is as it was again, the lease stays void
    store.change(ROOT, session_id="root-id", revision=0)
    assert kind(store.resolve("agent:main:subagent:b")) is AudienceKind.OWNER_PRIVATE
    assert reason(lease.renewed(store.resolve("agent:main:subagent:b"))) is DenialReason.STALE_LINEAGE


def test_a_deleted_parent_voids_all_below(store: Store) -> None:
    store.change(ROOT, gone=True)
    assert reason(store.resolve("agent:main:subagent:b")) is DenialReason.STALE_LINEAGE
    del store.lines[ROOT]
    assert reason(store.resolve("agent:main:subagent:a")) is DenialReason.STALE_LINEAGE


def test_a_parent_reset_between_prepare_and_create_leaves_a_child_without_memory(store: Store) -> None:
    prepared = store.lines[ROOT]
    store.reset(ROOT)
    stamp = Stamp(ROOT, prepared.session_id, prepared.revision, True)
    store.lines["late"] = Line("agent:main:subagent:late", "late-id", "main", 0, ROOT, stamp)
    assert reason(resolve("late", store.lines.get)) is DenialReason.STALE_LINEAGE
    again = store.spawn(ROOT, "agent:main:subagent:again")
    assert kind(store.resolve(again)) is AudienceKind.OWNER_PRIVATE


def test_a_childs_own_reset_keeps_its_grant(store: Store) -> None:
    before = Lease(store.resolve("agent:main:subagent:a"))  # type: ignore[arg-type]
    store.reset("agent:main:subagent:a")
    assert kind(store.resolve("agent:main:subagent:a")) is AudienceKind.OWNER_PRIVATE
    # what was leased to the session of before is not the new one's
    assert reason(before.renewed(store.resolve("agent:main:subagent:a"))) is DenialReason.STALE_LINEAGE
    # and what hangs below it is void
    assert reason(store.resolve("agent:main:subagent:b")) is DenialReason.STALE_LINEAGE


@pytest.mark.parametrize(
    "stamp",
    [None, Stamp(ROOT), Stamp(ROOT, "root-id", 0, None), Stamp(ROOT, None, 0, True)],
)
def test_a_child_without_a_full_stamp_inherits_nothing(store: Store, stamp: Stamp | None) -> None:
    store.change("agent:main:subagent:a", stamp=stamp)
    found = store.resolve("agent:main:subagent:b")
    assert reason(found) is DenialReason.UNVERIFIED
    assert isinstance(found, Denial)
    assert found.at == "agent:main:subagent:a"
    assert "spawn it again" in found.text


def test_no_revision_only_equals_no_revision(store: Store) -> None:
    store.change(ROOT, revision=None)
    child = store.spawn(ROOT, "agent:main:subagent:old")
    assert kind(store.resolve(child)) is AudienceKind.OWNER_PRIVATE
    store.change(ROOT, revision=1)  # the parent's next reset counts: the child must be spawned anew
    assert reason(store.resolve(child)) is DenialReason.STALE_LINEAGE


def test_without_the_owners_flag_there_is_no_owners_access(store: Store) -> None:
    child = store.spawn(ROOT, "agent:main:subagent:asked-by-another", owner=False)
    assert reason(store.resolve(child)) is DenialReason.INELIGIBLE
    below = store.spawn(child, "agent:main:subagent:below", owner=True)
    assert reason(store.resolve(below)) is DenialReason.INELIGIBLE


@pytest.mark.parametrize(
    ("root", "owner", "expected"),
    [
        ("agent:main:main", True, AudienceKind.OWNER_PRIVATE),
        ("agent:main:telegram:direct:7", True, AudienceKind.OWNER_PRIVATE),
        ("agent:main:telegram:direct:7", False, AudienceKind.CONVERSATION),
        ("agent:main:telegram:group:7", True, AudienceKind.CONVERSATION),
        ("agent:main:discord:channel:7", False, AudienceKind.CONVERSATION),
        ("agent:main:main", False, DenialReason.INELIGIBLE),
        ("agent:main:cron:nightly", True, DenialReason.INELIGIBLE),
        ("agent:main:driver:7", True, DenialReason.INELIGIBLE),
    ],
)
def test_the_root_decides(root: str, owner: bool, expected: AudienceKind | DenialReason) -> None:
    store = Store(Line(root, "root-id", "main", 0, owner=owner))
    child = store.spawn(root, "agent:main:subagent:a")
    found = store.resolve(child)
    got = found.kind if isinstance(found, Audience) else found.reason
    assert got is expected


def test_every_hop_is_of_one_agent(store: Store) -> None:
    other = store.spawn("agent:main:subagent:a", "agent:other:subagent:c", agent="other")
    assert reason(store.resolve(other)) is DenialReason.STALE_LINEAGE


def test_a_circle_and_a_line_that_is_too_long_end(store: Store) -> None:
    b = "agent:main:subagent:b"
    store.change(ROOT, requester=b, stamp=Stamp(b, f"id-{b}", 0, True))
    assert reason(store.resolve("agent:main:subagent:b")) is DenialReason.STALE_LINEAGE
    long = Store(Line(ROOT, "root-id", "main", 0, owner=True))
    parent = ROOT
    for number in range(MOST_HOPS + 1):
        parent = long.spawn(parent, f"agent:main:subagent:{number}")
        expected = number < MOST_HOPS
        assert isinstance(long.resolve(parent), Audience) is expected, number
