"""A checked configuration, and the plain records that the actors get of it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from openclaw_ray.config._agent_settings import agent_settings
from openclaw_ray.config._auth import auth_rules
from openclaw_ray.config._effective import (
    A2A,
    DEFAULT,
    Bindings,
    Setting,
    a2a,
    a2a_path,
    settings,
    thread_bindings,
    thread_rules,
)
from openclaw_ray.config._fields import plain
from openclaw_ray.config._model import AgentEntry, Root
from openclaw_ray.config._notices import Notice
from openclaw_ray.config._policy import agent_tools, tool_rules
from openclaw_ray.config._types import seconds_of
from openclaw_ray.core.attachments import AttachmentLimits
from openclaw_ray.core.keys import normalise_agent_id
from openclaw_ray.core.limits import AgentLimits, Compat, RuntimeLimits
from openclaw_ray.core.rate_limits import LimitRule
from openclaw_ray.core.visibility import SessionRules

__all__ = ["Config"]

_TIMER_MAX: Final = 2**31 - 1  # milliseconds; what OpenClaw's timers can take (SPEC.md A1)
_DEFAULT_AGENT: Final = "main"


@dataclass(frozen=True)
class Config:
    """A configuration that has been checked. Made by `load`; frozen, picklable.

    Attributes:
        root: the settings that we implement, as a frozen model.
        tolerated: paths of real OpenClaw keys that are there but not implemented, sorted.
        source: where it came from: a path, ``<text>``, ``<dict>`` or ``<defaults>``.
        notices: what is worth to be told: keys that do not act yet, retired ones, variables that are not needed.
    """

    root: Root
    tolerated: tuple[str, ...] = ()
    source: str = "<defaults>"
    notices: tuple[Notice, ...] = ()

    @cached_property
    def rev(self) -> str:
        """12 hex digits that are the same for the same effective settings."""
        in_force = {one.name: one.value for one in self.settings(shown=False)}
        text = json.dumps(in_force, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:12]

    @property
    def compat(self) -> Compat:
        """The generation of OpenClaw that the defaults follow."""
        return self.root.ray.compat

    @property
    def max_spawn_depth(self) -> int:
        """A session at this depth is a leaf: what is written, else 5, under ``ray.compat: "2026.7"`` 1."""
        depth = self.root.agents.defaults.subagents.max_spawn_depth
        return depth if depth is not None else 1 if self.compat is Compat.V2026_7 else 5

    @cached_property
    def a2a(self) -> A2A:
        """The agent-to-agent settings in force, both places joined."""
        return a2a(self.root)

    def thread_bindings(self, channel: str | None = None, account: str | None = None) -> Bindings:
        """The thread bindings in force: of the account, else of the channel, else of ``session``."""
        return thread_bindings(self.root, channel, account)

    def settings(self, *, agent: str | None = None, shown: bool = True) -> Iterator[Setting]:
        """Every value in force, with where it is set.

        Args:
            agent: only what holds for this agent, named in the configuration or not.
            shown: whether people see them; then a value from the environment stays ``${NAME}``.

        Raises:
            ValueError: ``agent`` is not an agent id.
        """
        return settings(self, agent=None if agent is None else _agent_id(agent), shown=shown)

    @cached_property
    def agent_ids(self) -> tuple[str, ...]:
        """`named_agents`, or the implicit ``main`` if there are none (SPEC.md A2)."""
        return self.named_agents or (_DEFAULT_AGENT,)

    @cached_property
    def named_agents(self) -> tuple[str, ...]:
        """Normalised ids of the agents that it names, in its order; agents passed in code come besides."""
        return tuple(self._rosters)

    @cached_property
    def default_agent(self) -> str:
        """The agent that is meant when none is named: the marked one, else ``main``, else the only one."""
        if self._marked:
            return self._marked[0]
        only = len(self.agent_ids) == 1
        return self.agent_ids[0] if only else _DEFAULT_AGENT

    @property
    def default_origin(self) -> str:
        """Where the default agent is marked; ``default`` if it is not."""
        return f"{self.own(self._marked[0], 'default')[1]}.default" if self._marked else DEFAULT

    @cached_property
    def _marked(self) -> list[str]:
        return [name for name in self._rosters if self.own(name, "default")[0]]

    def agent_limits(self, agent_id: str) -> AgentLimits:
        """What holds for one agent; for one that is not named in it, the defaults.

        Raises:
            ValueError: ``agent_id`` is not an agent id.
        """
        name = _agent_id(agent_id)
        allow, allow_path = self._policy(name, "allow_agents", "allowAgents")
        require, require_path = self._policy(name, "require_agent_id", "requireAgentId")
        ask = {part: self.own(name, "ray", part)[0] for part in ("num_cpus", "num_gpus", "memory")}
        custom = self.own(name, "ray", "resources")[0] or {}
        scheduling = self.own(name, "ray", "scheduling")[0]
        return AgentLimits(
            agent_id=name,
            configured=name in self._rosters,
            allow_agents=None if allow is None else tuple(plain(allow)),
            allow_path=allow_path,
            require_agent_id=bool(require),
            require_path=require_path,
            workspace=plain(self.own(name, "workspace")[0] or self.root.agents.defaults.workspace),
            agent_dir=plain(self.own(name, "agent_dir")[0]),
            resources={
                **custom,
                **{part: float(amount) for part, amount in ask.items() if amount is not None},
            },
            scheduling=plain(scheduling),
            tools=agent_tools(self, name),
            auth=auth_rules(self, name),
            settings=agent_settings(self.root.agents.defaults, self.own, name),
        )

    @property
    def secret_env(self) -> tuple[str, ...]:
        """Names of the environment that programs of ``secrets.providers`` are passed and that look like credentials."""
        from openclaw_ray.core.redaction import is_secret_name

        passed = (str(name) for one in self.root.secrets.providers.values() for name in one.pass_env)
        return tuple(sorted({name for name in passed if is_secret_name(name)}))

    def auth_stores(self, agents: Iterable[str] = ()) -> tuple[str, ...]:
        """Paths of the credential stores of the agents that it names, and of ``agents``; whether they are there or not.

        Raises:
            ValueError: one of ``agents`` is not an agent id.
        """
        names = dict.fromkeys((*self.agent_ids, self.default_agent, *(_agent_id(agent) for agent in agents)))
        rules = [found for name in names if (found := auth_rules(self, name)) is not None]
        paths = dict.fromkeys(path for one in rules for path in (one.own, one.shared) if path is not None)
        return tuple(paths)

    def runtime_limits(self, *, cpus: int, compat: Compat | None = None) -> RuntimeLimits:
        """What holds for the runtime as a whole.

        Args:
            cpus: CPUs of the cluster; the main lane's default width follows them.
            compat: the bundle whose widths count, of a runtime that runs; this configuration's own if not given.
        """
        defaults, ray = self.root.agents.defaults, self.root.ray
        children, old = defaults.subagents, (compat or ray.compat) is Compat.V2026_7
        return RuntimeLimits(
            max_spawn_depth=self.max_spawn_depth,
            max_spawn_depth_set=children.max_spawn_depth is not None,
            max_children=children.max_children_per_agent,
            max_concurrent=children.max_concurrent,
            global_lane=old,
            main_lane=defaults.max_concurrent or (max(8, 4 * cpus) if old else min(max(cpus, 8), 16)),
            run_timeout_seconds=children.run_timeout_seconds,
            turn_timeout_seconds=defaults.timeout_seconds,
            announce_timeout_ms=min(children.announce_timeout_ms, _TIMER_MAX),
            archive_after_minutes=children.archive_after_minutes,
            prune_after=seconds_of(self.root.session.maintenance.prune_after),
            pool_max=ray.pool.max,
            pool_prewarm=ray.pool.prewarm,
            pool_reuse=ray.pool.reuse,
            pool_idle_seconds=ray.pool.idle_seconds,
            pool_park_seconds=ray.pool.park_seconds,
            pool_max_growth_mb=ray.pool.max_growth_mb,
            pool_scheduling=plain(ray.pool.scheduling),
            pool_place_seconds=ray.pool.place_seconds,
            max_active_sessions=ray.max_active_sessions,
            stop_grace_seconds=ray.stop_grace_seconds,
            client_lease_seconds=ray.client_lease_seconds,
            registry_timeout_seconds=ray.registry_timeout_seconds,
            recovery=ray.recovery,
            inbox_max=ray.inbox.max,
            journal_sync=ray.journal.sync,
            logs=ray.logs,
            ping_pong_with_subagents=ray.ping_pong_with_subagents,
            rates=tuple(
                LimitRule(name, one.rate, one.per, one.burst, one.concurrent) for name, one in ray.limits.named.items()
            ),
            sessions_per_tree=ray.budgets.sessions_per_tree,
            tokens_per_tree=ray.budgets.tokens_per_tree,
            cost_per_tree=ray.budgets.cost_per_tree,
            compat=ray.compat,
            config_rev=self.rev,
            tools=tool_rules(self.root.tools),
            sessions=self._session_rules(),
            attachments=self._attachments,
            threads=thread_rules(self.root),
        )

    def _session_rules(self) -> SessionRules:
        """Which sessions may see and use each other (SPEC.md A3)."""
        joined, root = self.a2a, self.root
        return SessionRules(
            visibility=root.tools.sessions.visibility,
            sandbox_sees=root.agents.defaults.sandbox.session_tools_visibility,
            a2a_enabled=joined.enabled,
            a2a_allow=None if joined.allow is None else tuple(plain(joined.allow)),
            max_ping_pong_turns=joined.max_ping_pong_turns,
            enabled_path=a2a_path(root, "enabled"),
            allow_path=a2a_path(root, "allow"),
            turns_path=a2a_path(root, "max_ping_pong_turns"),
        )

    @property
    def _attachments(self) -> AttachmentLimits | None:
        written = self.root.tools.sessions_spawn.attachments
        if not written.enabled:
            return None
        return AttachmentLimits(
            max_total_bytes=written.max_total_bytes,
            max_files=written.max_files,
            max_file_bytes=written.max_file_bytes,
            retain=written.retain_on_session_keep,
        )

    # ----------------------------------------------------------------------- who says what of an agent

    @cached_property
    def _rosters(self) -> dict[str, list[tuple[str, AgentEntry]]]:
        """Agent id -> (path, entry) of each place that names it, the one that wins first."""
        found: dict[str, list[tuple[str, AgentEntry]]] = {}
        for agent_id, path, entry in self._entries():
            found.setdefault(normalise_agent_id(agent_id) or agent_id, []).append((path, entry))
        return found

    def entries(self) -> Iterator[tuple[str, AgentEntry]]:
        """(path, entry) of each place that names an agent."""
        return ((path, entry) for _, path, entry in self._entries())

    def _entries(self) -> Iterator[tuple[str, str, AgentEntry]]:
        for key, entry in self.root.agents.entries.items():
            yield key, f"agents.entries.{key}", entry
        for at, listed in enumerate(self.root.agents.listed):
            yield listed.id, f"agents.list[{at}]", listed

    def own(self, agent_id: str, *fields: str) -> tuple[Any, str]:
        """An agent's own value of a field and the path of its entry; (`None`, ``""``) if it is not set."""
        for path, entry in self._rosters.get(agent_id, ()):
            value: Any = entry
            for field in fields:
                if field not in value.model_fields_set:
                    break
                value = getattr(value, field)
            else:
                return value, path
        return None, ""

    def _policy(self, agent_id: str, field: str, key: str) -> tuple[Any, str]:
        """A setting of ``subagents``: the agent's own, else the default; and where that is set."""
        value, path = self.own(agent_id, "subagents", field)
        if value is None:
            return getattr(self.root.agents.defaults.subagents, field), f"agents.defaults.subagents.{key}"
        return value, f"{path}.subagents.{key}"


def _agent_id(agent_id: str) -> str:
    name = normalise_agent_id(agent_id)
    if name is None:
        raise ValueError(f"not an agent id: {agent_id!r}")
    return name
