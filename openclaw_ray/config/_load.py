"""Loading a configuration: read, parse, take out what is not ours, check, and tell all faults at once."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from openclaw_ray.config._config import Config
from openclaw_ray.config._faults import pool_faults, roster_faults, value_faults
from openclaw_ray.config._keys import prune
from openclaw_ray.config._model import Root
from openclaw_ray.config._text import parse, positions
from openclaw_ray.config._types import show
from openclaw_ray.core.errors import ConfigError, ConfigFault

__all__ = ["load", "loads"]

_PATH_VARIABLE = "OPENCLAW_CONFIG_PATH"


def load(
    source: Config | str | Path | dict[str, Any] | None = None, *, env: Mapping[str, str] = os.environ
) -> Config:
    """A checked configuration.

    Args:
        source: a path (``~`` is understood), a dict as the parsed file would be, an already checked
            configuration, or `None`: the file that ``OPENCLAW_CONFIG_PATH`` names, else the defaults.
                ``~/.openclaw`` is not looked
            into (DESIGN.md 7).
        env: where the variable is looked up.

    Raises:
        ConfigError: with all faults at once: unreadable (kind ``file``), not JSON5 (``syntax``), not an
            object (``root``), keys written two times (``duplicate``) or unknown (``unknown``), values of the
            wrong sort (``type``), out of range (``range``) or without sense (``value``), keys that are
            ``missing``.
    """
    if isinstance(source, Config):
        return source
    if isinstance(source, dict):
        return _checked(source, "<dict>", None)
    if source is None:
        named = env.get(_PATH_VARIABLE)
        return _read(Path(named), f" ({_PATH_VARIABLE})") if named else Config(Root())
    return _read(Path(source), "")


def loads(text: str, *, source: str = "<text>") -> Config:
    """A checked configuration from its JSON5 text.

    Raises:
        ConfigError: as `load`; faults know their line.
    """
    raw, doubled = parse(text)
    return _checked(raw, source, text, doubled=doubled)


def _read(path: Path, origin: str) -> Config:
    try:
        text = path.expanduser().read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError, RuntimeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise ConfigError((ConfigFault("", "file", f"{path}{origin} cannot be read: {reason}"),)) from error
    return loads(text, source=str(path))


def _checked(raw: Any, source: str, text: str | None, *, doubled: bool = False) -> Config:
    if not isinstance(raw, dict):
        raise ConfigError((ConfigFault("", "root", f"must be an object, not {show(raw)}"),))
    pruned = prune(raw)
    faults = [*pruned.faults, *roster_faults(pruned.data), *pool_faults(pruned.data)]
    try:
        root = Root.model_validate(pruned.data, context={"unlock": _unlocked(pruned.data)})
    except ValidationError as error:
        faults.extend(value_faults(error))
    if doubled or (faults and text is not None):
        faults = _placed(faults, text or "")
    if faults:
        raise ConfigError(tuple(faults))
    return Config(root, tuple(sorted(pruned.tolerated)), source)


def _unlocked(data: dict[str, Any]) -> bool:
    here: Any = data
    for key in ("ray", "limits", "unlock"):
        here = here.get(key) if isinstance(here, dict) else None
    return here is True


def _placed(faults: list[ConfigFault], text: str) -> list[ConfigFault]:
    """The faults with their lines, in the order of the text, and those of keys that are there two times."""
    where = positions(text)
    twice = [ConfigFault(path, "duplicate", "is there two times", line=line) for path, line in where.doubled]
    known = [replace(fault, line=_line(fault.path, where.lines)) for fault in faults]
    return sorted([*twice, *known], key=lambda fault: fault.line or 0)


def _line(path: str, lines: dict[str, int]) -> int | None:
    """The line of a path, else of the closest thing around it."""
    while path and path not in lines:
        path = path[: max(path.rfind("."), path.rfind("["), 0)]
    return lines.get(path)
