"""``${NAME}`` in a configuration: values from the environment, as OpenClaw has them.

1. In text values only, never in keys; names are upper-case letters, digits and ``_``. ``$${NAME}`` stands for the
   text ``${NAME}``; anything else with a ``$`` stays as it is.
2. The environment counts first, then ``env.vars`` of the file itself (older files: ``env``). Empty is not set.
3. A name that is not set is a fault where we use the value; in a section that is only tolerated it is not needed.
4. The value of a set one is never shown: a text made so remembers how it was written, and that is what faults and
   ``config show`` print.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from openclaw_ray.config._text import join

__all__ = ["FromEnv", "Variables", "as_written", "unset"]

_REFERENCE: Final = re.compile(r"(\$?)\$\{([A-Z_][A-Z0-9_]*)\}")


class FromEnv(str):
    """A text with values of the environment in it.

    Attributes:
        written: how it stands in the file.
    """

    __slots__ = ("written",)
    written: str

    def __new__(cls, value: str, written: str) -> FromEnv:
        made = super().__new__(cls, value)
        made.written = written
        return made

    def __reduce__(self) -> tuple[type[FromEnv], tuple[str, str]]:
        return FromEnv, (str(self), self.written)


def as_written(value: Any) -> Any:
    """The value with every `FromEnv` in it as it stands in the file."""
    if isinstance(value, FromEnv):
        return value.written
    if isinstance(value, dict):
        return {as_written(key): as_written(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [as_written(one) for one in value]
    return value


class Variables:
    """What ``${NAME}`` stands for (2).

    Args:
        env: the environment.
        raw: the parsed file.
    """

    def __init__(self, env: Mapping[str, str], raw: Mapping[str, Any]) -> None:
        own = raw.get("env")
        own = own if isinstance(own, dict) else {}
        listed = own.get("vars")
        self._layers = (env, listed if isinstance(listed, dict) else {}, own)

    def get(self, name: str) -> str | None:
        """The value of a name; `None` if it is not set."""
        for layer in self._layers:
            value = layer.get(name)
            if isinstance(value, str) and value:
                return value
        return None

    def filled(self, value: Any) -> Any:
        """The value with all texts in it filled in; names that are not set stay as they are."""
        if isinstance(value, str):
            return self._text(value) if "${" in value else value
        if isinstance(value, dict):
            return {key: self.filled(one) for key, one in value.items()}
        if isinstance(value, list | tuple):
            return [self.filled(one) for one in value]
        return value

    def _text(self, text: str) -> str:
        secret = False

        def put(found: re.Match[str]) -> str:
            nonlocal secret
            if found[1]:
                return found[0][1:]
            value = self.get(found[2])
            secret = secret or value is not None
            return found[0] if value is None else value

        made = _REFERENCE.sub(put, text)
        return FromEnv(made, text) if secret else made


def unset(value: Any, variables: Variables, path: str = "") -> Iterator[tuple[str, str]]:
    """(path, name) of every reference to a name that is not set."""
    if isinstance(value, str) and "${" in value:
        for escaped, name in _REFERENCE.findall(value):
            if not escaped and variables.get(name) is None:
                yield path, name
    elif isinstance(value, dict):
        for key, one in value.items():
            yield from unset(one, variables, join(path, str(key)))
    elif isinstance(value, list | tuple):
        for at, one in enumerate(value):
            yield from unset(one, variables, join(path, at))
