"""``openclaw-ray auth``: which credentials an agent has in reach, in which order, and why not others; no secrets."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from openclaw_ray.cli.exits import OK, CommandError
from openclaw_ray.cli.opening import config_source
from openclaw_ray.cli.output import JsonLines, kept_for_data
from openclaw_ray.cli.table import print_table

if TYPE_CHECKING:
    from openclaw_ray.config import Config

__all__ = ["auth", "configured_view"]


@click.command("auth", short_help="Show which credentials an agent has in reach.")
@click.argument("target", metavar="AGENT_OR_KEY")
@click.option("--json", "as_json", is_flag=True, help="All of it as one JSON object.")
@click.option("--name", metavar="NAME", help="Ask this live runtime.  [default: read the configuration and the stores]")
@click.option(
    "--config",
    "config_file",
    metavar="FILE",
    type=click.Path(exists=True, dir_okay=False),
    help="Configuration (JSON5).  [default: OPENCLAW_CONFIG_PATH, else ~/.openclaw/openclaw.json]",
)
def auth(target: str, as_json: bool, name: str | None, config_file: str | None) -> int:
    """Show the credential profiles that an agent, or the agent of a session, can use: for each provider in the order in
    which they are tried, where each comes from, until when one rests, and why others are left out.

    Secrets are not shown. `next` marks what a turn would get now; `shared` is the default agent's store, the fallback.
    """
    if name is not None:
        from openclaw_ray.cli.live import open_live

        with open_live(name) as view:
            try:
                found = view.runtime.auth(target)
            except KeyError:
                text = f"no session {target!r} in {view.source}; `openclaw-ray sessions list` lists the keys"
                raise CommandError(text) from None
    else:
        from openclaw_ray.config import load

        with kept_for_data():
            found = configured_view(load(config_source(config_file)), target)
    if as_json:
        JsonLines().write(found)
        return OK
    for store in found["stores"]:
        click.echo(f"note: {_store(store)}", err=True)
    if found["isolated"]:
        click.echo("note: the shared store is left out by ray.authIsolation", err=True)
    if not found["stores"] and not found["isolated"]:
        click.echo("note: no store is configured: set agents.entries.<id>.agentDir or ray.auth.dir", err=True)
    rows = [row for provider in found["providers"] for row in _rows(provider)]
    print_table(("provider", "profile", "type", "store", "state"), rows)
    return OK


def configured_view(config: Config, target: str) -> dict[str, Any]:
    """What an agent has in reach by the configuration and the stores of this machine, see `Runtime.auth`.

    Raises:
        CommandError: ``target`` is neither an agent id nor a session key.
    """
    from openclaw_ray.core.auth import AuthRules
    from openclaw_ray.core.keys import normalise_agent_id
    from openclaw_ray.store.auth_view import view_stores
    from openclaw_ray.store.secrets import SecretReader

    parts = target.split(":")
    agent = normalise_agent_id(parts[1] if len(parts) > 2 and parts[0] == "agent" else target)
    if agent is None:
        raise CommandError(f"{target!r} is neither an agent id nor a session key (agent:<id>:…)")
    rules = config.agent_limits(agent).auth or AuthRules()
    return view_stores(
        agent,
        rules,
        now=round(time.time() * 1000),
        resolves=SecretReader(rules.secrets, os.environ).reachable,
    )


def _store(store: Mapping[str, Any]) -> str:
    what = f"{store['store']} store: {Path(store['path'])}"
    if "error" in store:
        return f"{what}: {store['error']}"
    return f"{what}, mode {store['mode']}" if "mode" in store else f"{what}: there is none"


def _rows(provider: Mapping[str, Any]) -> Iterator[tuple[object, ...]]:
    for row in provider["order"]:
        state = ["next"] if row["profileId"] == provider["next"] else []
        if "cooldownUntil" in row:
            state.append(f"rests until {_moment(row['cooldownUntil'])}")
        if "expires" in row:
            state.append(f"expires {_moment(row['expires'])}")
        yield provider["provider"], row["profileId"], row["type"], row["source"], ", ".join(state)
    for row in provider["excluded"]:
        yield provider["provider"], row["profileId"], None, None, f"not used: {row['reason']}"


def _moment(milliseconds: int) -> str:
    try:
        return datetime.fromtimestamp(milliseconds / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    except (ValueError, OverflowError, OSError):
        return str(milliseconds)
