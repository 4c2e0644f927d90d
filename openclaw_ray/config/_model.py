"""The settings that we implement, as a pydantic model: names, sorts, ranges, defaults (SPEC.md A1, A2;
DESIGN.md 11).

A field that is absent has its default; one that is there is checked. Names that are real but not ours are in
``tolerated`` of each class; everything else is unknown.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, ClassVar

from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag
from pydantic.alias_generators import to_camel

from openclaw_ray.config._names import AGENT_DEFAULTS, AGENT_ENTRY, AGENTS, TOP_LEVEL
from openclaw_ray.config._types import Amounts, Choice, Flag, Names, Number, Text, Whole
from openclaw_ray.core.limits import Compat, JournalSync, PoolReuse, Recovery

__all__ = ["AgentEntry", "AgentSubagents", "Agents", "ListedAgent", "Model", "Ray", "Root", "Section"]


class Section(BaseModel):
    """One object of the configuration; frozen. `_keys.prune` has taken unknown names out before."""

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid", alias_generator=to_camel)
    tolerated: ClassVar[frozenset[str]] = frozenset()


class DelegationMode(StrEnum):
    """How strongly prompts recommend to delegate; wording only."""

    SUGGEST = "suggest"
    """As one possibility."""
    PREFER = "prefer"
    """As the usual way."""


class Scheduling(StrEnum):
    """Ray's scheduling strategies that need no arguments."""

    DEFAULT = "DEFAULT"
    """Ray's own choice, packing first."""
    SPREAD = "SPREAD"
    """Over the nodes."""


Name = Annotated[str, Text()]
YesNo = Annotated[bool, Flag()]
Seconds = Annotated[float, Number()]
SomeSeconds = Annotated[float, Number(above=True)]
Amount = Annotated[float, Number(above=True)]


class Model(Section):
    """A model with what to fall back to."""

    primary: Name | None = None
    fallbacks: Annotated[tuple[str, ...], Names()] = ()


def _model_form(value: object) -> str | None:
    return "⟨text⟩" if isinstance(value, str) else "⟨object⟩" if isinstance(value, dict | Model) else None


AnyModel = Annotated[
    Annotated[Name, Tag("⟨text⟩")] | Annotated[Model, Tag("⟨object⟩")],
    Discriminator(
        _model_form,
        custom_error_type="type",
        custom_error_message="must be text or an object with primary and fallbacks",
    ),
]


class AgentSubagents(Section):
    """``subagents`` of one agent: what it may set for itself (SPEC.md A1)."""

    allow_agents: Annotated[tuple[str, ...], Names(ids=True)] | None = None
    require_agent_id: YesNo | None = None
    delegation_mode: Annotated[DelegationMode, Choice(DelegationMode)] | None = None
    model: AnyModel | None = None
    thinking: Name | None = None


class AgentRay(Section):
    """``ray`` of one agent: what each of its sessions asks of Ray, in Ray's own words (DESIGN.md 9)."""

    model_config = ConfigDict(alias_generator=str)

    num_cpus: Annotated[float, Number()] | None = None
    num_gpus: Annotated[float, Number()] | None = None
    memory: Annotated[int, Whole(0)] | None = None
    resources: Annotated[dict[str, float], Amounts()] = Field(default_factory=dict)
    scheduling: Annotated[Scheduling, Choice(Scheduling)] | None = None


class AgentEntry(Section):
    """One agent of ``agents.entries``."""

    tolerated: ClassVar[frozenset[str]] = AGENT_ENTRY

    default: YesNo = False
    workspace: Name | None = None
    agent_dir: Name | None = None
    model: AnyModel | None = None
    subagents: AgentSubagents = AgentSubagents()
    ray: AgentRay = AgentRay()


class ListedAgent(AgentEntry):
    """One agent of the older ``agents.list``: the same with its id inside."""

    id: Name


class SubagentDefaults(AgentSubagents):
    """``agents.defaults.subagents``: beside what agents may set for themselves, the limits of all of them."""

    max_spawn_depth: Annotated[int, Whole(1, 5, unlocked=32)] | None = None
    max_children_per_agent: Annotated[int, Whole(1, 20, unlocked=10_000)] = 5
    max_concurrent: Annotated[int, Whole(1)] = 8
    run_timeout_seconds: Annotated[int, Whole(0)] = 0
    announce_timeout_ms: Annotated[int, Whole(1)] = 120_000
    archive_after_minutes: Annotated[int, Whole(0)] = 60


class AgentDefaults(Section):
    """``agents.defaults``."""

    tolerated: ClassVar[frozenset[str]] = AGENT_DEFAULTS

    max_concurrent: Annotated[int, Whole(1)] | None = None
    timeout_seconds: Annotated[int, Whole(0)] = 172_800
    workspace: Name | None = None
    model: AnyModel | None = None
    subagents: SubagentDefaults = SubagentDefaults()


class Agents(Section):
    """``agents``: defaults and two forms of roster, of which ``entries`` wins."""

    tolerated: ClassVar[frozenset[str]] = AGENTS

    defaults: AgentDefaults = AgentDefaults()
    entries: dict[str, AgentEntry] = Field(default_factory=dict)
    listed: list[ListedAgent] = Field(default_factory=list, alias="list")


class Pool(Section):
    """``ray.pool``: the session actors."""

    max: Annotated[int, Whole(1)] | None = None
    prewarm: Annotated[int, Whole(0)] | None = None
    reuse: Annotated[PoolReuse, Choice(PoolReuse)] = PoolReuse.CLASS
    idle_seconds: Seconds = 30.0
    park_seconds: Seconds = 2.0
    max_growth_mb: Amount = 64.0


class Inbox(Section):
    """``ray.inbox``."""

    max: Annotated[int, Whole(1)] = 100


class Limits(Section):
    """``ray.limits``."""

    unlock: YesNo = False


class Budgets(Section):
    """``ray.budgets``: ceilings of one tree."""

    sessions_per_tree: Annotated[int, Whole(1)] | None = None
    tokens_per_tree: Annotated[int, Whole(1)] | None = None
    cost_per_tree: Amount | None = None


class JournalSettings(Section):
    """``ray.journal``."""

    sync: Annotated[JournalSync, Choice(JournalSync)] = JournalSync.NORMAL


class Ray(Section):
    """``ray``: our own settings."""

    compat: Annotated[Compat, Choice(Compat)] = Compat.V2026_9
    pool: Pool = Pool()
    max_active_sessions: Annotated[int | None, Whole(1, nullable=True)] = None
    stop_grace_seconds: Seconds = 2.0
    client_lease_seconds: SomeSeconds = 15.0
    registry_timeout_seconds: SomeSeconds = 30.0
    recovery: Annotated[Recovery, Choice(Recovery)] = Recovery.RESUME
    inbox: Inbox = Inbox()
    limits: Limits = Limits()
    budgets: Budgets = Budgets()
    journal: JournalSettings = JournalSettings()
    ping_pong_with_subagents: YesNo = True


class Root(Section):
    """The whole configuration."""

    tolerated: ClassVar[frozenset[str]] = TOP_LEVEL

    agents: Agents = Agents()
    ray: Ray = Ray()
