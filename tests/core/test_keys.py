"""core.keys: SPEC.md D and E1; what the conformance cases leave open."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openclaw_ray.core import keys
from openclaw_ray.core.keys import ChatType, ControlScope, KeyKind, KeyShape, RoleName


@pytest.mark.parametrize("key", [None, "", "  \n"])
def test_nothing_is_missing(key: str | None) -> None:
    view = keys.inspect(key)
    assert (view.shape, view.normalised, view.base_key) == (KeyShape.MISSING, "", "")


@pytest.mark.parametrize("key", ["agent:", "agent:main", "agent::x", "agent:main:", "agent:main::subagent:x"])
def test_a_malformed_key_is_never_taken_for_a_session(key: str) -> None:
    view = keys.inspect(key)
    assert view.shape is KeyShape.MALFORMED_AGENT
    assert (view.agent_id, view.rest, view.kind, view.is_subagent, view.key_depth) == (
        None,
        None,
        None,
        False,
        0,
    )
    assert not keys.is_subagent(key)


def test_a_bare_subagent_key_is_legacy_and_a_child() -> None:
    view = keys.inspect("subagent:Worker")
    assert (view.shape, view.kind, view.is_subagent, view.key_depth) == (
        KeyShape.LEGACY_OR_ALIAS,
        None,
        True,
        1,
    )


@pytest.mark.parametrize(
    ("rest", "kind"),
    [
        ("main", KeyKind.MAIN),
        ("main:thread:9", KeyKind.MAIN),
        ("acp:u", KeyKind.ACP),
        ("cron:job:run:1", KeyKind.CRON),
        ("driver:u", KeyKind.OTHER),
        ("dashboard:u", KeyKind.OTHER),
        ("subagent", KeyKind.OTHER),
        ("subagent-abc", KeyKind.OTHER),
    ],
)
def test_the_first_segment_of_the_rest_decides_the_kind(rest: str, kind: KeyKind) -> None:
    assert keys.inspect(f"agent:main:{rest}").kind is kind


def test_a_nested_key_is_read_with_its_segments() -> None:
    view = keys.inspect("agent:main:subagent:a:subagent:b")
    assert (view.is_subagent, view.key_depth) == (True, 2)


@pytest.mark.parametrize("rest", ["subagent:incognito-1", "dashboard:incognito-1"])
def test_an_incognito_key_is_known_by_its_name(rest: str) -> None:
    assert keys.inspect(f"agent:main:{rest}").is_incognito
    assert not keys.inspect("agent:main:subagent:x-incognito-1").is_incognito


def test_the_last_thread_marker_counts() -> None:
    view = keys.inspect("agent:main:slack:channel:c1:thread:1:Thread:2")
    assert (view.thread_id, view.base_key) == ("2", "agent:main:slack:channel:c1:thread:1")


def test_a_thread_marker_with_nothing_behind_it_is_none() -> None:
    view = keys.inspect("agent:main:main:thread:")
    assert (view.thread_id, view.base_key) == (None, "agent:main:main:thread:")


@pytest.mark.parametrize(
    ("rest", "chat_type"),
    [
        ("telegram:dm:1", "direct"),
        ("telegram:group:1", "group"),
        ("x:channel:direct", "channel"),
        ("main", "unknown"),
    ],
)
def test_the_chat_type_is_read_from_the_segments(rest: str, chat_type: str) -> None:
    assert keys.inspect(f"agent:main:{rest}").chat_type is ChatType(chat_type)


@pytest.mark.parametrize(
    ("key", "normalised"),
    [
        (" Agent:Main:SIGNAL:Group:AbC== ", "agent:main:signal:group:AbC=="),
        ("Agent:Main:Signal:Group:AbC:Thread:T1", "agent:main:signal:group:AbC:thread:t1"),
        ("Agent:A:Matrix:Channel:!RoOm:Srv.org:Thread:$E", "agent:a:matrix:channel:!RoOm:Srv.org:thread:$E"),
        ("Agent:Main:Discord:Channel:ABC", "agent:main:discord:channel:abc"),
        ("Agent:İ:Signal:Group:Ab", "agent:i̇:signal:group:Ab"),
    ],
)  # fmt: skip
def test_only_opaque_ids_keep_their_letter_case(key: str, normalised: str) -> None:
    assert keys.normalise_key(key) == normalised


@given(st.text(max_size=60))
def test_inspect_never_raises_and_normalising_is_idempotent(text: str) -> None:
    view = keys.inspect(f"agent:{text}")
    keys.inspect(text)
    assert keys.normalise_key(view.normalised) == view.normalised
    assert keys.is_subagent(view.normalised) or not view.is_subagent


@pytest.mark.parametrize("value", ["", " ", "-a", "_a", "a b", "ä", "a\nb", "a.b", None, 5, True, "a" * 65])
def test_what_is_no_agent_id_is_not_repaired(value: object) -> None:
    assert keys.normalise_agent_id(value) is None


@pytest.mark.parametrize(("value", "made"), [(" Main ", "main"), ("0-a_B", "0-a_b"), ("a" * 64, "a" * 64)])
def test_agent_ids_are_trimmed_and_lower_case(value: str, made: str) -> None:
    assert keys.normalise_agent_id(value) == made


def test_depth_follows_the_spawner_to_the_first_stored_value() -> None:
    store: dict[str, dict[str, Any]] = {
        "agent:main:subagent:a": {"spawnDepth": 2},
        "agent:b:subagent:b": {"spawnedBy": "Agent:Main:Subagent:A"},
        "agent:c:subagent:c": {"spawnedBy": "agent:b:subagent:b", "sessionId": "sid"},
    }
    assert keys.depth("agent:c:subagent:c", store) == 4
    assert keys.depth("sid", store) == 4


@pytest.mark.parametrize("stored", [True, -1, 1.5, "1e3", "0x10", " 2", "9007199254740993", None, [2]])
def test_an_unusable_stored_depth_is_ignored(stored: object) -> None:
    key = "agent:main:subagent:a"
    assert keys.depth(key, {key: {"spawnDepth": stored}}) == 1


def test_a_depth_of_zero_is_a_value() -> None:
    key = "agent:main:subagent:a"
    assert keys.depth(key, {key: {"spawnDepth": 0, "spawnedBy": "agent:main:subagent:b"}}) == 0


def test_a_key_without_its_agent_is_the_default_agents() -> None:
    store = {"agent:ops:subagent:a": {"spawnDepth": 3}}
    assert keys.depth("subagent:a", store, default_agent="ops") == 3


def test_a_session_that_spawned_itself_has_a_finite_depth() -> None:
    key = "agent:main:subagent:a"
    assert keys.depth(key, {key: {"spawnedBy": key}}) == 2


@pytest.mark.parametrize(
    ("depth", "cap", "name", "scope", "can_spawn"),
    [
        (0, 1, RoleName.MAIN, ControlScope.CHILDREN, True),
        (1, 1, RoleName.LEAF, ControlScope.NONE, False),
        (1, 2, RoleName.ORCHESTRATOR, ControlScope.CHILDREN, True),
        (5, 5, RoleName.LEAF, ControlScope.NONE, False),
        (6, 5, RoleName.LEAF, ControlScope.NONE, False),
    ],
)
def test_the_role_follows_depth_and_cap(
    depth: int, cap: int, name: RoleName, scope: ControlScope, can_spawn: bool
) -> None:
    assert keys.role(depth, cap) == keys.Role(name, scope, can_spawn)


def test_minted_keys_are_flat_and_read_back() -> None:
    child = keys.inspect(keys.mint_child("docs", "u1"))
    assert (child.agent_id, child.kind, child.key_depth, child.is_incognito) == (
        "docs",
        KeyKind.SUBAGENT,
        1,
        False,
    )
    assert keys.inspect(keys.mint_child("docs", "u1", incognito=True)).is_incognito
    assert keys.is_subagent(keys.mint_child("docs", "u1"))
    assert keys.inspect(keys.main_key("docs")).kind is KeyKind.MAIN
    assert keys.driver_key("docs", "u2") == "agent:docs:driver:u2"
    assert not keys.is_subagent(keys.driver_key("docs", "u2"))


@pytest.mark.parametrize(
    ("scope", "key"),
    [
        ("main", "agent:main:main"),
        ("per-peer", "agent:main:direct:bob"),
        ("per-channel-peer", "agent:main:telegram:direct:bob"),
        ("per-account-channel-peer", "agent:main:telegram:default:direct:bob"),
    ],
)
def test_the_dm_scope_decides_which_messages_share_a_session(scope: str, key: str) -> None:
    assert keys.peer_key("Main", "Telegram", "direct", " Bob ", dm_scope=scope) == key


def test_a_direct_message_from_nobody_goes_to_the_main_session() -> None:
    assert keys.peer_key("main", "telegram", "direct", " ", dm_scope="per-peer") == "agent:main:main"


def test_groups_have_their_own_session_whatever_the_scope() -> None:
    assert keys.peer_key("main", "signal", "group", "AbC==") == "agent:main:signal:group:AbC=="
    assert keys.peer_key("main", " ", "channel", None) == "agent:main:unknown:channel:unknown"


def test_a_linked_person_has_one_session_over_channels() -> None:
    links = {" ": ["telegram:1"], "Alice": ["Telegram:1", "987"]}
    made = {
        keys.peer_key("main", "telegram", "direct", "1", dm_scope="per-peer", identity_links=links),
        keys.peer_key("main", "discord", "direct", "987", dm_scope="per-peer", identity_links=links),
    }
    assert made == {"agent:main:direct:alice"}


def test_a_peer_key_needs_an_agent_a_kind_and_a_scope() -> None:
    for args in (("../x", "direct", "main"), ("main", "crowd", "main"), ("main", "direct", "per-user")):
        with pytest.raises(ValueError, match=r"not an agent id|is not a valid"):
            keys.peer_key(args[0], "telegram", args[1], "1", dm_scope=args[2])
