"""The settings that we implement, as a pydantic model: names, sorts, ranges, defaults, meanings (SPEC.md A1–A5;
DESIGN.md 11).

A field that is absent has its default; one that is there is checked. Real keys that are not here are tolerated
(`_known`); everything else is unknown. A field's description is its meaning in the table of the README.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import ConfigDict, Field

from openclaw_ray.config._model_ray import Ray
from openclaw_ray.config._model_secrets import Secrets
from openclaw_ray.config._model_sessions import Auth, Channel, Messages, Session
from openclaw_ray.config._model_tools import ToolPolicyByProvider, Tools, ToolSet
from openclaw_ray.config._sections import (
    AnyModel,
    DelegationMode,
    Model,
    Name,
    Ownership,
    SandboxMode,
    SandboxScope,
    Section,
    Thinking,
    ToolsVisibility,
    WorkspaceAccess,
    YesNo,
)
from openclaw_ray.config._types import Amounts, Choice, Names, Number, Placement, Whole

__all__ = ["AgentEntry", "AgentSubagents", "Agents", "ListedAgent", "Model", "Root", "Section"]


class AgentSubagents(Section):
    """``subagents`` of one agent: what it may set for itself (SPEC.md A1)."""

    allow_agents: Annotated[tuple[str, ...], Names(ids=True)] | None = Field(
        default=None, description="agents that it may spawn by id, `*` for all configured ones; itself only if not set"
    )
    require_agent_id: YesNo | None = Field(default=None, description="refuse spawns that leave the agent id out")
    delegation_mode: Annotated[DelegationMode, Choice(DelegationMode)] | None = Field(
        default=None, description="how strongly prompts recommend to delegate; wording only"
    )
    model: AnyModel | None = Field(default=None, description="model of children; that of the caller if not set")
    thinking: Name | None = Field(default=None, description="thinking level of children; that of the caller if not set")


class SubagentDefaults(AgentSubagents):
    """``agents.defaults.subagents``: beside what agents may set for themselves, the limits of all of them."""

    require_agent_id: YesNo = Field(default=False, description="refuse spawns that leave the agent id out")
    max_spawn_depth: Annotated[int, Whole(1, 5, unlocked=32)] | None = Field(
        default=None,
        description="a session at this depth is a leaf; roots are at 0; 5 if not set, 1 under `ray.compat` 2026.7",
    )
    max_children_per_agent: Annotated[int, Whole(1, 20, unlocked=10_000)] = Field(
        default=5, description="active direct children of one session; more are refused"
    )
    max_concurrent: Annotated[int, Whole(1)] = Field(
        default=8, description="children of one session that run at once; more are queued"
    )
    run_timeout_seconds: Annotated[int, Whole(0)] = Field(default=0, description="default timeout of a run; 0 is none")
    announce_timeout_ms: Annotated[int, Whole(1)] = Field(
        default=120_000, description="milliseconds until an unconfirmed hand-off is repeated; 5 s at most"
    )
    archive_after_minutes: Annotated[int, Whole(0)] = Field(
        default=60, description="delay after which an ended child is archived; 0 is never"
    )


class AgentRay(Section):
    """``ray`` of one agent: what each of its sessions asks of Ray, in Ray's own words (DESIGN.md 9)."""

    model_config = ConfigDict(alias_generator=str)

    num_cpus: Annotated[float, Number()] | None = Field(default=None, description="CPUs of one session; 0 if not set")
    num_gpus: Annotated[float, Number()] | None = Field(default=None, description="GPUs of one session")
    memory: Annotated[int, Whole(0)] | None = Field(default=None, description="bytes of memory of one session")
    resources: Annotated[dict[str, float], Amounts()] = Field(
        default_factory=dict, description="custom resources of one session"
    )
    scheduling: Annotated[str, Placement()] | None = Field(
        default=None, description="where its sessions are put; as `ray.pool.scheduling` if not set"
    )
    auth_isolation: YesNo = Field(
        default=False,
        alias="authIsolation",
        description="credentials of its own store alone: the default agent's are no fallback",
    )


