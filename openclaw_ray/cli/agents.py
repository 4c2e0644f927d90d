"""``openclaw-ray agents list``: who can run, where it is written down, and what it may do."""

from __future__ import annotations

import inspect
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from openclaw_ray.cli.app_file import load_app
from openclaw_ray.cli.exits import OK
from openclaw_ray.cli.opening import config_source
from openclaw_ray.cli.output import JsonLines
from openclaw_ray.cli.table import print_table

if TYPE_CHECKING:
    from openclaw_ray.config import Config
    from openclaw_ray.core.limits import RuntimeLimits

__all__ = ["agent_rows", "agents"]


@click.group(short_help="List agents and their limits.", no_args_is_help=False)
def agents() -> None:
    """List agents and their limits."""


@agents.command("list", short_help="List agents of an app file and of the configuration.")
@click.option("--app", metavar="FILE", help="Python file with agents.")
@click.option(
    "--config",
    "config_file",
    metavar="FILE",
    type=click.Path(exists=True, dir_okay=False),
    help="Configuration (JSON5).  [default: OPENCLAW_CONFIG_PATH, else ~/.openclaw/openclaw.json]",
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object per line instead of a table.")
def list_agents(app: str | None, config_file: str | None, as_json: bool) -> int:
    """List the agents of --app and those that the configuration names, with their limits as they resolve here.

    An agent may name as target what `allowAgents` lists: itself alone where no list is set, `*` for all. Those
    that only the configuration names have no code here and cannot run.
    """
    import psutil

    from openclaw_ray.config import load
    from openclaw_ray.runtime.starting import fit_limits

    config = load(config_source(config_file))
    known = load_app(app).agents if app is not None else {}
    cpus = len(os.sched_getaffinity(0))
    limits, _, notes = fit_limits(config.runtime_limits(cpus=cpus), cpus, psutil.virtual_memory().available)
    for note in notes:
        click.echo(f"note: {note}", err=True)
    rows = agent_rows(known, config, limits)
    if as_json:
        output = JsonLines()
        for row in rows:
            output.write(row)
    else:
        columns = ("agent", "default", "spawns", "may name", "depth", "children", "at once", "origin")
        print_table(columns, map(_cells, rows), right=("depth", "children", "at once"))
    if not rows and app is None:
        click.echo("note: the configuration names no agents; --app FILE lists those of an app file", err=True)
    return OK


def agent_rows(known: Mapping[str, object], config: Config, limits: RuntimeLimits) -> list[dict[str, Any]]:
    """A row for each agent: those with code in the order of their file, then those that are named only.

    Args:
        known: agent functions and classes by id.
        config: the configuration that holds for them.
        limits: those of the whole runtime.
    """
    from openclaw_ray.agents.info import agent_info
    from openclaw_ray.agents.tools.catalog import tool_name
    from openclaw_ray.runtime.opening import default_agent

    ids = [*known, *(named for named in config.named_agents if named not in known)]
    marked = default_agent(config, list(known))
    rows = []
    for agent_id in ids:
        info = agent_info(known[agent_id]) if agent_id in known else None
        own = config.agent_limits(agent_id)
        rows.append(
            {
                "id": agent_id,
                "origin": _origin(known[agent_id]) if agent_id in known else config.source,
                "code": agent_id in known,
                "configured": own.configured,
                "default": agent_id == marked,
                "spawns": None if info is None else info.spawns,
                "resumable": None if info is None else info.resumable,
                "followUp": None if info is None else info.follow_up,
                "tools": None if info is None else [tool_name(tool) for tool in info.tools],
                "allowAgents": [agent_id] if own.allow_agents is None else list(own.allow_agents),
                "allowAgentsPath": own.allow_path,
                "requireAgentId": own.require_agent_id,
                "maxSpawnDepth": limits.max_spawn_depth,
                "maxChildrenPerAgent": limits.max_children,
                "maxConcurrent": limits.max_concurrent,
                "runTimeoutSeconds": limits.run_timeout_seconds,
                "resources": dict(own.resources),
            }
        )
    return rows


def _origin(agent: object) -> str:
    """Where an agent function or class is written: ``file:line``, the file relative to here if it is below."""
    plain = inspect.unwrap(agent) if inspect.isfunction(agent) else agent
    try:
        file = inspect.getsourcefile(plain)  # type: ignore[arg-type]
        line = inspect.getsourcelines(plain)[1]  # type: ignore[arg-type]
    except (OSError, TypeError):
        return getattr(plain, "__module__", None) or "?"
    shown = os.path.relpath(str(file))
    return f"{file if shown.startswith(os.pardir) else shown}:{line}"


def _cells(row: Mapping[str, Any]) -> tuple[object, ...]:
    spawns = {True: "yes", False: "no", None: "no code"}[row["spawns"]]
    return (
        row["id"],
        "default" if row["default"] else None,
        spawns,
        ", ".join(row["allowAgents"]) or "nobody",
        row["maxSpawnDepth"],
        row["maxChildrenPerAgent"],
        row["maxConcurrent"],
        row["origin"],
    )
