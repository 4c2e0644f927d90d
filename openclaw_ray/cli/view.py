"""Looking at a runtime from outside: a live one by its name, or one that has gone, by its state on disk."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from typing import Protocol, TypeVar

import click

__all__ = ["StateView", "open_view", "view_options"]

Command = TypeVar("Command", bound=Callable[..., object])


class StateView(Protocol):
    """One runtime, read only.

    Attributes:
        source: what is looked at, for people: the runtime's name and its state dir.
    """

    @property
    def source(self) -> str:
        """See the class."""

    def runs(self) -> Iterator[Mapping[str, object]]:
        """All runs, newest first: ``runId``, ``sessionKey``, ``agentId``, ``state``, ``runtimeMs``, …."""

    def log(self, key: str) -> Iterator[bytes] | None:
        """What a session's processes wrote, in pieces; `None` if there is no such session."""


def open_view(name: str | None, state_dir: str | None) -> AbstractContextManager[StateView]:
    """Open a runtime for looking at.

    Args:
        name: connect to this live runtime; `None` reads from disk.
        state_dir: its state dir; `None` means the usual place of ``name``, or the newest runtime on this
            machine.

    Raises:
        OpenClawRayError: there is none, with what there is instead.
    """
    from openclaw_ray.runtime import places

    view: AbstractContextManager[StateView] = places.open_view(name=name, state_dir=state_dir)
    return view


def view_options(command: Command) -> Command:
    """The options ``--name`` and ``--state``."""
    for option in (
        click.option("--state", metavar="DIR", help="Read this state dir.  [default: of the newest runtime]"),
        click.option("--name", metavar="NAME", help="Ask the live runtime NAME."),
    ):
        command = option(command)
    return command
