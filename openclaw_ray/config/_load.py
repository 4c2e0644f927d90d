"""Loading a configuration, in this order; whatever is wrong is told together (SCENARIOS.md 61, 62, 64).

1. Read and parse the text; only a text that is no JSON5 object ends the loading here.
2. Put in what it includes (`_include`).
3. Take out what is not ours, and find what is unknown (`_keys`).
4. Fill in the environment (`_env`).
5. Check the values (`_model`) and what they mean together (`_faults`).
6. Give every fault its line.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from openclaw_ray.config._config import Config
from openclaw_ray.config._effective import a2a, a2a_path
from openclaw_ray.config._env import Variables, unset
from openclaw_ray.config._faults import (
    limit_faults,
    pool_faults,
    roster_faults,
    tool_faults,
    value_faults,
    with_remedy,
)
from openclaw_ray.config._include import INCLUDE, Includes, Source, read_text
from openclaw_ray.config._keys import Pruned, prune
from openclaw_ray.config._model import Root
from openclaw_ray.config._notices import Notice, NoticeKind, list_notices, not_yet
from openclaw_ray.config._text import join, parse
from openclaw_ray.config._types import show
from openclaw_ray.core.errors import ConfigError, ConfigFault

__all__ = ["load", "loads"]

_PATH_VARIABLE = "OPENCLAW_CONFIG_PATH"


def load(
    source: Config | str | Path | Mapping[str, Any] | None = None, *, env: Mapping[str, str] | None = None
) -> Config:
    """A checked configuration.

    Args:
        source: a path (``~`` is understood), a dict as the parsed file would be, an already checked
            configuration, or `None`: the file that ``OPENCLAW_CONFIG_PATH`` names, else the defaults.
            ``~/.openclaw`` is not looked into (DESIGN.md 7).
        env: where ``${NAME}`` and that variable are looked up; the environment if not given.

    Raises:
        ConfigError: with all faults at once: unreadable (kind ``file``), not JSON5 (``syntax``), not an
            object (``root``), a faulty ``$include`` (``include``), keys written two times (``duplicate``) or
            unknown (``unknown``), variables that are not set (``variable``), values of the wrong sort
            (``type``), out of range (``range``) or without sense (``value``), keys that are ``missing``.
    """
    env = os.environ if env is None else env
    if isinstance(source, Config):
        return source
    if isinstance(source, Mapping):
        return _checked(dict(source), "<dict>", None, None, env)
    if source is None:
        named = env.get(_PATH_VARIABLE)
        return _read(Path(named), f" ({_PATH_VARIABLE})", env) if named else Config(Root())
    return _read(Path(source), "", env)


def loads(text: str, *, source: str = "<text>", env: Mapping[str, str] | None = None) -> Config:
    """A checked configuration from its JSON5 text, which cannot include files.

    Raises:
        ConfigError: as `load`; faults know their line.
    """
    raw, doubled = parse(text)
    main = Source("", source, text, doubled)
    return _checked(raw, source, main, None, os.environ if env is None else env)


def _read(path: Path, origin: str, env: Mapping[str, str]) -> Config:
    try:
        text = read_text(path)
    except (OSError, UnicodeDecodeError, RuntimeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        remedy = "name another file, or correct its permissions or encoding (UTF-8)"
        fault = ConfigFault("", "file", f"{path}{origin} cannot be read: {reason}", remedy=remedy)
        raise ConfigError((fault,)) from error
    raw, doubled = parse(text)
    return _checked(raw, str(path), Source("", str(path), text, doubled), path, env)


def _checked(raw: Any, source: str, main: Source | None, path: Path | None, env: Mapping[str, str]) -> Config:
    try:
        return _checked_whole(raw, source, main, path, env)
    except RecursionError:
        fault = ConfigFault("", "syntax", "is nested too deeply", remedy="take objects out of objects")
        raise ConfigError((fault,)) from None


def _checked_whole(raw: Any, source: str, main: Source | None, path: Path | None, env: Mapping[str, str]) -> Config:
    includes = Includes(path)
    if main is None or INCLUDE in main.text:
        raw = includes.filled(raw)
    if not isinstance(raw, dict):
        fault = ConfigFault("", "root", f"must be an object, not {show(raw)}", remedy="put { } around the settings")
        raise ConfigError((fault, *includes.faults))
    pruned = prune(raw)
    variables = Variables(env, raw)
    missing = list(_unset(raw, variables, pruned))
    faults = [*includes.faults, *pruned.faults, *missing]
    data = variables.filled(pruned.data)
    faults += [*roster_faults(data), *tool_faults(data), *pool_faults(data), *limit_faults(data)]
    root = None
    try:
        root = Root.model_validate(data, context={"unlock": _unlocked(data)})
    except ValidationError as error:
        told = {fault.path for fault in missing}
        faults.extend(fault for fault in value_faults(error) if fault.path not in told)
    sources = [*includes.sources, *([main] if main is not None else [])]
    faults = _placed([with_remedy(fault) for fault in faults], sources)
    if faults or root is None:
        raise ConfigError(tuple(faults))
    lists = list_notices(a2a(root).allow, a2a_path(root, "allow"))
    notices = (*pruned.notices, *lists, *_pending(pruned.data, (), ""))
    return Config(root, tuple(sorted(pruned.tolerated)), source, notices)


def _unlocked(data: dict[str, Any]) -> bool:
    here: Any = data
    for key in ("ray", "limits", "unlock"):
        here = here.get(key) if isinstance(here, dict) else None
    return here is True


def _unset(raw: dict[str, Any], variables: Variables, pruned: Pruned) -> Iterator[ConfigFault]:
    """Names that are not set: faults where the value is ours, else notices."""
    for path, name in unset(raw, variables):
        if any(path == one or path.startswith((f"{one}.", f"{one}[")) for one in pruned.tolerated):
            text = f"{name} is not set; it is not needed here"
            pruned.notices.append(Notice(path, NoticeKind.VARIABLE, text))
        else:
            remedy = f"set {name} in the environment or under env.vars; $${{{name}}} stands for the text itself"
            yield ConfigFault(path, "variable", f"needs the variable {name}, which is not set", remedy=remedy)


def _pending(value: Any, steps: tuple[str | int, ...], path: str) -> Iterator[Notice]:
    """Keys that are there, checked, and do not act yet."""
    if isinstance(value, dict):
        for key, one in value.items():
            yield from _pending(one, (*steps, str(key)), join(path, str(key)))
    elif steps == ("agents", "list"):
        for at, one in enumerate(value):
            yield from _pending(one, (*steps, at), join(path, at))
    elif not_yet(steps):
        yield Notice(path, NoticeKind.PENDING, "accepted, not yet in effect")


# --------------------------------------------------------------------------- where the faults are


def _placed(faults: list[ConfigFault], sources: list[Source]) -> list[ConfigFault]:
    """The faults with their lines, in the order of the text, and those of keys that are there two times."""
    doubled = [source for source in sources if source.doubled]
    twice = [
        ConfigFault(path, "duplicate", "is there two times", None, line, "remove one of the two", _file(source))
        for source in doubled
        for path, line in source.positions.doubled
    ]
    known = [fault if fault.line is not None else _with_line(fault, sources) for fault in faults]
    return sorted([*twice, *known], key=lambda fault: (fault.file or "", fault.line or 0))


def _file(source: Source) -> str | None:
    return source.name if source.mount else None


def _with_line(fault: ConfigFault, sources: list[Source]) -> ConfigFault:
    """The line of a fault's key, else of the closest thing around it; the source that counts more knows better."""
    path = fault.path
    while path:
        holders = [source for source in reversed(sources) if path in source.positions.lines]
        shared = path.endswith("]") and len(sources) > 1 and _is_shared(path, sources)
        if holders and not shared:
            return replace(fault, line=holders[0].positions.lines[path], file=fault.file or _file(holders[0]))
        path = path[: max(path.rfind("."), path.rfind("["), 0)]
    return fault


def _is_shared(path: str, sources: list[Source]) -> bool:
    """Whether the list that holds a position was put together from two files, which counts its places anew."""
    whole = path[: path.rfind("[")]
    return sum(source.mount == whole or whole in source.positions.lines for source in sources) > 1
