"""A live runtime to change something in: found by its name, or because it is the only one here."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, TypeVar

import click

from openclaw_ray.cli.exits import CommandError
from openclaw_ray.cli.output import kept_for_data
from openclaw_ray.cli.view import LiveView
from openclaw_ray.core.errors_base import name_list

if TYPE_CHECKING:
    from openclaw_ray.cli.view import Row, StateView

__all__ = ["known_session", "live_option", "open_live"]

Command = TypeVar("Command", bound=Callable[..., object])


@contextlib.contextmanager
def open_live(name: str | None) -> Iterator[LiveView]:
    """Connect to the live runtime of this name, or to the only one that can be reached from here.

    Raises:
        CommandError: none was named, and there is none, or there are several.
        RuntimeNotFound, RayUnreachable: it is not there.
    """
    with kept_for_data(), LiveView.open(name if name is not None else _only_one()) as view:
        if name is None:
            click.echo(f"note: {view.source}", err=True)
        yield view


def known_session(view: StateView, key: str) -> Row:
    """The row of the session that a user names by KEY: a session key, or an agent id for its main session.

    Raises:
        CommandError: there is none.
    """
    from openclaw_ray.core.keys import main_key, normalise_agent_id, normalise_key

    row = view.session(normalise_key(key))
    agent_id = normalise_agent_id(key)
    if row is None and agent_id is not None:
        row = view.session(main_key(agent_id))
    if row is None:
        raise CommandError(f"no session {key!r} in {view.source}; `openclaw-ray sessions list` lists the keys")
    return row


def live_option(command: Command) -> Command:
    """The option ``--name`` of commands that need a live runtime."""
    text = "The live runtime NAME.  [default: the only one]"
    return click.option("--name", metavar="NAME", help=text)(command)


def _only_one() -> str:
    from openclaw_ray.cli.alive import alive_names

    alive = alive_names()
    if len(alive) != 1:
        place = "in the Ray at RAY_ADDRESS" if os.environ.get("RAY_ADDRESS") else "on this machine"
        what = f"{len(alive)} are alive {place} ({name_list(tuple(alive))})" if alive else f"none is alive {place}"
        raise CommandError(f"this needs a live runtime, and {what}: choose one with --name")
    return alive[0]
