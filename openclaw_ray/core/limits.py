"""The limits and settings that registry, pool and sessions work with: plain records, made from a
configuration.

They are all that an actor gets to see of the configuration (DESIGN.md 11): frozen, picklable, and free of
pydantic, which would cost every session process some megabytes. `openclaw_ray.config.Config` makes them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from openclaw_ray.core.auth._rules import AuthRules
from openclaw_ray.core.compact import grown
from openclaw_ray.core.policy.rules import ToolRules, ToolSettings
from openclaw_ray.core.rate_limits import LimitRule
from openclaw_ray.core.thread_rules import ThreadRules
from openclaw_ray.core.visibility import SessionRules

if TYPE_CHECKING:
    from openclaw_ray.core.attachments import AttachmentLimits

__all__ = [
    "AgentLimits",
    "AgentSettings",
    "Compat",
    "JournalSync",
    "Logs",
    "PoolReuse",
    "Recovery",
    "RuntimeLimits",
]

class Compat(StrEnum):
    """Which generation of OpenClaw the defaults follow: ``ray.compat`` (DESIGN.md 11)."""

    V2026_9 = "2026.9"
    """Depth 5, a lane for each spawning session, current policy decides, silence settles nothing."""
    V2026_7 = "2026.7"
    """Depth 1, one global ``subagent`` lane, the role of the spawn stays, ``NO_REPLY`` suppresses."""


class PoolReuse(StrEnum):
    """Who may use a process after somebody else: ``ray.pool.reuse``."""

    CLASS = "class"
    """Sessions of one re-use class: same code bundle, credentials, sandbox and resources."""
    AGENT = "agent"
    """Sessions of the same agent only."""
    TREE = "tree"
    """Sessions of the same tree only."""
    NEVER = "never"
    """Nobody: each session gets a new process; the only setting that is a security boundary."""


class Recovery(StrEnum):
    """What a start makes of interrupted runs: ``ray.recovery`` (DESIGN.md 10)."""

    RESUME = "resume"
    """Agents that say they can get one synthetic message; others end as interrupted."""
    FINALIZE = "finalize"
    """Nothing is resumed; the requesters hear of the interruption."""


class JournalSync(StrEnum):
    """What a committed step survives: ``ray.journal.sync``."""

    NORMAL = "normal"
    """The death of any process."""
    FULL = "full"
    """Power loss too, at the price of a disk flush a step."""


class Logs(StrEnum):
    """The form of sessions' logs: ``ray.logs``."""

    TEXT = "text"
    """As it was written."""
    JSON = "json"
    """A JSON object a line, with session key, run id and root key."""


@grown
@dataclass(frozen=True, slots=True)
class RuntimeLimits:
    """What holds for the whole runtime. Sources: SPEC.md A1 and A2, DESIGN.md 11.

    Attributes:
        max_spawn_depth: a session at this depth is a leaf; roots are at 0.
        max_spawn_depth_set: True if the configuration names it; otherwise it may be lowered to what the pool
            holds (PROTOCOL.md 3.3).
        max_children: active direct children of one session.
        max_concurrent: width of the lane in which children run.
        global_lane: True if that lane is one for the whole runtime, False if each spawning session has its
            own.
        main_lane: width of the lane in which the first sessions of the roots run.
        run_timeout_seconds: default timeout of spawned runs; 0 is none.
        turn_timeout_seconds: timeout of other turns; 0 is none.
        announce_timeout_ms: milliseconds for one hand-off of a completion.
        archive_after_minutes: delay after which an ended session is archived; 0 is never.
        archive_minute: seconds that a minute of it has; tests make it short.
        prune_after: seconds after its end for which a session is kept, and after its archiving its transcript's file.
        pool_max: most session actors; `None` is what memory allows.
        pool_prewarm: session actors started with the runtime; `None` is min(2 × CPUs, pool_max).
        pool_reuse: who may use a process after somebody else.
        pool_idle_seconds: how long an idle actor stays.
        pool_park_seconds: how long a yielded session keeps its actor.
        pool_max_growth_mb: megabytes of growth at which an actor is retired.
        max_active_sessions: turns that run at once in the whole runtime; `None` is no cap.
        stop_grace_seconds: from the request to stop to the kill.
        client_lease_seconds: silence after which a client counts as gone.
        registry_timeout_seconds: silence of the registry after which programs hear of it.
        recovery: what a start makes of interrupted runs.
        inbox_max: messages queued per session.
        journal_sync: what a committed step survives.
        ping_pong_with_subagents: whether a sub-agent takes part in the ping-pong of a send.
        sessions_per_tree, tokens_per_tree, cost_per_tree: budgets of one tree; `None` is none.
        compat: generation of the defaults.
        rates: rate limits that sessions share.
        config_rev: short hash of the effective configuration; equal configurations have equal ones.
        sessions: which sessions may see and use each other, and how long two of them talk.
        tools: rules of the tools of all agents; `None` if there are none.
        threads: when conversations are bound to sessions, and for how long.
        attachments: bounds of what a spawn may hand on as files; `None` where that is not enabled.
        logs: the form of sessions' logs.
        pool_scheduling: where processes go whose agents do not say it, see `openclaw_ray.core.placement`.
        pool_place_seconds: how long what no node can hold is waited for before it is refused.
    """

    max_spawn_depth: int = 5
    max_spawn_depth_set: bool = False
    max_children: int = 5
    max_concurrent: int = 8
    global_lane: bool = False
    main_lane: int = 8
    run_timeout_seconds: int = 0
    turn_timeout_seconds: int = 172_800
    announce_timeout_ms: int = 120_000
    archive_after_minutes: int = 60
    archive_minute: float = 60.0
    prune_after: float = 30 * 86_400.0
    pool_max: int | None = None
    pool_prewarm: int | None = None
    pool_reuse: PoolReuse = PoolReuse.CLASS
    pool_idle_seconds: float = 30.0
    pool_park_seconds: float = 2.0
    pool_max_growth_mb: float = 64.0
    max_active_sessions: int | None = None
    stop_grace_seconds: float = 2.0
    client_lease_seconds: float = 15.0
    registry_timeout_seconds: float = 30.0
    recovery: Recovery = Recovery.RESUME
    inbox_max: int = 100
    journal_sync: JournalSync = JournalSync.NORMAL
    ping_pong_with_subagents: bool = True
    sessions_per_tree: int | None = None
    tokens_per_tree: int | None = None
    cost_per_tree: float | None = None
    compat: Compat = Compat.V2026_9
    config_rev: str = ""
    attachments: AttachmentLimits | None = None
    rates: tuple[LimitRule, ...] = ()
    sessions: SessionRules = field(default_factory=SessionRules)
    tools: ToolRules | None = None
    threads: ThreadRules = field(default_factory=ThreadRules)
    logs: Logs = Logs.TEXT
    pool_scheduling: str = "SPREAD"
    pool_place_seconds: float = 8.0


