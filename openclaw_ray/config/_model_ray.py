"""``ray``: our own settings (DESIGN.md 11)."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from openclaw_ray.config._sections import Amount, Name, Seconds, Section, SomeSeconds, YesNo
from openclaw_ray.config._types import Choice, Number, Placement, Whole
from openclaw_ray.core.limits import Compat, JournalSync, Logs, PoolReuse, Recovery

__all__ = ["Ray"]


class Pool(Section):
    """``ray.pool``: the session actors."""

    max: Annotated[int, Whole(1)] | None = Field(
        default=None, description="most session processes; what memory allows at 55 MB each if not set"
    )
    prewarm: Annotated[int, Whole(0)] | None = Field(
        default=None, description="session processes started with the runtime; 2 × CPUs, at most `max`, if not set"
    )
    reuse: Annotated[PoolReuse, Choice(PoolReuse)] = Field(
        default=PoolReuse.CLASS, description="who may use a process after somebody else"
    )
    idle_seconds: Seconds = Field(default=30.0, description="how long an idle process stays")
    park_seconds: Seconds = Field(default=2.0, description="how long a yielded session keeps its process")
    max_growth_mb: Amount = Field(default=64.0, description="megabytes of growth that retire a process")
    scheduling: Annotated[str, Placement()] = Field(
        default="SPREAD", description="where session processes are put whose agents do not say it"
    )
    place_seconds: Annotated[float, Number(1)] = Field(
        default=8.0,
        description="how long what no node can hold is waited for; more where an autoscaler brings such nodes",
    )


class Inbox(Section):
    """``ray.inbox``."""

    max: Annotated[int, Whole(1)] = Field(default=100, description="messages queued per session over all senders")


class RateLimitSettings(Section):
    """One of ``ray.limits``: what `turn.limit` of that name waits for."""

    rate: Amount | None = Field(default=None, description="calls, or what they cost, in `per` seconds")
    per: SomeSeconds = Field(default=1.0, description="seconds")
    burst: Annotated[float, Number(1)] = Field(
        default=1.0, description="what may be taken at once after a quiet time; with 1 never more than `rate`"
    )
    concurrent: Annotated[int, Whole(1)] | None = Field(default=None, description="calls at once in the whole runtime")


class Limits(Section):
    """``ray.limits``."""

    unlock: YesNo = Field(default=False, description="raises the upper ends of maxChildrenPerAgent and maxSpawnDepth")
    named: dict[str, RateLimitSettings] = Field(
        default_factory=dict, alias="⟨name⟩", description="rate limits that sessions share, by name"
    )


class Budgets(Section):
    """``ray.budgets``: ceilings of one tree; the next spawn or call is refused."""

    sessions_per_tree: Annotated[int, Whole(1)] | None = Field(default=None, description="sessions of one tree")
    tokens_per_tree: Annotated[int, Whole(1)] | None = Field(default=None, description="tokens of one tree")
    cost_per_tree: Amount | None = Field(default=None, description="cost of one tree")


class JournalSettings(Section):
    """``ray.journal``."""

    sync: Annotated[JournalSync, Choice(JournalSync)] = Field(
        default=JournalSync.NORMAL, description="what a committed step survives; `full` is power loss, too"
    )


class AuthPlace(Section):
    """``ray.auth``."""

    dir: Name | None = Field(
        default=None,
        description="credentials of agents without an `agentDir`: in `<dir>/<agent id>/agent/auth-profiles.json`",
    )


class Ray(Section):
    """``ray``: our own settings."""

    compat: Annotated[Compat, Choice(Compat)] = Field(
        default=Compat.V2026_9, description="generation of OpenClaw that the defaults follow"
    )
    pool: Pool = Pool()
    max_active_sessions: Annotated[int | None, Whole(1, nullable=True)] = Field(
        default=None, description="turns that run at once in the whole runtime, fair between roots; null is no cap"
    )
    stop_grace_seconds: Seconds = Field(default=2.0, description="from the request to stop to the kill")
    client_lease_seconds: SomeSeconds = Field(default=15.0, description="silence after which a client counts as gone")
    registry_timeout_seconds: SomeSeconds = Field(
        default=30.0, description="silence of the registry after which programs hear of it"
    )
    recovery: Annotated[Recovery, Choice(Recovery)] = Field(
        default=Recovery.RESUME, description="what a start makes of interrupted runs"
    )
    inbox: Inbox = Inbox()
    limits: Limits = Limits()
    budgets: Budgets = Budgets()
    journal: JournalSettings = JournalSettings()
    logs: Annotated[Logs, Choice(Logs)] = Field(
        default=Logs.TEXT, description="form of sessions' logs; `json` is an object a line, with session, run and root"
    )
    auth: AuthPlace = AuthPlace()
    ping_pong_with_subagents: YesNo = Field(
        default=True, description="whether sub-agents take part in the replies of a send"
    )
