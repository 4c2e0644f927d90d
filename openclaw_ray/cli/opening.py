"""The runtime that a command works on: the options that choose it, its opening and its closing."""

from __future__ import annotations

import contextlib
import math
import os
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import click

from openclaw_ray.cli.output import kept_for_data

if TYPE_CHECKING:
    from openclaw_ray.cli.interrupt import Interrupt
    from openclaw_ray.core.events import Event
    from openclaw_ray.core.results import Result, StopReport

__all__ = ["LiveRuntime", "Place", "config_source", "open_runtime", "place_options", "seconds", "start_runtime"]

Command = TypeVar("Command", bound=Callable[..., object])


class LiveRuntime(Protocol):
    """What the commands use of `openclaw_ray.Runtime`."""

    @property
    def root_key(self) -> str:
        """Session key of this client's own root, which all its maps hang under."""

    def imap(
        self,
        agent_id: str,
        items: Iterable[object],
        *,
        width: int | None = None,
        timeout: float | None = None,
        retries: int = 0,
        map_id: str | None = None,
        failed_only: bool = False,
    ) -> Iterator[Result[Any]]:
        """Results in order; takes items as it needs them, and over what an earlier try of a named map has done."""

    def map(self, agent_id: str, items: Iterable[object]) -> list[Result[Any]]:
        """All results, in order."""

    def ask(self, to: str, text: str, timeout: float | None = None) -> Result[Any]:
        """Send a message to an agent and wait until the tree that it started has settled; raises if it did not go
        well."""

    def runs(self, *, limit: int = 100, offset: int = 0, **filters: Any) -> list[dict[str, Any]]:
        """Rows of runs, newest first."""

    def stop(self, key: str) -> StopReport:
        """Stop a session and all below it."""

    def events(self) -> Iterator[Event]:
        """Events as they are journaled, until the runtime closes."""

    def stats(self) -> object:
        """Figures of the runtime so far."""

    def close(self, *, force: bool = False) -> None:
        """End everything that this runtime started."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a command's runtime lives.

    Attributes:
        name: the runtime's name, `None` for one that is gone with the command.
        state: its state dir.
        address: of a running Ray cluster; `None` means ``RAY_ADDRESS``, or a Ray of its own.
        config: a configuration file.
    """

    name: str | None = None
    state: str | None = None
    address: str | None = None
    config: str | None = None


def place_options(command: Command) -> Command:
    """The options ``--name``, ``--state``, ``--address`` and ``--config``."""
    for option in (
        click.option(
            "--config",
            metavar="FILE",
            type=click.Path(exists=True, dir_okay=False),
            help="Configuration (JSON5).  [default: OPENCLAW_CONFIG_PATH, else ~/.openclaw/openclaw.json]",
        ),
        click.option(
            "--address",
            metavar="ADDR",
            help="Ray cluster to use.  [default: RAY_ADDRESS, else a Ray of its own]",
        ),
        click.option("--state", metavar="DIR", help="State dir.  [default: ~/.openclaw/ray/NAME, or a temporary one]"),
        click.option("--name", metavar="NAME", callback=_check_name, help="Name of the runtime; its state is kept."),
    ):
        command = option(command)
    return command


@contextlib.contextmanager
def open_runtime(
    agents: Iterable[object],
    place: Place,
    interrupt: Interrupt,
    *,
    app_dir: Path | None = None,
    config: dict[str, object] | None = None,
) -> Iterator[LiveRuntime]:
    """Start a runtime that signals stop; it is closed at the end whatever happens.

    Args:
        agents: what it can run.
        place: where it lives.
        interrupt: the entered context that watches signals.
        app_dir: folder that the agents import their own modules from.
        config: settings to use where the user gave no ``--config``; the user's own default file is not read
            then.
    """
    with kept_for_data():
        runtime = start_runtime(list(agents), place, app_dir=app_dir, config=config)
        try:
            interrupt.attach(stop=lambda: runtime.stop(runtime.root_key), force=lambda: runtime.close(force=True))
            yield runtime
        finally:
            interrupt.end_input()
            runtime.close()


def start_runtime(
    agents: list[object], place: Place, *, app_dir: Path | None, config: dict[str, object] | None
) -> LiveRuntime:
    """Start the real runtime; its warnings become notes. Tests put a double here."""
    import openclaw_ray as oc

    if place.address is not None:
        os.environ["RAY_ADDRESS"] = place.address
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        runtime: LiveRuntime = oc.Runtime.start(
            config=config_source(place.config, config),
            agents=agents,
            name=place.name,
            state_dir=place.state,
            app_dir=app_dir,
        )
    for warning in caught:
        if warning.category is UserWarning:
            click.echo(f"note: {warning.message}", err=True)
    return runtime


def seconds(ctx: click.Context, param: click.Parameter, value: float | None) -> float | None:
    """The callback of an option that takes seconds, 0 for no limit."""
    if value is not None and not (math.isfinite(value) and value >= 0):
        raise click.BadParameter(f"{value} is not a number of seconds; 0 means no limit", ctx, param)
    return value


def _check_name(ctx: click.Context, param: click.Parameter, name: str | None) -> str | None:
    if name is not None:
        from openclaw_ray.store.places import check_name

        try:
            check_name(name)
        except ValueError as error:
            raise click.BadParameter(str(error), ctx, param) from None
    return name


def config_source(file: str | None, config: dict[str, object] | None = None) -> dict[str, object] | Path | None:
    """The command line's habit (DESIGN.md 7); `None` leaves ``OPENCLAW_CONFIG_PATH`` to the library.

    Args:
        file: what ``--config`` says.
        config: settings to use where it says nothing.
    """
    if file is not None:
        return Path(file)
    if config is not None:
        return config
    usual = Path.home() / ".openclaw" / "openclaw.json"
    return usual if "OPENCLAW_CONFIG_PATH" not in os.environ and usual.is_file() else None
