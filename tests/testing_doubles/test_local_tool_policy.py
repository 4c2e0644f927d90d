"""Tool policy in whole trees without Ray: what is denied is denied at dispatch (SCENARIOS.md 39, 40)."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import openclaw_ray as oc
from openclaw_ray.config import load
from openclaw_ray.core.metrics import BLOCKED, Tally
from openclaw_ray.testing import LocalRuntime, eventually

TOOLS = {"agents_list", "sessions_spawn", "sessions_yield", "subagents"}
"""Those that these tests look at; of the others, `test_session_tools` and the cases."""
ANYBODY = {"allowAgents": ["*"]}


def seen(turn: oc.SyncTurn) -> dict[str, Any]:
    """What a session has, by each way there is to find out, and what a call of each tool by name comes to."""
    said = {}
    for name in sorted(TOOLS):
        try:
            given = {"task": "x", "agentId": "no such agent!"} if name == "sessions_spawn" else {}
            said[name] = turn.call(name, **given).status
        except oc.ToolDenied as error:
            said[name] = f"{error.rule} {error.path}".strip()
    return {
        "depth": turn.session.depth,
        "listed": set(turn.tools) & TOOLS,
        "described": {each["name"] for each in turn.tools.describe()} & TOOLS,
        "found": {name for name in TOOLS if name in turn.tools},
        "view": set(turn.tool_view().tools) & TOOLS,
        "called": {name for name, word in said.items() if " " not in word and word != "sub-agent"},
        "said": said,
    }


@oc.agent
def chain(turn: oc.SyncTurn) -> list[dict[str, Any]]:
    """Looks at its tools at each depth down to the one that it is told."""
    down = int(turn.text) - 1
    below = []
    if down >= 0:
        turn.spawn(str(down), **(turn.input or {}))
        [done] = turn.join()
        below = done.result.raise_for_status().value
    return [seen(turn), *below]


def settings(rules: Mapping[str, Any], *, depth: int = 5, own: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """A configuration with rules of tools, and others for the agent ``chain``."""
    agents: dict[str, Any] = {"defaults": {"subagents": {**ANYBODY, "maxSpawnDepth": depth}}}
    if own is not None:
        agents["entries"] = {"chain": {"tools": own}}
    return {"tools": rules, "agents": agents}


def tree(config: Mapping[str, Any], to: int = 3) -> list[dict[str, Any]]:
    """What the sessions of a chain see, from depth 0 on."""
    with LocalRuntime(agents=[chain], config=config) as rt:
        found = rt.ask("chain", str(to), timeout=30).value
        levels: list[dict[str, Any]] = found
        return levels


# ---------------------------------------------------------------------- listing is dispatch


@pytest.mark.parametrize(
    ("config", "path", "from_depth"),
    [
        (settings({"deny": ["subagents"]}), "global tools.deny", 0),
        (settings({}, own={"deny": ["subagents"]}), "agent agents.entries.chain.tools.deny", 0),
        (settings({"subagents": {"tools": {"deny": ["subagents"]}}}), "sub-agent tools.subagents.tools.deny", 1),
    ],
)
def test_a_denied_tool_is_denied_at_dispatch_at_every_depth(config: Any, path: str, from_depth: int) -> None:
    """SCENARIOS.md 39, 40: and nothing else goes with it."""
    levels = tree(config)
    assert [level["depth"] for level in levels] == [0, 1, 2, 3]
    for level in levels:
        gone = {"subagents"} if level["depth"] >= from_depth else set()
        gone |= {"agents_list"} if level["depth"] else set()
        left = TOOLS - gone
        assert level["listed"] == level["described"] == level["found"] == level["view"] == level["called"] == left
        if "subagents" in gone:
            assert level["said"]["subagents"] == path


def test_sub_agents_lose_what_is_not_theirs_and_leaves_what_leads_further() -> None:
    main, orchestrator, leaf = tree(settings({}, depth=2), to=2)
    assert main["listed"] == TOOLS
    assert orchestrator["listed"] == TOOLS - {"agents_list"}
    assert leaf["listed"] == {"sessions_yield"}
    assert orchestrator["said"]["agents_list"] == "sub-agent"
    assert leaf["said"]["sessions_spawn"] == "sub-agent agents.defaults.subagents.maxSpawnDepth"


@oc.agent
def at_the_cap(turn: oc.SyncTurn) -> tuple[str, str]:
    """Tries to spawn as a model would, and as a program does."""
    with pytest.raises(oc.ToolDenied) as by_tool:
        turn.call("sessions_spawn", task="x")
    with pytest.raises(oc.SpawnForbidden) as by_program:
        turn.spawn("x")
    return str(by_tool.value), str(by_program.value)


def test_at_the_depth_cap_the_tool_is_denied_and_admission_answers_forbidden() -> None:
    """SPEC.md N8."""
    with LocalRuntime(agents=[at_the_cap], config=settings({}, depth=1)) as rt:
        receipt = rt.spawn("go", "at_the_cap")
        by_tool, by_program = rt.result(receipt, timeout=30).raise_for_status().value
    assert f"'sessions_spawn' is denied to {receipt.session_key} by the sub-agent rule" in by_tool
    assert "agents.defaults.subagents.maxSpawnDepth" in by_tool
    assert "1 of 1" in by_program or "maxSpawnDepth" in by_program


@pytest.mark.parametrize(("compat", "role"), [("2026.9", "leaf"), ("2026.7", "orchestrator")])
def test_a_lower_cap_makes_leaves_unless_the_role_is_that_of_the_spawn(compat: str, role: str) -> None:
    """SPEC.md A6, 12: the cap of a runtime changes with its next start only."""
    config = {**settings({}, depth=3), "ray": {"compat": compat}}
    with LocalRuntime(agents=[lists_them], config=config) as rt:
        receipt = rt.spawn("go", "lists_them")
        assert "sessions_spawn" in rt.result(receipt, timeout=30).raise_for_status().value
        rt._local.core.s.depth_cap = 1
        view = rt.tools(receipt.session_key)
        assert (view.role, view.allowed("sessions_spawn")) == (role, role == "orchestrator")


# ---------------------------------------------------------------------- what a spawn hands on


@oc.agent
def narrow(turn: oc.SyncTurn) -> list[dict[str, Any]]:
    """Each session narrows its child by the first of the lists that it is given."""
    below = []
    if turn.input:
        first, *rest = turn.input
        turn.spawn("go", input=rest, tools=first)
        [done] = turn.join()
        below = done.result.raise_for_status().value
    return [seen(turn), *below]


def test_what_a_spawn_narrows_binds_the_child_and_all_below_it() -> None:
    """SPEC.md D5, E6: each child has its requester's lists and its own; a later allow gives nothing back."""
    allows = [{"allow": ["sessions_*", "subagents"]}, {"allow": ["subagents", "sessions_yield"]}]
    lists = [{"deny": ["SUBAGENTS"]}, *allows]
    with LocalRuntime(agents=[narrow], config=settings({})) as rt:
        receipt = rt.spawn("go", "narrow", input=lists, tools={"deny": ["nothing_such"]})
        levels = rt.result(receipt, timeout=30).raise_for_status().value
        rows = {row["depth"]: row for row in rt.sessions()}
        views = {depth: rt.tools(rows[depth]["key"]) for depth in (1, 2, 3, 4)}
    expected = [
        TOOLS - {"agents_list"},
        {"sessions_spawn", "sessions_yield"},
        {"sessions_spawn", "sessions_yield"},
        {"sessions_yield"},
    ]
    assert [level["listed"] for level in levels] == [level["called"] for level in levels] == expected
    assert [set(view.tools) & TOOLS for view in views.values()] == expected
    assert levels[1]["said"]["subagents"] == f"inherited tools of the spawn by {receipt.session_key}"
    last = rows[4]
    assert last["inheritedToolPolicyVersion"] == 1
    assert last["inheritedToolAllow"] == [["sessions_*", "subagents"], ["subagents", "sessions_yield"]]
    assert last["inheritedToolDeny"] == ["nothing_such", "subagents"]


