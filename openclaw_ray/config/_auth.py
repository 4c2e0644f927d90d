"""Where an agent's credentials are (SPEC.md A5, I1; DESIGN.md 7).

1. An agent's own store is in its ``agentDir``; without one in ``<ray.auth.dir>/<agent id>/agent``.
2. If neither is set, ``~/.openclaw/agents`` stands for ``ray.auth.dir`` only where the configuration itself is
   ``~/.openclaw/openclaw.json`` (``$OPENCLAW_STATE_DIR`` for ``~/.openclaw``): a library does not look there by itself.
3. The shared store is the default agent's. Without either store nothing is read, and nothing costs anything.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from openclaw_ray.config._fields import plain
from openclaw_ray.core.auth._rules import AuthRules
from openclaw_ray.core.auth._secrets import SecretFile, SecretProvider, SecretRules, SecretSource

if TYPE_CHECKING:
    from openclaw_ray.config._config import Config
    from openclaw_ray.config._model_secrets import SecretProviderSettings

__all__ = ["auth_rules"]

_FILE = "auth-profiles.json"


def auth_rules(config: Config, agent: str) -> AuthRules | None:
    """What the configuration says of the credentials of an agent, by its normalised id; `None` if there are none."""
    base = _base(config)
    own, theirs = _store(config, agent, base), _store(config, config.default_agent, base)
    if own is None and theirs is None:
        return None
    isolated = bool(config.own(agent, "ray", "auth_isolation")[0])
    auth = config.root.auth
    return AuthRules(
        own=own,
        shared=None if isolated or theirs == own else theirs,
        isolated=isolated,
        order={str(plain(of)): tuple(plain(ids)) for of, ids in auth.order.items()},
        profiles={str(name): (str(plain(one.provider)), str(one.mode.value)) for name, one in auth.profiles.items()},
        secrets=_secrets(config),
    )


def _secrets(config: Config) -> SecretRules:
    said = config.root.secrets
    defaults = {source: getattr(said.defaults, source) for source in ("env", "file", "exec", "store")}
    return SecretRules(
        {str(name): _provider(one) for name, one in said.providers.items()},
        {source: str(plain(name)) for source, name in defaults.items() if name is not None},
    )


def _provider(said: SecretProviderSettings) -> SecretProvider:
    def seconds(milliseconds: int | None) -> float | None:
        return None if milliseconds is None else milliseconds / 1000

    return SecretProvider(
        source=said.source.value,
        allowlist=None if said.allowlist is None else tuple(map(str, plain(said.allowlist))),
        path=None if said.path is None else str(plain(said.path)),
        single=said.mode is SecretFile.SINGLE,
        command=None if said.command is None else str(plain(said.command)),
        args=tuple(map(str, plain(said.args))),
        env={str(name): str(plain(value)) for name, value in said.env.items()},
        pass_env=tuple(map(str, plain(said.pass_env))),
        json_only=said.json_only,
        trusted_dirs=tuple(map(str, plain(said.trusted_dirs))),
        timeout=seconds(said.timeout_ms),
        quiet=seconds(said.no_output_timeout_ms),
        most=said.max_bytes if said.source is SecretSource.FILE else said.max_output_bytes,
    )


def _store(config: Config, agent: str, base: str | None) -> str | None:
    own = config.own(agent, "agent_dir")[0]
    if own is not None:
        return os.path.join(_absolute(str(plain(own))), _FILE)
    return None if base is None else os.path.join(base, agent, "agent", _FILE)


def _base(config: Config) -> str | None:
    named = config.root.ray.auth.dir
    if named is not None:
        return _absolute(str(plain(named)))
    state = os.environ.get("OPENCLAW_STATE_DIR") or "~/.openclaw"
    usual = os.path.join(_absolute(state), "openclaw.json")
    if not config.source.startswith("<") and _absolute(config.source) == usual:
        return os.path.join(_absolute(state), "agents")
    return None


def _absolute(path: str) -> str:
    try:
        return str(Path(path).expanduser().absolute())
    except RuntimeError:  # there is no home
        return str(Path(path).absolute())
