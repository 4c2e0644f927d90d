"""``openclaw-ray up``, ``down``: a runtime that lives on its own in a Ray that is there already."""

from __future__ import annotations

import os
import time
import warnings
from typing import TYPE_CHECKING, Any

import click

from openclaw_ray.cli.app_file import load_app
from openclaw_ray.cli.exits import FAILED, OK, CommandError
from openclaw_ray.cli.opening import Place, config_source, place_options
from openclaw_ray.cli.output import JsonLines, data_stream, kept_for_data

if TYPE_CHECKING:
    from openclaw_ray.runtime.runtime import Runtime

__all__ = ["down", "up"]


@click.command(short_help="Start a runtime that lives on until `down`.")
@click.option("--app", metavar="FILE", help="Python file with the agents that it can run.")
@click.option(
    "--recover/--no-recover",
    default=True,
    show_default=True,
    help="Have what an earlier start left un-ended go on.",
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
@place_options
def up(
    app: str | None,
    recover: bool,
    as_json: bool,
    name: str | None,
    state: str | None,
    address: str | None,
    config: str | None,
) -> int:
    """Start a runtime in a Ray that runs already, and leave it there: it ends with `openclaw-ray down --name NAME`.

    Programs, tasks and actors of the cluster join it with Runtime.connect(NAME). If it is up already it is left as it
    is; agents of --app that it does not have are added, and what it has otherwise than asked for is told.

    \b
    Exit status: 0 it is up, 2 it cannot be started so (no Ray there, configuration, app file, name in use).
    """
    if name is None:
        raise CommandError("up needs a name, by which it is found and taken down: --name NAME")
    agents = load_app(app) if app is not None else None
    with kept_for_data():
        runtime, notes = _started(
            Place(name, state, address, config),
            list(agents.agents.values()) if agents is not None else [],
            None if agents is None else str(agents.path.parent),
            recover,
        )
        try:
            row = _row(runtime)
        finally:
            runtime.close()
    for note in notes:
        click.echo(f"note: {note}", err=True)
    if as_json:
        JsonLines().write(row)
    else:
        out = data_stream()
        recovered = ", ".join(f"{count} {word}" for word, count in row["recovered"].items() if count)
        print(f"runtime {name} is up at {row['address']} (state: {row['stateDir']})", file=out)
        print(f"agents: {', '.join(row['agents']) or 'none yet'}", file=out)
        if recovered:
            print(f"recovered: {recovered}", file=out)
        print(f"join: openclaw_ray.Runtime.connect({name!r})   end: openclaw-ray down --name {name}", file=out)
    return OK


def _started(place: Place, agents: list[object], app_dir: str | None, recover: bool) -> tuple[Runtime, list[str]]:
    """The runtime, started or found, and what is to be told of it.

    Raises:
        RuntimeInUse: a process owns the runtime of this name.
    """
    import openclaw_ray as oc
    from openclaw_ray.core.errors import RayUnreachable

    if place.address is not None:
        os.environ["RAY_ADDRESS"] = place.address
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        try:
            runtime = oc.Runtime.start(
                config=config_source(place.config),
                agents=agents,
                name=place.name,
                state_dir=place.state,
                app_dir=app_dir,
                if_exists="connect",
                recover=recover,
                service=True,
            )
        except RayUnreachable as error:
            if place.address or os.environ.get("RAY_ADDRESS"):
                raise
            text = "no Ray runs on this machine for it to live in: `ray start --head` first, or give --address"
            raise CommandError(f"{text} ({error})") from error
        if runtime.facts()["lifetime"] != "service":
            runtime.close()
            text = f"runtime {place.name!r} is alive, but it is no service: it ends with the process that has it"
            raise CommandError(f"{text}; choose another name, or end it first")
        missing = [agent for agent in agents if _id_of(agent) not in runtime.agents()]
        if missing:
            runtime.register(missing, app_dir=app_dir)
    notes = [str(warning.message) for warning in caught if warning.category is UserWarning]
    if missing:
        notes.append(f"added to it: {', '.join(_id_of(agent) for agent in missing)}")
    return runtime, notes


def _id_of(agent: object) -> str:
    from openclaw_ray.agents.info import agent_info

    return agent_info(agent).id


def _row(runtime: Runtime) -> dict[str, Any]:
    return {
        "name": runtime.name,
        "address": runtime.ray_address,
        "stateDir": str(runtime.state_dir),
        "agents": sorted(runtime.agents()),
        "recovered": dict(runtime.recovered),
    }


@click.command(short_help="End a runtime that was started with `up`.")
@click.option("--name", metavar="NAME", required=True, help="Of the runtime.")
@click.option("--keep", is_flag=True, help="Do not stop what is at work: the next `up` of this name goes on with it.")
@click.option("--force", is_flag=True, help="Also one that a process owns, or that does not answer.")
@click.option("--address", metavar="ADDR", help="Ray cluster that it is in.  [default: found by the name, RAY_ADDRESS]")
@click.option("--json", "as_json", is_flag=True, help="The report as one JSON object.")
def down(name: str, keep: bool, force: bool, address: str | None, as_json: bool) -> int:
    """Stop all that the runtime NAME has at work, end its processes, and give its name back. Its state stays on disk.

    \b
    Exit status: 0 it is gone, 1 some of it could not be stopped in time and was ended with its process, 2 there is no
    such runtime, or it is not for this command.
    """
    from openclaw_ray.runtime.service import down as take_down

    if address is not None:
        os.environ["RAY_ADDRESS"] = address
    began = time.monotonic()
    with kept_for_data():
        report = take_down(name, keep=keep, force=force)
    if as_json:
        JsonLines().write(report.to_json())
    else:
        kept = f", {report.unended} left for the next `up`" if keep else ""
        ended = f", {report.unended} ended with their processes" if report.unended and not keep else ""
        took = time.monotonic() - began
        print(f"runtime {name} is down: {report.stopped} stopped{kept}{ended} ({took:.1f} s)", file=data_stream())
        if report.state_dir:
            print(f"its state stays in {report.state_dir}", file=data_stream())
    return FAILED if report.unended and not keep else OK