class AgentSandbox(Section):
    """``sandbox`` of one agent."""

    mode: Annotated[SandboxMode, Choice(SandboxMode)] | None = Field(
        default=None, description="which sessions are sandboxed"
    )
    scope: Annotated[SandboxScope, Choice(SandboxScope)] | None = Field(
        default=None, description="who shares a sandbox"
    )
    workspace_access: Annotated[WorkspaceAccess, Choice(WorkspaceAccess)] | None = Field(
        default=None, description="what a sandboxed session can do in the workspace"
    )


class Sandbox(AgentSandbox):
    """``agents.defaults.sandbox``."""

    mode: Annotated[SandboxMode, Choice(SandboxMode)] = Field(
        default=SandboxMode.OFF, description="which sessions are sandboxed"
    )
    scope: Annotated[SandboxScope, Choice(SandboxScope)] = Field(
        default=SandboxScope.AGENT, description="who shares a sandbox"
    )
    workspace_access: Annotated[WorkspaceAccess, Choice(WorkspaceAccess)] = Field(
        default=WorkspaceAccess.NONE, description="what a sandboxed session can do in the workspace"
    )
    session_tools_visibility: Annotated[ToolsVisibility, Choice(ToolsVisibility)] = Field(
        default=ToolsVisibility.SPAWNED, description="which sessions the tools of a sandboxed session see"
    )


class Identity(Section):
    """``identity`` of one agent."""

    name: Name | None = Field(default=None, description="how it calls itself")


class AgentSandboxTools(Section):
    """``tools.sandbox`` of one agent."""

    tools: ToolSet = Field(default=ToolSet(), description="tools of its sandboxed sessions")


class AgentTools(ToolPolicyByProvider):
    """``tools`` of one agent."""

    sandbox: AgentSandboxTools = AgentSandboxTools()


class AgentEntry(Section):
    """One agent of ``agents.entries``."""

    default: YesNo = Field(default=False, description="the agent that is meant when none is named")
    name: Name | None = Field(default=None, description="its name for people")
    workspace: Name | None = Field(default=None, description="its working folder")
    agent_dir: Name | None = Field(
        default=None, description="its own folder; its credentials are in `auth-profiles.json` there"
    )
    model: AnyModel | None = Field(default=None, description="its model")
    thinking_default: Annotated[Thinking, Choice(Thinking)] | None = Field(
        default=None, description="its thinking level"
    )
    identity: Identity = Identity()
    sandbox: AgentSandbox = AgentSandbox()
    tools: AgentTools = AgentTools()
    subagents: AgentSubagents = AgentSubagents()
    ray: AgentRay = AgentRay()


class ListedAgent(AgentEntry):
    """One agent of the older ``agents.list``: the same with its id inside."""

    id: Name = Field(description="the agent's id")


class AgentDefaults(Section):
    """``agents.defaults``."""

    max_concurrent: Annotated[int, Whole(1)] | None = Field(
        default=None, description="first sessions of all roots that run at once; 8 to 16, after the CPUs, if not set"
    )
    timeout_seconds: Annotated[int, Whole(0)] = Field(
        default=172_800, description="timeout of a turn that is no spawned run; 0 is none"
    )
    workspace: Name | None = Field(default=None, description="working folder of agents without one of their own")
    model: AnyModel | None = Field(default=None, description="model of agents without one of their own")
    thinking_default: Annotated[Thinking, Choice(Thinking)] | None = Field(
        default=None, description="thinking level of agents without one of their own"
    )
    sandbox: Sandbox = Sandbox()
    subagents: SubagentDefaults = SubagentDefaults()


class Agents(Section):
    """``agents``: defaults and two forms of roster, of which ``entries`` wins."""

    ownership: Annotated[Ownership, Choice(Ownership)] | None = Field(
        default=None, description="read as OpenClaw has it; the default agent is found without it"
    )
    defaults: AgentDefaults = AgentDefaults()
    entries: dict[str, AgentEntry] = Field(default_factory=dict, description="the agents by id")
    listed: list[ListedAgent] = Field(
        default_factory=list, alias="list", description="the agents in the older form, each with its `id`"
    )


class Root(Section):
    """The whole configuration."""

    agents: Agents = Agents()
    auth: Auth = Auth()
    channels: dict[str, Channel] = Field(default_factory=dict, description="channels by id")
    messages: Messages = Messages()
    ray: Ray = Ray()
    secrets: Secrets = Secrets()
    session: Session = Session()
    tools: Tools = Tools()
