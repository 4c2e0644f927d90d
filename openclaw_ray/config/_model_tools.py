"""``tools``: what sessions may call (SPEC.md A3, A4)."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from openclaw_ray.config._sections import NameList, Profile, Section, Visibility, YesNo
from openclaw_ray.config._types import Choice, Whole

__all__ = ["ProviderTools", "ToolPolicyByProvider", "ToolSet", "Tools"]


class ToolSet(Section):
    """Names of tools: case does not count, ``*`` and ``group:…`` are understood."""

    allow: NameList | None = Field(default=None, description="only these, if the list is not empty")
    also_allow: NameList | None = Field(default=None, description="these besides; not together with `allow`")
    deny: NameList | None = Field(default=None, description="never these; wins")


class ProviderTools(ToolSet):
    """A tool set that begins with a profile."""

    profile: Annotated[Profile, Choice(Profile)] | None = Field(default=None, description="the set to begin with")


class ToolPolicyByProvider(ProviderTools):
    """What ``tools`` and one agent's ``tools`` have in common."""

    by_provider: dict[str, ProviderTools] = Field(
        default_factory=dict, description="narrower sets by provider or provider/model"
    )
    tools_by_sender: dict[str, ToolSet] = Field(
        default_factory=dict,
        description="sets by sender: `channel:<ch>:<id>`, `id:`, `e164:`, `username:`, `name:`, `*`",
    )


class SandboxTools(Section):
    """``tools.sandbox``."""

    tools: ToolSet = ToolSet()


class SubagentTools(Section):
    """``tools.subagents``."""

    tools: ToolSet = ToolSet()


class SessionTools(Section):
    """``tools.sessions``."""

    visibility: Annotated[Visibility, Choice(Visibility)] = Field(
        default=Visibility.TREE, description="which sessions the session tools see"
    )


class Attachments(Section):
    """``tools.sessions_spawn.attachments``."""

    enabled: YesNo = Field(default=False, description="whether a spawn may have attachments")
    max_total_bytes: Annotated[int, Whole(0)] = Field(default=5_242_880, description="bytes of all of one spawn")
    max_files: Annotated[int, Whole(0)] = Field(default=50, description="attachments of one spawn")
    max_file_bytes: Annotated[int, Whole(0)] = Field(default=1_048_576, description="bytes of one")
    retain_on_session_keep: YesNo = Field(default=False, description="keep the files when the session is kept")


class SessionsSpawn(Section):
    """``tools.sessions_spawn``."""

    attachments: Attachments = Attachments()


class AgentToAgent(Section):
    """``tools.agentToAgent``; older files have it under ``session``. Not set here is not set at all."""

    enabled: YesNo | None = Field(
        default=None, description="whether agents may use each other's sessions; true if not set"
    )
    allow: NameList | None = Field(
        default=None, description="both agents must be on the list; everyone if it is not set or empty"
    )
    max_ping_pong_turns: Annotated[int, Whole(0, 5)] | None = Field(
        default=None, description="turns of replies after a send; 5 if not set"
    )


class Tools(ToolPolicyByProvider):
    """``tools``."""

    agent_to_agent: AgentToAgent = AgentToAgent()
    sandbox: SandboxTools = SandboxTools()
    subagents: SubagentTools = SubagentTools()
    sessions: SessionTools = SessionTools()
    sessions_spawn: SessionsSpawn = Field(default=SessionsSpawn(), alias="sessions_spawn")
