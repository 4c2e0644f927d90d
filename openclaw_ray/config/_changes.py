"""What another configuration changes, and when each change acts (SCENARIOS.md 64)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Final

from openclaw_ray.config._config import Config
from openclaw_ray.config._effective import Setting
from openclaw_ray.config._notices import not_yet
from openclaw_ray.core.limits import RuntimeLimits

__all__ = ["Change", "TakesEffect", "changes", "limits_after"]


class TakesEffect(StrEnum):
    """When a changed setting acts in a runtime that runs."""

    NOW = "now"
    """From the next decision that it bears on: the next spawn, the next start of a run, the next stop."""
    RESTART = "restart"
    """At the next start of the runtime: it is built into what runs."""
    NOT_YET = "not yet"
    """Never so far: the key is accepted and does not act yet."""


@dataclass(frozen=True, slots=True)
class Change:
    """One setting whose value in force changes.

    Attributes:
        name: as `Setting.name`.
        old: before, as people may see it; `None` if there was none.
        new: after.
        takes_effect: when.
    """

    name: str
    old: Any
    new: Any
    takes_effect: TakesEffect


_LIVE: Final = {
    "a2a.allow": "sessions",
    "a2a.enabled": "sessions",
    "a2a.maxPingPongTurns": "sessions",
    "agents.defaults.maxConcurrent": "main_lane",
    "agents.defaults.subagents.announceTimeoutMs": "announce_timeout_ms",
    "agents.defaults.subagents.archiveAfterMinutes": "archive_after_minutes",
    "agents.defaults.subagents.maxChildrenPerAgent": "max_children",
    "agents.defaults.subagents.maxConcurrent": "max_concurrent",
    "agents.defaults.subagents.runTimeoutSeconds": "run_timeout_seconds",
    "ray.maxActiveSessions": "max_active_sessions",
    "ray.pingPongWithSubagents": "ping_pong_with_subagents",
    "ray.pool.idleSeconds": "pool_idle_seconds",
    "ray.pool.prewarm": "pool_prewarm",
    "ray.pool.reuse": "pool_reuse",
    "ray.stopGraceSeconds": "stop_grace_seconds",
    "session.maintenance.pruneAfter": "prune_after",
    "tools.sessions.visibility": "sessions",
    **{
        f"tools.sessions_spawn.attachments.{key}": "attachments"
        for key in ("enabled", "maxTotalBytes", "maxFiles", "maxFileBytes", "retainOnSessionKeep")
    },
}
"""Settings of the whole runtime that can change while it runs, and what they are in `RuntimeLimits`."""
_OF_REQUESTERS: Final = (
    "subagents.allowAgents",
    "subagents.requireAgentId",
    "subagents.delegationMode",
    "subagents.model",
    "subagents.thinking",
    "model",
    "sandbox.mode",
    "thinkingDefault",
    "workspace",
)
_OF_TOOLS: Final = ("tools.",)
"""Rules of tools, `RuntimeLimits.tools`: a turn that runs keeps those of its first look at them."""
_OF_AGENTS: Final = (*_OF_REQUESTERS, *_OF_TOOLS, "ray.", "agentDir")
"""Settings of an agent that can; all of them are in `AgentLimits`."""
_OF_CREDENTIALS: Final = ("auth.", "ray.auth.", "secrets.")
"""Settings of all agents' credentials; they are in `AgentLimits`, too."""
_THREADS: Final = ".threadBindings."
"""Thread bindings, general or of a channel: `RuntimeLimits.threads`."""
_RATES: Final = "ray.limits."
"""Rate limits, by name: `RuntimeLimits.rates`."""
_ASIDE: Final = frozenset({"agents.ids", "ray.limits.unlock"})
"""What nothing is built from: they act by way of others."""


def changes(old: Config, new: Config) -> tuple[Change, ...]:
    """The settings whose values in force differ, in the order of the model. Pure."""
    before, after = _values(old), _values(new)
    found = []
    for name in dict.fromkeys((*before, *after)):
        was, now = before.get(name), after.get(name)
        if (was and was[1]) == (now and now[1]):
            continue
        if name.startswith("agent:") and _inherited(was) and _inherited(now):
            continue  # told once, with the defaults
        shown = [None if pair is None else pair[0].value for pair in (was, now)]
        found.append(Change(name, shown[0], shown[1], _when(name)))
    return tuple(found)


def limits_after(running: RuntimeLimits, new: RuntimeLimits) -> RuntimeLimits:
    """The limits of a runtime that runs, with what can change in it taken from ``new``."""
    live = {name: getattr(new, name) for name in (*_LIVE.values(), "config_rev", "rates", "threads", "tools")}
    return replace(running, **live)


def _values(config: Config) -> dict[str, tuple[Setting, Any]]:
    """Name -> what people may see, and the value itself."""
    hidden = [one.value for one in config.settings(shown=False)]
    return {one.name: (one, value) for one, value in zip(config.settings(), hidden, strict=True)}


def _inherited(pair: tuple[Setting, Any] | None) -> bool:
    """Whether an agent's value comes from the defaults, or there is none."""
    return pair is None or pair[0].origin == "default" or pair[0].origin.startswith("agents.defaults.")


def _when(name: str) -> TakesEffect:
    if not_yet(tuple(_steps(name))):
        return TakesEffect.NOT_YET
    place, _, rest = name.partition(".")
    if place.startswith("agent:"):
        live = rest.startswith(_OF_AGENTS)
    else:
        of_defaults = name.removeprefix("agents.defaults.").startswith(_OF_REQUESTERS)
        by_place = name.startswith((*_OF_TOOLS, *_OF_CREDENTIALS, _RATES))
        by_place = by_place or _THREADS in name
        live = name in _LIVE or name in _ASIDE or by_place or of_defaults
    return TakesEffect.NOW if live else TakesEffect.RESTART


def _steps(name: str) -> Iterator[str]:
    """The path of a setting's key by its name."""
    head, _, rest = name.partition(".")
    if head.startswith("agent:"):
        yield from ("agents", "entries", head.removeprefix("agent:"))
    elif head.startswith("channel:"):
        yield "channels"
    elif head == "a2a":
        yield from ("tools", "agentToAgent")
    else:
        yield head
    yield from rest.split(".")
