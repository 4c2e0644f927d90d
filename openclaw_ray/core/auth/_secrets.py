"""Secrets that are somewhere else than in a store: how one is referred to, and who gives it (SPEC.md I1).

1. A reference is an object of ``source``, ``provider`` and ``id``, or ``${NAME}`` for the environment. One that is not
   as its source has it leads nowhere.
2. ``env`` needs no provider. ``file`` and ``exec`` name one of ``secrets.providers``, of the same source; one that
   names none means that of ``secrets.defaults``.
3. Only a provider's settings say what is opened or run, never the reference: that is text out of a store.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

from openclaw_ray.core.compact import grown

__all__ = ["DEFAULT_PROVIDER", "Ref", "SecretFile", "SecretProvider", "SecretRules", "SecretSource", "ref_of"]

DEFAULT_PROVIDER: Final = "default"
_PROVIDER: Final = re.compile(r"[a-z][a-z0-9_-]{0,63}")
_ENV: Final = re.compile(r"[A-Z_][A-Z0-9_]{0,127}")
_POINTER: Final = re.compile(r"(/([^~/]|~[01])*)+")
_EXEC: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/#-]{0,255}")
_LONGEST: Final = 1024


class SecretSource(StrEnum):
    """Where secrets can be."""

    ENV = "env"
    """In the environment of the process that runs the registry."""
    FILE = "file"
    """In a file beside the store."""
    EXEC = "exec"
    """With a program that is asked for them."""
    STORE = "store"
    """In OpenClaw's own database, which is not read here."""


class SecretFile(StrEnum):
    """What is in the file of a provider."""

    JSON = "json"
    """An object; ids are JSON pointers into it."""
    SINGLE = "singleValue"
    """One secret, whose id is ``value``."""


@dataclass(frozen=True, slots=True)
class Ref:
    """A secret that is somewhere else.

    Attributes:
        source: a word of `SecretSource`.
        id: name in the environment; JSON pointer, or ``value``; whatever the program knows it by.
        provider: one of ``secrets.providers``; empty for the source's default.
    """

    source: str
    id: str
    provider: str = ""


def ref_of(value: Mapping[str, Any]) -> Ref | None:
    """The reference that such an object is; `None` if it is none (1)."""
    source, provider, name = (value.get(each) for each in ("source", "provider", "id"))
    if not isinstance(source, str) or not isinstance(name, str) or len(name) > _LONGEST:
        return None
    if provider is not None and (not isinstance(provider, str) or not _PROVIDER.fullmatch(provider)):
        return None
    match source:
        case SecretSource.ENV:
            fits = _ENV.fullmatch(name) is not None
        case SecretSource.FILE:
            fits = name == "value" or _POINTER.fullmatch(name) is not None
        case SecretSource.EXEC:
            fits = _EXEC.fullmatch(name) is not None and not {".", ".."} & set(name.split("/"))
        case _:
            fits = bool(name)
    return Ref(source, name, provider or "") if fits else None


@dataclass(frozen=True, slots=True)
class SecretProvider:
    """One of ``secrets.providers``. Times are seconds, sizes bytes; `None` is what is usual (`store.secrets`).

    Attributes:
        source: a word of `SecretSource`.
        allowlist: of ``env``: the names that may be read; `None` for all.
        path, single: of ``file``: which one, and whether all of it is the secret.
        command, args, env, pass_env: of ``exec``: the program, and all that is in its environment.
        json_only: it must answer in JSON.
        trusted_dirs: folders in one of which it must be; empty for any.
        timeout, quiet: most seconds in all, and without a word of it.
        most: bytes that are taken of file or program.
    """

    source: str
    allowlist: tuple[str, ...] | None = None
    path: str | None = None
    single: bool = False
    command: str | None = None
    args: tuple[str, ...] = field(default=(), repr=False)
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    pass_env: tuple[str, ...] = ()
    json_only: bool = True
    trusted_dirs: tuple[str, ...] = ()
    timeout: float | None = None
    quiet: float | None = None
    most: int | None = None


@grown
@dataclass(frozen=True, slots=True)
class SecretRules:
    """What the configuration says of where secrets are.

    Attributes:
        providers: by name.
        defaults: source -> the provider that is meant by a reference that names none.
    """

    providers: Mapping[str, SecretProvider] = field(default_factory=dict)
    defaults: Mapping[str, str] = field(default_factory=dict)

    def provider(self, ref: Ref) -> tuple[str, SecretProvider | None]:
        """The provider of a reference by name (2); none of ``env`` is needed."""
        usual = self.defaults.get(ref.source, DEFAULT_PROVIDER)
        name = ref.provider or usual
        found = self.providers.get(name)
        if found is not None and found.source == ref.source:
            return name, found
        built_in = ref.source == SecretSource.ENV and name == usual
        return name, SecretProvider(SecretSource.ENV.value) if built_in else None
