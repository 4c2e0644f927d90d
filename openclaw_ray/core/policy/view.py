"""What one session may call: the one truth for listing, prompt and dispatch (SPEC.md E3, N8)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from openclaw_ray.core.compact import compact
from openclaw_ray.core.errors_tools import NoToolsLeft, ToolDenied
from openclaw_ray.core.key_words import RoleName
from openclaw_ray.core.keys import role as role_at
from openclaw_ray.core.policy.inherited import Inherited
from openclaw_ray.core.policy.names import tool_name
from openclaw_ray.core.policy.pipeline import Rule, Step, pipeline
from openclaw_ray.core.policy.rules import Sender, ToolRules, ToolSettings

__all__ = ["Decision", "ToolView", "effective_tools"]


@dataclass(frozen=True, slots=True)
class Decision:
    """What became of one tool.

    Attributes:
        tool: its name, as it was asked for.
        allowed: whether it may be called.
        rule: the step that decided: a word of `Rule`; of an allowed tool, the last one that names it.
        path: the configuration key that decided; empty for what is built in, or if nothing was said.
        entry: the entry of that list which means the tool; empty if it is on none.
    """

    tool: str
    allowed: bool
    rule: str
    path: str = ""
    entry: str = ""

    def to_json(self) -> dict[str, Any]:
        """JSON form, camelCase."""
        return {
            "tool": self.tool,
            "allowed": self.allowed,
            "rule": self.rule,
            "path": self.path or None,
            "entry": self.entry or None,
        }


@compact
@dataclass(frozen=True, slots=True)
class ToolView:
    """The tools of one session, as the rules were when it was made. It travels, and decides any name by itself.

    Attributes:
        session_key: whose tools.
        agent_id: its agent.
        depth: its depth.
        role: ``main``, ``orchestrator`` or ``leaf``, as the rules count it.
        steps: the steps that have an opinion, in their order.
        names: the tools that there are, sorted by name, allowed or not.
    """

    session_key: str
    agent_id: str
    depth: int
    role: str
    steps: tuple[Step, ...] = ()
    names: tuple[str, ...] = ()

    def decide(self, tool: str) -> Decision:
        """What becomes of a tool, whether or not it is among `names`."""
        name = tool_name(tool)
        found = Decision(tool, True, Rule.NONE.value)
        for step in self.steps:
            denied = step.denying(name)
            if denied is not None:
                return Decision(tool, False, step.rule.value, denied[0].path, denied[1] or "")
            named = step.allowing(name)
            if named is not None:
                found = Decision(tool, True, step.rule.value, named[0].path, named[1])
        return found

    def allowed(self, tool: str) -> bool:
        """Whether this tool may be called."""
        name = tool_name(tool)
        return all(step.denying(name) is None for step in self.steps)

    def check(self, tool: str) -> None:
        """Let a call pass.

        Raises:
            ToolDenied: with the rule that decided.
        """
        found = self.decide(tool)
        if not found.allowed:
            raise ToolDenied(tool, found.rule, found.path, found.entry, self.session_key)

    def listed(self, tools: Iterable[str]) -> list[str]:
        """Those of the ``tools`` that may be called, in their order.

        Raises:
            NoToolsLeft: there are tools, an allow list was set, and nothing is left: nobody wants that in silence.
        """
        there = list(tools)
        kept = [tool for tool in there if self.allowed(tool)]
        if there and not kept and (paths := self.allow_paths):
            raise NoToolsLeft(self.session_key, paths, tuple(there))
        return kept

    @property
    def allow_paths(self) -> tuple[str, ...]:
        """Where allow lists are set; profiles and built-in lists are none."""
        profiles = (Rule.PROFILE, Rule.PROVIDER_PROFILE)
        paths = (step.allow[0].path for step in self.steps if step.allow and step.rule not in profiles)
        return tuple(dict.fromkeys(path for path in paths if path))

    @property
    def decisions(self) -> tuple[Decision, ...]:
        """What becomes of each of `names`."""
        return tuple(map(self.decide, self.names))

    @property
    def tools(self) -> tuple[str, ...]:
        """Those of `names` that may be called."""
        return tuple(filter(self.allowed, self.names))

    def __iter__(self) -> Iterator[Decision]:
        return iter(self.decisions)

    def __contains__(self, tool: object) -> bool:
        return isinstance(tool, str) and tool in self.names and self.allowed(tool)

    def to_json(self) -> dict[str, Any]:
        """JSON form, camelCase."""
        return {
            "sessionKey": self.session_key,
            "agentId": self.agent_id,
            "depth": self.depth,
            "role": self.role,
            "tools": [decision.to_json() for decision in self.decisions],
        }


def effective_tools(
    rules: ToolRules | None,
    own: ToolSettings | None,
    *,
    agent_id: str,
    depth: int,
    max_spawn_depth: int,
    universe: Iterable[str],
    session_key: str = "",
    role: str | None = None,
    sandboxed: bool = False,
    provider: str | None = None,
    model: str | None = None,
    sender: Sender | None = None,
    senders: Sequence[Sender] = (),
    inherited: Inherited | None = None,
) -> ToolView:
    """The tools of one session. Pure.

    Args:
        rules: ``tools``, `None` if nothing is set.
        own: ``tools`` of the agent.
        agent_id: the session's agent.
        depth: its depth; above 0 the sub-agent layer counts.
        max_spawn_depth: the cap, as it now is.
        universe: the tools that there are.
        session_key: whose tools.
        role: as it was settled at the spawn; if not given, what depth and cap now say (SPEC.md A6, 12).
        sandboxed: it runs in a sandbox.
        provider, model: of the model in use.
        sender: who wrote what its turn answers; `None` for a turn that nobody wrote to.
        senders: who else is behind the turn: their lists hold, and so does the snapshot.
        inherited: what it was spawned with.
    """
    counted = role or role_at(depth, max_spawn_depth).role
    steps = pipeline(
        rules,
        own,
        subagent=depth > 0,
        leaf=depth > 0 and counted == RoleName.LEAF,
        sandboxed=sandboxed,
        provider=provider,
        model=model,
        sender=sender,
        senders=senders,
        inherited=inherited,
    )
    return ToolView(session_key, agent_id, depth, str(counted), steps, tuple(sorted(universe)))