@grown
@dataclass(frozen=True, slots=True)
class AgentSettings:
    """What one agent's sessions, and children that are asked of it or by it, are given (SPEC.md A1, A2).

    Attributes:
        workspace: its working folder as written, or `None`; ``workspace_path`` is where that is set.
        sandbox: ``off``, ``non-main`` or ``all``; ``sandbox_path`` is where that is, or would be, set.
        model, thinking: its own, or the defaults'.
        child_model: of sub-agents that it runs, its own or the defaults'; ``child_model_path`` where that is set.
        child_thinking: level of sub-agents, its own alone; ``child_thinking_path`` where that is set.
        default_thinking: level of sub-agents of all agents.
        delegation: ``suggest`` or ``prefer``, wording of prompts; `None` if nobody says.
    """

    workspace: str | None = None
    workspace_path: str = "agents.defaults.workspace"
    sandbox: str = "off"
    sandbox_path: str = "agents.defaults.sandbox.mode"
    model: str | None = None
    thinking: str | None = None
    child_model: str | None = None
    child_model_path: str = "agents.defaults.subagents.model"
    child_thinking: str | None = None
    child_thinking_path: str = ""
    default_thinking: str | None = None
    delegation: str | None = None


@grown
@dataclass(frozen=True, slots=True)
class AgentLimits:
    """What holds for one agent as requester, and what its sessions ask of Ray. Source: SPEC.md A1, C.

    Attributes:
        agent_id: normalised id.
        configured: True if the configuration names the agent; agents passed in code are configured besides.
        allow_agents: normalised ids that it may name as target, ``*`` for every configured one; `None` if no
            list is set, which means itself only.
        allow_path: where that list is, or would be, set.
        require_agent_id: True if its spawns must name their target.
        require_path: where that is set.
        workspace: its working folder as written, or `None`.
        agent_dir: its own folder as written, or `None`.
        resources: what one session asks of Ray: ``num_cpus``, ``num_gpus``, ``memory`` (bytes) and custom
            names; empty for the default of 0 CPUs.
        scheduling: where its sessions are put, in the words of `openclaw_ray.core.placement`, or `None`.
        tools: rules of its own tools; `None` if there are none.
        auth: where its credentials are; `None` if no store is configured: then nothing is read.
        settings: what its sessions are given; `None` if the configuration says nothing of that.
    """

    agent_id: str
    configured: bool = False
    allow_agents: tuple[str, ...] | None = None
    allow_path: str = "agents.defaults.subagents.allowAgents"
    require_agent_id: bool = False
    require_path: str = "agents.defaults.subagents.requireAgentId"
    workspace: str | None = None
    agent_dir: str | None = None
    resources: Mapping[str, float] = field(default_factory=dict)
    scheduling: str | None = None
    tools: ToolSettings | None = None
    auth: AuthRules | None = None
    settings: AgentSettings | None = None
