"""What the model's sections are made of: their base, shared sorts, and the words of enumerations (SPEC.md A)."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag
from pydantic.alias_generators import to_camel

from openclaw_ray.config._types import Flag, Names, Number, Text
from openclaw_ray.core.visibility import ToolsVisibility, Visibility

__all__ = [
    "Amount",
    "AnyModel",
    "AuthMode",
    "DelegationMode",
    "DmScope",
    "Drop",
    "Model",
    "Name",
    "NameList",
    "Ownership",
    "Profile",
    "QueueMode",
    "ResetMode",
    "SandboxMode",
    "SandboxScope",
    "Seconds",
    "Section",
    "SessionScope",
    "SomeSeconds",
    "SpawnContext",
    "Thinking",
    "ToolsVisibility",
    "Visibility",
    "WorkspaceAccess",
    "YesNo",
]


class Section(BaseModel):
    """One object of the configuration; frozen. `_keys.prune` has taken unknown names out before."""

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid", alias_generator=to_camel)


Name = Annotated[str, Text()]
NameList = Annotated[tuple[str, ...], Names()]
YesNo = Annotated[bool, Flag()]
Seconds = Annotated[float, Number()]
SomeSeconds = Annotated[float, Number(above=True)]
Amount = Annotated[float, Number(above=True)]


class Model(Section):
    """A model with what to fall back to."""

    primary: Name | None = Field(default=None, description="the model")
    fallbacks: NameList = Field(default=(), description="tried in this order when it fails")


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


class DelegationMode(StrEnum):
    """How strongly prompts recommend to delegate; wording only."""

    SUGGEST = "suggest"
    """As one possibility."""
    PREFER = "prefer"
    """As the usual way."""


class Ownership(StrEnum):
    """How several agents share the place of the default one."""

    EXPLICIT = "explicit"
    """None is the default by itself."""


class Thinking(StrEnum):
    """Levels of thinking, as far as the model has them."""

    OFF = "off"
    """None."""
    MINIMAL = "minimal"
    """Hardly any."""
    LOW = "low"
    """Some."""
    MEDIUM = "medium"
    """More."""
    HIGH = "high"
    """Much."""
    XHIGH = "xhigh"
    """Very much."""
    ADAPTIVE = "adaptive"
    """The model decides."""
    MAX = "max"
    """All that the model has."""
    ULTRA = "ultra"
    """Beyond that, where a model offers it."""


class SandboxMode(StrEnum):
    """Which sessions are sandboxed."""

    OFF = "off"
    """None."""
    NON_MAIN = "non-main"
    """All but an agent's main session."""
    ALL = "all"
    """All."""


class SandboxScope(StrEnum):
    """Who shares a sandbox."""

    SESSION = "session"
    """Nobody: one for each session."""
    AGENT = "agent"
    """The sessions of one agent."""
    SHARED = "shared"
    """All sessions."""


class WorkspaceAccess(StrEnum):
    """What a sandboxed session can do in its workspace."""

    NONE = "none"
    """Nothing: it has a folder of its own."""
    RO = "ro"
    """Read."""
    RW = "rw"
    """Read and write."""


class Profile(StrEnum):
    """Named sets of tools to begin with."""

    MINIMAL = "minimal"
    """The session's status."""
    CODING = "coding"
    """Files, commands, sessions."""
    MESSAGING = "messaging"
    """Messages and sessions."""
    FULL = "full"
    """All."""


class SessionScope(StrEnum):
    """How many conversations there are."""

    PER_SENDER = "per-sender"
    """One for each sender."""
    GLOBAL = "global"
    """One."""


class DmScope(StrEnum):
    """Which direct messages share a session."""

    MAIN = "main"
    """All."""
    PER_PEER = "per-peer"
    """Those of one person."""
    PER_CHANNEL_PEER = "per-channel-peer"
    """Those of one person on one channel."""
    PER_ACCOUNT_CHANNEL_PEER = "per-account-channel-peer"
    """Those of one person on one channel to one account."""


class ResetMode(StrEnum):
    """When a conversation begins anew by itself."""

    NONE = "none"
    """Never."""
    DAILY = "daily"
    """At ``atHour``."""
    IDLE = "idle"
    """After ``idleMinutes`` of silence."""


class SpawnContext(StrEnum):
    """What a thread-bound child knows of its parent's conversation."""

    ISOLATED = "isolated"
    """Nothing."""
    FORK = "fork"
    """All of it up to now."""


class QueueMode(StrEnum):
    """What becomes of a message to a session that is busy."""

    STEER = "steer"
    """Heard between two tool calls of the turn that runs."""
    FOLLOWUP = "followup"
    """A turn of its own afterwards."""
    COLLECT = "collect"
    """One turn afterwards with all that came."""
    INTERRUPT = "interrupt"
    """The turn that runs is stopped for it."""


class Drop(StrEnum):
    """What a full queue gives up."""

    OLD = "old"
    """The oldest message."""
    NEW = "new"
    """The one that comes."""
    SUMMARIZE = "summarize"
    """The oldest ones, for a summary of them."""


class AuthMode(StrEnum):
    """What sort of credential a profile stands for."""

    API_KEY = "api_key"
    """A key."""
    AWS_SDK = "aws-sdk"
    """What the AWS libraries find."""
    OAUTH = "oauth"
    """A login that renews itself."""
    TOKEN = "token"
    """A token that does not."""