@oc.agent
def maps(turn: oc.SyncTurn) -> list[Any]:
    """Looks through children that a map has made."""
    if turn.session.depth > 1:
        return seen(turn)["listed"]
    return [one.value for one in turn.map("maps", ["a", "b"])]


def test_the_children_of_a_map_take_over_what_binds_their_requester() -> None:
    with LocalRuntime(agents=[maps]) as rt:
        receipt = rt.spawn("go", "maps", tools={"allow": ["subagents"]})
        assert rt.result(receipt, timeout=30).raise_for_status().value == [{"subagents"}] * 2


@oc.agent
def by_tool(turn: oc.SyncTurn) -> Any:
    """Spawns as a model would, with lists for the child."""
    if turn.session.depth > 1:
        return seen(turn)["listed"]
    made = turn.call("sessions_spawn", task="look", tools={"allow": ["sessions_yield"]})
    [done] = turn.join([made.receipt])
    return done.result.raise_for_status().value


def test_the_tool_takes_the_same_lists() -> None:
    with LocalRuntime(agents=[by_tool]) as rt:
        assert rt.result(rt.spawn("go", "by_tool"), timeout=30).raise_for_status().value == {"sessions_yield"}


@pytest.mark.parametrize(
    ("tools", "text"),
    [
        ({"allow": []}, r"tools\.allow: it is empty"),
        ({"allow": ["  "]}, "its entries are names of tools"),
        ({"deny": [1]}, "its entries are names of tools"),
        ({"also_allow": ["x"]}, "also_allow"),
        (["x"], "tools"),
    ],
)
def test_lists_that_cannot_be_meant_are_refused_before_anything_is_made(tools: Any, text: str) -> None:
    with LocalRuntime(agents=[chain]) as rt:
        with pytest.raises(oc.ToolInputError, match=text):
            rt.spawn("0", "chain", tools=tools)
        assert rt.runs(agent="chain") == []


