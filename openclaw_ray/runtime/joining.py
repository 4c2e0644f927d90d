"""What somebody who joins a runtime had asked for, and what of it that runtime does not have (DESIGN.md 5).

Only what was asked for counts: a setting that is as it is without any configuration is no wish.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from openclaw_ray.config import Config, load
from openclaw_ray.core.protocol.state import AgentEntry

if TYPE_CHECKING:
    from openclaw_ray.actors.settings import RegistrySettings
    from openclaw_ray.agents.bundle import Bundle

__all__ = ["Wanted"]

_SUBAGENTS = "agents.defaults.subagents"
_PATHS = {
    "max_spawn_depth": f"{_SUBAGENTS}.maxSpawnDepth",
    "max_children": f"{_SUBAGENTS}.maxChildrenPerAgent",
    "max_concurrent": f"{_SUBAGENTS}.maxConcurrent",
    "main_lane": "agents.defaults.maxConcurrent",
    "run_timeout_seconds": f"{_SUBAGENTS}.runTimeoutSeconds",
    "turn_timeout_seconds": "agents.defaults.timeoutSeconds",
    "announce_timeout_ms": f"{_SUBAGENTS}.announceTimeoutMs",
    "archive_after_minutes": f"{_SUBAGENTS}.archiveAfterMinutes",
    "prune_after": "session.maintenance.pruneAfter",
    "inbox_max": "ray.inbox.max",
    "journal_sync": "ray.journal.sync",
    "sessions_per_tree": "ray.budgets.sessionsPerTree",
    "tokens_per_tree": "ray.budgets.tokensPerTree",
    "cost_per_tree": "ray.budgets.costPerTree",
}
_NO_WISH = ("config_rev", "max_spawn_depth_set", "global_lane")


@dataclass(frozen=True, slots=True)
class Wanted:
    """What was passed to `Runtime.start`."""

    config: Config
    bundle: Bundle | None
    state_dir: str | Path | None
    runtime_env: dict[str, Any] | None

    def differences(self, settings: RegistrySettings, there: Mapping[str, AgentEntry]) -> list[str]:
        """What the runtime does not have as it was asked for; a sentence each."""
        said = [*self._limits(settings), *self._agents(there)]
        if self.state_dir is not None and str(Path(self.state_dir).expanduser().absolute()) != settings.state_dir:
            said.append(f"its state dir is {settings.state_dir}, not {self.state_dir}")
        if self.runtime_env is not None:
            said.append("runtime_env is that of its start")
        return said

    def _limits(self, settings: RegistrySettings) -> list[str]:
        asked = self.config.runtime_limits(cpus=settings.cpus)
        unasked = load({}).runtime_limits(cpus=settings.cpus)
        said = []
        for field in fields(asked):
            wish, has = getattr(asked, field.name), getattr(settings.limits, field.name)
            if field.name == "pool_max":
                has = settings.pool_max
            if wish not in (getattr(unasked, field.name), has) and field.name not in _NO_WISH:
                said.append(f"{_path(field.name)} is {_shown(has)}, not {_shown(wish)}")
        return said

    def _agents(self, there: Mapping[str, AgentEntry]) -> list[str]:
        said = []
        default = load({})
        for code in self.bundle.agents if self.bundle is not None else ():
            entry = there.get(code.id)
            if entry is None:
                said.append(f"it has no agent {code.id!r} (add it with register)")
                continue
            if entry.hash != code.hash:
                said.append(f"its agent {code.id!r} is other code: {entry.origin}, not {code.origin}")
            wish = self.config.agent_limits(code.id)
            if wish not in (default.agent_limits(code.id), entry.limits):
                said.append(f"settings of agent {code.id!r} (agents.entries.{code.id}) are those of its start")
        return said


def _path(name: str) -> str:
    """The configuration path of a limit."""
    if name in _PATHS:
        return _PATHS[name]
    head, *rest = name.split("_")
    if head == "pool":
        head, *rest = rest
        return f"ray.pool.{head}{''.join(part.capitalize() for part in rest)}"
    return f"ray.{head}{''.join(part.capitalize() for part in rest)}"


def _shown(value: Any) -> str:
    return str(value.value if isinstance(value, Enum) else value)
