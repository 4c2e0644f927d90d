"""The steps that a tool has to get through, in their order (SPEC.md E3).

1. profile, with ``alsoAllow``: the agent's own of each, else the global one
2. the provider's profile, in the same way
3. global lists   4. the provider's   5. the agent's   6. the agent's for the provider
7. the sender's: the agent's match, even an empty one, else the global match; that of each, if several are behind it
8. the sandbox gate   9. the sub-agent layer   10. what was inherited at the spawn

Each step can only remove. In a step ``deny`` wins; an ``allow`` that is not empty keeps what it means alone. Groups and
channels have a place between 6 and 7 as soon as there are any.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from openclaw_ray.core.compact import compact
from openclaw_ray.core.policy.inherited import SNAPSHOT_VERSION, Inherited, Origin
from openclaw_ray.core.policy.names import PROFILES, entry_for, names_in
from openclaw_ray.core.policy.rules import Names, ProviderRules, Sender, ToolLists, ToolRules, ToolSettings

__all__ = ["Rule", "Step", "pipeline", "sender_lists"]


class Rule(StrEnum):
    """The steps by name."""

    PROFILE = "profile"
    """``tools.profile``, or the agent's own."""
    PROVIDER_PROFILE = "provider profile"
    """The profile for the provider of the model."""
    GLOBAL = "global"
    """``tools``."""
    PROVIDER = "provider"
    """``tools.byProvider``."""
    AGENT = "agent"
    """``tools`` of the agent."""
    AGENT_PROVIDER = "agent provider"
    """``tools.byProvider`` of the agent."""
    SENDER = "sender"
    """``toolsBySender``, of the agent or global."""
    SANDBOX = "sandbox"
    """The gate of sandboxed sessions."""
    SUBAGENT = "sub-agent"
    """What sub-agents, or leaves among them, do not have; and ``tools.subagents.tools``."""
    INHERITED = "inherited"
    """What the session was spawned with."""
    NONE = "none"
    """No step has an opinion: allowed."""


@compact
@dataclass(frozen=True, slots=True)
class Step:
    """One step.

    Attributes:
        rule: which.
        allow: lists of which one must mean the tool; none for no opinion.
        deny: lists of which none may mean it.
    """

    rule: Rule
    allow: tuple[Names, ...] = ()
    deny: tuple[Names, ...] = ()

    def denying(self, tool: str) -> tuple[Names, str | None] | None:
        """The list that takes ``tool`` away, and its entry; the entry is `None` where the tool is only not allowed."""
        for names in self.deny:
            entry = entry_for(tool, names.entries)
            if entry is not None:
                return names, entry
        return None if not self.allow or self.allowing(tool) else (self.allow[0], None)

    def allowing(self, tool: str) -> tuple[Names, str] | None:
        """The list that means ``tool``, and its entry."""
        for names in self.allow:
            entry = entry_for(tool, names.entries)
            if entry is None and tool == "apply_patch":  # who may write may write by patches
                entry = entry_for("write", names.entries)
            if entry is not None:
                return names, entry
        return None


_NO_SUBAGENT: Final = Names(
    (
        "gateway",
        "agents_list",
        "session_status",
        "automations",
        "message",
        "sessions_send",
        "progress_card",
        "openclaw",
        "conversations_*",
    )
)
"""What no sub-agent has; no list lifts it (SPEC.md E2)."""
_NO_LEAF: Final = Names(
    ("sessions_spawn", "subagents", "sessions_list", "sessions_history", "sessions_search"),
    "agents.defaults.subagents.maxSpawnDepth",
)
"""What a session at the depth cap does not have."""
_SANDBOX_ALLOW: Final = Names(
    (
        "exec",
        "process",
        "read",
        "ls",
        "write",
        "edit",
        "apply_patch",
        "view_image",
        "sessions_list",
        "sessions_history",
        "sessions_search",
        "sessions_send",
        "sessions_spawn",
        "sessions_yield",
        "subagents",
        "session_status",
    )
)
_CHANNELS: Final = ("telegram", "whatsapp", "discord", "irc", "googlechat", "slack", "signal", "imessage")
_SANDBOX_DENY: Final = (
    "browser",
    "canvas",
    "computer",
    "mobile_ui",
    "nodes",
    "automations",
    "gateway",
    *_CHANNELS,
)
_NOTHING: Final = ToolSettings()


