"""``secrets``: where references of credential stores lead (SPEC.md I1)."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from openclaw_ray.config._sections import Name, NameList, Section, YesNo
from openclaw_ray.config._types import Choice, Whole
from openclaw_ray.core.auth._secrets import SecretFile, SecretSource

__all__ = ["Secrets"]

_Milliseconds = Annotated[int, Whole(1, 120_000)]
_Bytes = Annotated[int, Whole(1, 20 << 20)]


class SecretProviderSettings(Section):
    """One of ``secrets.providers``; which keys act goes by its ``source``."""

    source: Annotated[SecretSource, Choice(SecretSource)] = Field(description="where the secrets are")
    allowlist: NameList | None = Field(default=None, description="`env`: the names that may be read; all if not set")
    path: Name | None = Field(default=None, description="`file`: the file, private to its user")
    mode: Annotated[SecretFile, Choice(SecretFile)] = Field(
        default=SecretFile.JSON, description="`file`: an object that ids are JSON pointers into, or one secret"
    )
    max_bytes: _Bytes | None = Field(default=None, description="`file`: the most that is read; 1 MiB if not set")
    command: Name | None = Field(default=None, description="`exec`: absolute path of the program, no link")
    args: NameList = Field(default=(), description="`exec`: its arguments")
    env: dict[str, Name] = Field(default_factory=dict, description="`exec`: what is in its environment")
    pass_env: NameList = Field(default=(), description="`exec`: names that it is passed of the runtime's environment")
    json_only: YesNo = Field(default=True, description="`exec`: plain text is no answer")
    trusted_dirs: NameList = Field(default=(), description="`exec`: folders in one of which the program must be")
    timeout_ms: _Milliseconds | None = Field(default=None, description="most milliseconds; 5000 if not set")
    no_output_timeout_ms: _Milliseconds | None = Field(
        default=None, description="`exec`: most milliseconds of silence; `timeoutMs` if not set"
    )
    max_output_bytes: _Bytes | None = Field(default=None, description="`exec`: the longest answer; 1 MiB if not set")


class SecretDefaults(Section):
    """``secrets.defaults``: the provider of references that name none."""

    env: Name | None = Field(default=None, description="for `env`; `default` if not set")
    file: Name | None = Field(default=None, description="for `file`; `default` if not set")
    exec: Name | None = Field(default=None, description="for `exec`; `default` if not set")
    store: Name | None = Field(default=None, description="for `store`, which is not read here")


class Secrets(Section):
    """``secrets``."""

    providers: dict[str, SecretProviderSettings] = Field(default_factory=dict, description="providers by name")
    defaults: SecretDefaults = SecretDefaults()