# ---------------------------------------------------------------------- nothing is left


@oc.agent
def lists_them(turn: oc.SyncTurn) -> list[str]:
    return list(turn.tools)


@oc.agent
async def needs_none(turn: oc.Turn) -> list[str]:
    view = await turn.tool_view()
    return [name for name in ("subagents", "read") if view.allowed(name)]


def test_a_run_that_asks_for_its_tools_fails_if_allow_lists_leave_none() -> None:
    """SPEC.md E3: instead of going on without any in silence; a program that needs none is not concerned."""
    with LocalRuntime(agents=[lists_them, needs_none], config={"tools": {"allow": ["read"]}}) as rt:
        with pytest.raises(oc.RunFailed, match=r"no tool is left to agent:lists_them:main: tools\.allow \(tools:"):
            rt.ask("lists_them", "go", timeout=30)
        assert rt.ask("needs_none", "go", timeout=30).value == ["read"]
    with LocalRuntime(agents=[lists_them], config={"tools": {"deny": ["*"]}}) as rt:
        assert rt.ask("lists_them", "go", timeout=30).value == []


# ---------------------------------------------------------------------- what people are shown


def test_the_runtime_says_which_rule_decided_each_tool() -> None:
    config = settings({"profile": "coding", "deny": ["sub*"]}, own={"alsoAllow": ["agents_list"]})
    with LocalRuntime(agents=[chain], config=config) as rt:
        view = rt.tools("Chain")
        assert (view.session_key, view.agent_id, view.depth, view.role) == ("agent:chain:main", "chain", 0, "main")
        said = {one.tool: (one.allowed, one.rule, one.path, one.entry) for one in view if one.tool in TOOLS}
        assert said == {
            "agents_list": (True, "profile", "agents.entries.chain.tools.alsoAllow", "agents_list"),
            "sessions_spawn": (True, "profile", "tools.profile", "group:sessions"),
            "sessions_yield": (True, "profile", "tools.profile", "group:sessions"),
            "subagents": (False, "global", "tools.deny", "sub*"),
        }
        assert view.to_json()["tools"][-1] == {
            "tool": "subagents",
            "allowed": False,
            "rule": "global",
            "path": "tools.deny",
            "entry": "sub*",
        }
        rt.ask("chain", "0", timeout=30)
        assert rt.tools("agent:chain:main") == view
        with pytest.raises(KeyError):
            rt.tools("agent:nobody:main")


@oc.agent
def looks_twice(turn: oc.SyncTurn) -> list[bool]:
    """Looks at its tools before and after the rules have changed."""
    place = Path(turn.text)
    found = ["subagents" in turn.tools]
    (place / "looked").touch()
    eventually((place / "changed").exists, timeout=20)
    return [*found, "subagents" in turn.tools]


def test_a_turn_keeps_the_rules_of_its_first_look_and_the_next_turn_has_the_new_ones(tmp_path: Path) -> None:
    new = load({"tools": {"deny": ["subagents"]}}, env={}).runtime_limits(cpus=1)
    with LocalRuntime(agents=[looks_twice]) as rt, ThreadPoolExecutor(1) as beside:
        asked = beside.submit(rt.ask, "looks_twice", str(tmp_path), 30)
        eventually((tmp_path / "looked").exists)
        rt._local.enter(lambda core: core.reload(new, {}, rt.name))
        assert "subagents" not in rt.tools("looks_twice")
        (tmp_path / "changed").touch()
        assert asked.result(30).value == [True, True]
        assert rt.ask("looks_twice", str(tmp_path), timeout=30).value == [False, False]


def test_what_is_denied_is_counted_by_tool_and_rule_with_the_registry() -> None:
    with LocalRuntime(agents=[chain], config=settings({"deny": ["subagents"]})) as rt:
        tally = rt._local.core.s.tally = Tally()
        rt.ask("chain", "1", timeout=30)
        counts = tally.take().counts
    blocked = {tags: count for (name, tags), count in counts.items() if name == BLOCKED}
    assert blocked == {("subagents", "global"): 2, ("agents_list", "sub-agent"): 1}
