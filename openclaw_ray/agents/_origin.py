"""Where an agent's code comes from: its module, its source, and the folder its siblings import from.

What a driver's script defines goes to Ray's tasks and actors by value. Its module is ``__main__`` there, too, but that
one is Ray's own; so there its code says which file it is of, and its mark what that file was when it was read.
"""

from __future__ import annotations

import hashlib
import inspect
import os
import sys
import sysconfig
from dataclasses import dataclass
from functools import lru_cache
from types import CodeType, ModuleType
from typing import Any

__all__ = ["Origin", "is_installed", "mark_source", "module_of", "origin_of"]

_OWN_PACKAGE = __name__.partition(".")[0]
_SOURCE = "__openclaw_source__"
_RAYS_MAIN = os.sep + os.path.join("ray", "_private", "workers", "")


@dataclass(frozen=True, slots=True)
class Origin:
    """Where an agent was defined.

    Attributes:
        module: dotted name; ``__main__`` for a script.
        qualname: within the module.
        file: its source, or `None` (REPL, notebook).
        root: folder to have on ``sys.path`` so that the module's siblings import; `None` if it is installed.
        source: sha256 of the module's source, or `None`.
    """

    module: str
    qualname: str
    file: str | None
    root: str | None
    source: str | None

    def __str__(self) -> str:
        return f"{self.module}:{self.qualname} ({self.file or 'no file'})"


def module_of(agent: Any) -> ModuleType | None:
    """The module in which an agent function or class was defined, if it is still there."""
    return sys.modules.get(getattr(agent, "__module__", None) or "")


def origin_of(agent: Any) -> Origin:
    """The `Origin` of an agent function or class."""
    plain = inspect.unwrap(agent) if inspect.isfunction(agent) else agent
    module = module_of(plain)
    name = getattr(plain, "__module__", None) or "?"
    file = _file_of(plain, module)
    return Origin(
        module=name,
        qualname=getattr(plain, "__qualname__", type(plain).__qualname__),
        file=file,
        root=None if is_installed(module) else _root(module, name, file),
        source=getattr(agent, "__dict__", {}).get(_SOURCE) or _source_hash(file),
    )


def mark_source(agent: Any) -> None:
    """Note on an agent, as it is made, what its module's source is; the note goes with it to other processes."""
    plain = inspect.unwrap(agent) if inspect.isfunction(agent) else agent
    source = _source_hash(_file_of(plain, module_of(plain)))
    if source is not None:
        setattr(agent, _SOURCE, source)


def is_installed(module: ModuleType | None) -> bool:
    """True for modules that every node has: the standard library's, installed packages, this package."""
    if module is None:
        return False
    name = module.__name__
    if name.partition(".")[0] in (_OWN_PACKAGE, *sys.builtin_module_names):
        return True
    file = _file(module)
    if name == "__main__" or file is None:
        return False
    parts = file.split(os.sep)
    if "site-packages" in parts or "dist-packages" in parts:
        return True
    return any(file.startswith(sysconfig.get_paths()[kind] + os.sep) for kind in ("stdlib", "platstdlib"))


def _file_of(plain: Any, module: ModuleType | None) -> str | None:
    """The file that a function or class was written in."""
    if module is not None and module.__name__ != "__main__":
        return _file(module)
    own = _code_file(plain)
    if own is not None:
        return own
    main = _file(module)
    return None if main is None or _RAYS_MAIN in main else main


def _code_file(plain: Any) -> str | None:
    parts = vars(plain).values() if isinstance(plain, type) else (plain,)
    for part in parts:
        code = getattr(part, "__code__", None)
        if isinstance(code, CodeType) and os.path.isfile(code.co_filename):
            return os.path.abspath(code.co_filename)
    return None


def _file(module: ModuleType | None) -> str | None:
    file = getattr(module, "__file__", None)
    return os.path.abspath(file) if file and os.path.exists(file) else None


def _root(module: ModuleType | None, name: str, file: str | None) -> str:
    if file is None:
        return os.getcwd()
    # __main__ of `python -m package.module` is called by its true name in its spec
    spec = getattr(module, "__spec__", None)
    if spec is not None:
        name = spec.name
    folder = os.path.dirname(file)
    levels = name.count(".") + (os.path.basename(file) == "__init__.py")
    for _ in range(levels):
        folder = os.path.dirname(folder)
    return folder


def _source_hash(file: str | None) -> str | None:
    if file is None or not file.endswith((".py", ".pyw")):
        return None
    try:
        facts = os.stat(file)
        return _hash_of(file, facts.st_mtime_ns, facts.st_size)
    except OSError:
        return None


@lru_cache(maxsize=64)
def _hash_of(file: str, changed: int, size: int) -> str:
    """A class is made anew for each activation of its agent, and marked each time."""
    with open(file, "rb") as source:
        return hashlib.sha256(source.read()).hexdigest()
