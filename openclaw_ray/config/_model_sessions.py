"""``session``, ``channels``, ``messages`` and ``auth`` (SPEC.md A3, A5)."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from openclaw_ray.config._model_tools import AgentToAgent
from openclaw_ray.config._sections import (
    AuthMode,
    DmScope,
    Drop,
    Name,
    NameList,
    QueueMode,
    ResetMode,
    Section,
    SessionScope,
    SpawnContext,
    YesNo,
)
from openclaw_ray.config._types import Choice, Duration, Number, Whole

__all__ = ["Auth", "Channel", "ChannelAccount", "Messages", "Session", "ThreadBindings"]

Context = Annotated[SpawnContext, Choice(SpawnContext)]
Hours = Annotated[float, Number()]
Mode = Annotated[QueueMode, Choice(QueueMode)]
ChannelMode = Annotated[Mode | None, Field(description="the mode on this channel")]


class ThreadBindings(Section):
    """``threadBindings`` of a channel or an account; `None` falls back to what is around it."""

    enabled: YesNo | None = Field(default=None, description="whether sessions are bound to threads; true if not set")
    idle_hours: Hours | None = Field(
        default=None, description="silence after which a binding ends; 0 is never; 24 if not set"
    )
    max_age_hours: Hours | None = Field(default=None, description="age at which a binding ends; 0, never, if not set")
    spawn_sessions: YesNo | None = Field(
        default=None, description="whether a spawn may bind its child; true if not set"
    )
    spawn_subagent_sessions: YesNo | None = Field(default=None, description="older name of `spawnSessions`, which wins")
    default_spawn_context: Context | None = Field(
        default=None, description="context of bound children; fork if not set"
    )


class ChannelAccount(Section):
    """One account of a channel."""

    thread_bindings: ThreadBindings = ThreadBindings()


class Channel(Section):
    """One channel."""

    thread_bindings: ThreadBindings = ThreadBindings()
    accounts: dict[str, ChannelAccount] = Field(default_factory=dict, description="accounts by id")


class Reset(Section):
    """``session.reset``."""

    mode: Annotated[ResetMode, Choice(ResetMode)] = Field(
        default=ResetMode.NONE, description="when a conversation begins anew by itself"
    )
    at_hour: Annotated[int, Whole(0, 23)] | None = Field(default=None, description="hour of `daily`")
    idle_minutes: Annotated[int, Whole(1)] | None = Field(default=None, description="minutes of `idle`")


class Maintenance(Section):
    """``session.maintenance``."""

    prune_after: Annotated[str | float, Duration()] = Field(
        default="30d", description="how long a session is kept after its end, and its archived transcript"
    )


class Session(Section):
    """``session``."""

    scope: Annotated[SessionScope, Choice(SessionScope)] = Field(
        default=SessionScope.PER_SENDER, description="one conversation for each sender, or one"
    )
    dm_scope: Annotated[DmScope, Choice(DmScope)] = Field(
        default=DmScope.MAIN, description="which direct messages share a session"
    )
    main_key: Name = Field(default="main", description="accepted and ignored: it is always `main`")
    identity_links: dict[str, NameList] = Field(
        default_factory=dict, description="one person's ids, `<channel>:<id>`, by name"
    )
    reset: Reset = Reset()
    reset_triggers: NameList = Field(default=("/new", "/reset"), description="messages that begin a conversation anew")
    maintenance: Maintenance = Maintenance()
    thread_bindings: ThreadBindings = ThreadBindings()
    agent_to_agent: AgentToAgent = Field(
        default=AgentToAgent(), description="older place of `tools.agentToAgent`, which wins"
    )


class QueueByChannel(Section):
    """``messages.queue.byChannel``."""

    discord: ChannelMode = None
    googlechat: ChannelMode = None
    imessage: ChannelMode = None
    irc: ChannelMode = None
    matrix: ChannelMode = None
    mattermost: ChannelMode = None
    msteams: ChannelMode = None
    signal: ChannelMode = None
    slack: ChannelMode = None
    telegram: ChannelMode = None
    webchat: ChannelMode = None
    whatsapp: ChannelMode = None


class Queue(Section):
    """``messages.queue``."""

    mode: Mode = Field(default=QueueMode.STEER, description="what becomes of a message to a busy session")
    by_channel: QueueByChannel = Field(default=QueueByChannel(), description="the same for one channel")
    debounce_ms: Annotated[int, Whole(0)] = Field(default=500, description="milliseconds to wait for more of a message")
    debounce_ms_by_channel: dict[str, Annotated[int, Whole(0)]] = Field(
        default_factory=dict, description="the same for one channel"
    )
    cap: Annotated[int, Whole(1)] = Field(default=20, description="messages that wait at most")
    drop: Annotated[Drop, Choice(Drop)] = Field(default=Drop.SUMMARIZE, description="what a full queue gives up")


class Messages(Section):
    """``messages``."""

    queue: Queue = Queue()


class AuthProfile(Section):
    """One profile: what it stands for, never the secret itself."""

    provider: Name = Field(description="whose credential it is")
    mode: Annotated[AuthMode, Choice(AuthMode)] = Field(description="what sort of credential it is")
    email: Name | None = Field(default=None, description="whose login it is")
    display_name: Name | None = Field(default=None, description="its name for people")


class Auth(Section):
    """``auth``."""

    profiles: dict[str, AuthProfile] = Field(default_factory=dict, description="profiles by id")
    order: dict[str, NameList] = Field(default_factory=dict, description="profiles of a provider, first one first")
