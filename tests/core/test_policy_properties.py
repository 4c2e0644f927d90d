"""core.policy: what holds whatever the rules are."""

from __future__ import annotations

import pickle
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from openclaw_ray.core.errors import ToolDenied
from openclaw_ray.core.policy import (
    Inherited,
    Names,
    Sender,
    ToolLists,
    ToolRules,
    ToolSettings,
    ToolView,
    effective_tools,
    handed_on,
    tool_name,
)
from openclaw_ray.core.policy.rules import ProviderRules

UNIVERSE = ("read", "write", "apply_patch", "exec", "cron", "message", "sessions_spawn", "subagents", "my_tool", "x")
ENTRIES = st.sampled_from([*UNIVERSE, "*", "s*", "group:fs", "group:plugins", "group:openclaw", "bash", " ", "nothing"])
LISTS = st.lists(ENTRIES, max_size=4)
PROFILE = st.sampled_from([None, "minimal", "coding", "messaging", "full"])


def names(path: str) -> st.SearchStrategy[Names | None]:
    return st.none() | LISTS.map(lambda entries: Names.of(entries, path))


TOOL_LISTS = st.builds(ToolLists, names("allow"), names("alsoAllow"), names("deny"))
PROVIDER = st.builds(ProviderRules, st.sampled_from(["p", "p/m"]), PROFILE, st.just("provider"), TOOL_LISTS)
SETTINGS = st.builds(
    ToolSettings,
    PROFILE,
    st.just("profile"),
    TOOL_LISTS,
    st.lists(PROVIDER, max_size=2).map(tuple),
    st.dictionaries(st.sampled_from(["id:1", "*"]), TOOL_LISTS, max_size=2).map(lambda said: tuple(said.items())),
    TOOL_LISTS,
)
RULES = st.builds(ToolRules, SETTINGS, TOOL_LISTS)


def snapshot(asks: list[ToolLists], sender: ToolLists | None = None) -> Inherited | None:
    own = handed_on(None, "root", sender)
    for number, asked in enumerate(asks):
        own = handed_on(own, f"session {number}", asked=asked)
    return own


def view(rules: ToolRules | None = None, own: ToolSettings | None = None, **more: Any) -> ToolView:
    given: dict[str, Any] = {"agent_id": "a", "depth": 0, "max_spawn_depth": 2, "universe": UNIVERSE}
    return effective_tools(rules, own, **{**given, **more})


CHAINS = st.lists(TOOL_LISTS, max_size=4)


@given(RULES, SETTINGS, CHAINS, st.booleans(), st.integers(0, 3), st.sampled_from([None, "p", "q"]))
def test_no_step_adds_a_tool(
    rules: ToolRules, own: ToolSettings, asks: list[ToolLists], sandboxed: bool, depth: int, provider: str | None
) -> None:
    whole = view(
        rules, own, depth=depth, sandboxed=sandboxed, provider=provider, model="m", inherited=snapshot(asks)
    )
    for cut in range(len(whole.steps)):
        fewer = ToolView("", "a", depth, "main", (*whole.steps[:cut], *whole.steps[cut + 1 :]), whole.names)
        assert set(whole.tools) <= set(fewer.tools)


@given(RULES, SETTINGS, CHAINS)
def test_whatever_is_true_of_a_session_beside_its_rules_takes_away(
    rules: ToolRules, own: ToolSettings, asks: list[ToolLists]
) -> None:
    main, below, leaf = (set(view(rules, own, depth=depth).tools) for depth in (0, 1, 2))
    assert leaf <= below <= main
    assert set(view(rules, own, sandboxed=True).tools) <= main
    assert set(view(rules, own, inherited=snapshot(asks)).tools) <= main
    assert set(view(rules, own, sender=Sender(id="1")).tools) <= main


@given(CHAINS, TOOL_LISTS, RULES, SETTINGS, st.none() | TOOL_LISTS, st.booleans())
def test_no_child_has_more_than_its_requesters_snapshot_allows(
    asks: list[ToolLists],
    asked: ToolLists,
    rules: ToolRules,
    own: ToolSettings,
    sender: ToolLists | None,
    writes: bool,
) -> None:
    requester = snapshot(asks, sender)
    child = handed_on(requester, "requester", asked=asked)
    who = Sender(id="1") if writes else None
    allowed = set(view(inherited=requester, sender=who).tools)
    assert set(view(inherited=child, sender=who).tools) <= allowed
    assert set(view(rules, own, depth=1, inherited=child, sender=who).tools) <= allowed


def passed(seen: ToolView, name: str) -> bool:
    try:
        seen.check(name)
    except ToolDenied as error:
        return (error.rule, error.path) != (seen.decide(name).rule, seen.decide(name).path)
    return True


@given(RULES, SETTINGS, CHAINS, st.booleans(), st.integers(0, 3))
def test_what_is_listed_is_what_passes_at_dispatch(
    rules: ToolRules, own: ToolSettings, asks: list[ToolLists], sandboxed: bool, depth: int
) -> None:
    seen = view(rules, own, depth=depth, sandboxed=sandboxed, inherited=snapshot(asks))
    passes = [name for name in seen.names if passed(seen, name)]
    assert tuple(passes) == seen.tools == tuple(one.tool for one in seen if one.allowed)
    assert [name for name in seen.names if name in seen] == passes
    again: ToolView = pickle.loads(pickle.dumps(seen))
    assert again.decisions == seen.decisions


@given(RULES, SETTINGS, st.sampled_from(UNIVERSE))
def test_letter_case_and_second_names_do_not_count(rules: ToolRules, own: ToolSettings, name: str) -> None:
    seen = view(rules, own, depth=1)
    assert seen.allowed(f" {name.upper()} ") == seen.allowed(name) == seen.allowed(tool_name(name))


@given(RULES, SETTINGS, st.sampled_from(UNIVERSE))
def test_to_deny_one_tool_takes_away_exactly_that_one(rules: ToolRules, own: ToolSettings, name: str) -> None:
    """SCENARIOS.md 40."""
    before = set(view(rules, own).tools)
    after = set(view(rules, own, inherited=snapshot([ToolLists(deny=Names.of([name]))])).tools)
    assert after == before - {name}
