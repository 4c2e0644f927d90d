"""``$include``: parts of a configuration in files of their own, as OpenClaw has them.

1. ``{$include: "./a.json5"}`` stands for what is in that file; a list of files is merged in its order; keys beside
   the ``$include`` are merged over what was included.
2. Merging: objects key by key, lists one after the other, of anything else the later one wins.
3. Paths are relative to the file that they stand in. Every file must be inside of the main file's folder, links
   followed; at most 10 files deep and 2 MB each; no file may include itself, not even by way of others.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from openclaw_ray.config._text import Positions, join, parse, positions
from openclaw_ray.core.errors import ConfigError, ConfigFault

__all__ = ["INCLUDE", "Includes", "Source", "merged", "read_text"]

INCLUDE: Final = "$include"
_MOST_DEEP: Final = 10
_MOST_BYTES: Final = 2 << 20


@dataclass
class Source:
    """One text that a configuration was made of.

    Attributes:
        mount: path of the place that it fills; empty for the main file.
        name: the file, as it is told in faults.
        text: what it says.
        doubled: whether an object in it has a key two times.
    """

    mount: str
    name: str
    text: str
    doubled: bool

    @cached_property
    def positions(self) -> Positions:
        """Where its keys stand, with paths of the whole configuration."""
        found = positions(self.text)
        if not self.mount:
            return found
        lines = {_below(self.mount, path): line for path, line in found.lines.items()}
        return Positions(lines, [(_below(self.mount, path), line) for path, line in found.doubled])


def _below(mount: str, path: str) -> str:
    return mount + path if path.startswith("[") else join(mount, path)


def read_text(path: Path) -> str:
    """What a file says.

    Raises:
        OSError, UnicodeDecodeError, RuntimeError: it cannot be read.
    """
    return path.expanduser().read_text(encoding="utf-8")


def merged(under: Any, over: Any) -> Any:
    """Two values as one (2)."""
    if isinstance(under, list) and isinstance(over, list):
        return [*under, *over]
    if isinstance(under, dict) and isinstance(over, dict):
        both = dict(under)
        for key, value in over.items():
            both[key] = merged(both[key], value) if key in both else value
        return both
    return over


@dataclass
class Includes:
    """Fills a parsed configuration with what it includes.

    Attributes:
        main: the main file; `None` for a text or dict, which cannot include anything.
        sources: the files that were included; what counts more comes later.
        faults: what went wrong.
    """

    main: Path | None
    sources: list[Source] = field(default_factory=list)
    faults: list[ConfigFault] = field(default_factory=list)

    def filled(self, value: Any) -> Any:
        """``value`` with all its includes in place; those that are faulty are left out."""
        chain = () if self.main is None else (self.main.expanduser().absolute(),)
        return self._filled(value, "", chain)

    def _filled(self, value: Any, path: str, chain: tuple[Path, ...]) -> Any:
        if isinstance(value, list | tuple):
            return [self._filled(one, join(path, at), chain) for at, one in enumerate(value)]
        if not isinstance(value, dict):
            return value
        beside = {key: one for key, one in value.items() if key != INCLUDE}
        own = {key: self._filled(one, join(path, str(key)), chain) for key, one in beside.items()}
        if INCLUDE not in value:
            return own
        included = self._included(value[INCLUDE], path, chain)
        if not own:
            return included
        if not isinstance(included, dict):
            self._fault(path, chain, "has keys beside it, and what it includes is not an object")
            return own
        return merged(included, own)

    def _included(self, files: Any, path: str, chain: tuple[Path, ...]) -> Any:
        if isinstance(files, str):
            return self._file(files, path, chain)
        if not isinstance(files, list) or not all(isinstance(one, str) for one in files):
            self._fault(path, chain, "must be a file name or a list of file names")
            return {}
        made: Any = {}
        for one in files:
            made = merged(made, self._file(one, path, chain))
        return made

    def _file(self, name: str, path: str, chain: tuple[Path, ...]) -> Any:
        if not chain:
            self._fault(path, chain, "is relative to a file, and this configuration comes from none; load a file")
            return {}
        file = Path(os.path.normpath(chain[-1].parent / name))
        if why := self._barred(file, name, chain):
            self._fault(path, chain, why)
            return {}
        try:
            text = read_text(file)
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            self._fault(path, chain, f"{name}: cannot be read: {reason}")
            return {}
        try:
            raw, doubled = parse(text)
        except ConfigError as error:
            where = {"path": path, "file": str(file)}
            self.faults.extend(replace(fault, **where) for fault in error.faults)  # type: ignore[arg-type]
            return {}
        filled = self._filled(raw, path, (*chain, file))
        self.sources.append(Source(path, str(file), text, doubled))
        return filled

    def _barred(self, file: Path, name: str, chain: tuple[Path, ...]) -> str | None:
        """Why a file must not be included (3)."""
        root = chain[0].parent
        inside = file.is_relative_to(root) and Path(os.path.realpath(file)).is_relative_to(os.path.realpath(root))
        if not inside:
            return f"{name}: is outside of {root}; included files must be in the folder of the main file"
        if file in chain:
            return "includes itself: " + " → ".join(str(one) for one in (*chain, file))
        if len(chain) > _MOST_DEEP:
            return f"{name}: more than {_MOST_DEEP} files deep"
        if file.is_file() and file.stat().st_size > _MOST_BYTES:
            return f"{name}: more than {_MOST_BYTES >> 20} MB"
        return None

    def _fault(self, path: str, chain: tuple[Path, ...], text: str) -> None:
        file = str(chain[-1]) if len(chain) > 1 else None
        remedy = "correct the $include, or put the settings here"
        self.faults.append(ConfigFault(join(path, INCLUDE), "include", text, remedy=remedy, file=file))