def pipeline(
    rules: ToolRules | None,
    own: ToolSettings | None,
    *,
    subagent: bool,
    leaf: bool,
    sandboxed: bool = False,
    provider: str | None = None,
    model: str | None = None,
    sender: Sender | None = None,
    senders: Sequence[Sender] = (),
    inherited: Inherited | None = None,
) -> tuple[Step, ...]:
    """The steps of one session that have an opinion, in their order.

    Args:
        rules: of all agents; `None` if nothing is set.
        own: of the session's agent.
        subagent: the session was spawned.
        leaf: it is at the depth cap, as the configuration now is.
        sandboxed: it runs in a sandbox.
        provider, model: of the model in use.
        sender: who wrote what its turn answers.
        senders: who else is behind the turn, without its being an answer to them.
        inherited: what it was spawned with.
    """
    every, mine = (rules or ToolRules()).settings, own or _NOTHING
    theirs, own_theirs = _provider(every, provider, model), _provider(mine, provider, model)
    behind = (*(() if sender is None else (sender,)), *senders)
    steps = [
        _profile(Rule.PROFILE, mine, every),
        _profile(Rule.PROVIDER_PROFILE, own_theirs, theirs),
        _lists(Rule.GLOBAL, every.lists),
        _lists(Rule.PROVIDER, theirs.lists),
        _lists(Rule.AGENT, mine.lists),
        _lists(Rule.AGENT_PROVIDER, own_theirs.lists),
        *(_lists(Rule.SENDER, sender_lists(rules, own, one) or ToolLists()) for one in behind),
        *([_sandbox(every.sandbox, mine.sandbox)] if sandboxed else ()),
        *(_subagent(rules.subagents if rules is not None else ToolLists(), leaf) if subagent else ()),
        *(_layers(inherited, sender) if inherited is not None else ()),
    ]
    return tuple(step for step in steps if step.allow or step.deny)


def sender_lists(rules: ToolRules | None, own: ToolSettings | None, sender: Sender) -> ToolLists | None:
    """What is said of a sender; an agent's word takes the place of the global one, even an empty one (SPEC.md A4)."""
    for settings in (own, rules.settings if rules is not None else None):
        if settings is None:
            continue
        said = dict(settings.by_sender)
        match = next((key for key in sender.matches() if key in said), None)
        if match is not None:
            return said[match]
    return None


# --------------------------------------------------------------------------- the steps


def _some(names: Names | None) -> tuple[Names, ...]:
    return (names,) if names is not None and names.entries else ()


def _lists(rule: Rule, lists: ToolLists) -> Step:
    """``alsoAllow`` alone does not narrow."""
    allow = _some(lists.allow)
    return Step(rule, (*allow, *_some(lists.also_allow)) if allow else (), _some(lists.deny))


def _profile(rule: Rule, own: ToolSettings | ProviderRules, every: ToolSettings | ProviderRules) -> Step:
    chosen = own if own.profile is not None else every
    path = chosen.path if isinstance(chosen, ProviderRules) else chosen.profile_path
    kept = PROFILES.get(chosen.profile or "", ())
    also = own.lists.also_allow if own.lists.also_allow is not None else every.lists.also_allow
    return Step(rule, (Names(kept, path), *_some(also))) if kept else Step(rule)


def _provider(settings: ToolSettings, provider: str | None, model: str | None) -> ProviderRules:
    """The most exact entry alone counts."""
    said = {rules.key: rules for rules in settings.by_provider}
    name = (provider or "").strip().lower()
    exact = f"{name}/{(model or '').strip().lower()}"
    return said.get(exact) or said.get(name) or ProviderRules("")


def _sandbox(every: ToolLists, own: ToolLists) -> Step:
    """Each list of an agent's takes the place of the global one; what is named is not in the built-in deny list."""
    allow = own.allow if own.allow is not None else every.allow
    also = own.also_allow if own.also_allow is not None else every.also_allow
    deny = own.deny if own.deny is not None else every.deny
    if deny is None:
        lifted = names_in([entry for names in (*_some(allow), *_some(also)) for entry in names.entries])
        deny = Names(tuple(name for name in _SANDBOX_DENY if name not in lifted))
    kept = (_SANDBOX_ALLOW,) if allow is None else _some(allow)
    return Step(Rule.SANDBOX, (*kept, *_some(also)) if kept else (), _some(deny))


def _subagent(lists: ToolLists, leaf: bool) -> Iterator[Step]:
    yield Step(Rule.SUBAGENT, deny=(_NO_SUBAGENT, _NO_LEAF) if leaf else (_NO_SUBAGENT,))
    yield _lists(Rule.SUBAGENT, lists)


def _layers(inherited: Inherited, sender: Sender | None) -> Sequence[Step]:
    if inherited.version != SNAPSHOT_VERSION:
        return [Step(Rule.INHERITED, deny=(Names(("*",), f"snapshot of version {inherited.version}"),))]
    steps = []
    for layer in inherited.layers:
        if sender is not None and layer.origin is Origin.SENDER:
            continue
        path = f"{'tools of the spawn' if layer.origin is Origin.SPAWN else 'sender'} by {layer.source}"
        steps.append(_lists(Rule.INHERITED, ToolLists(Names(layer.allow, path), None, Names(layer.deny, path))))
    return steps
