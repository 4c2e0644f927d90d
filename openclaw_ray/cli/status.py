"""``openclaw-ray status``: which runtimes live, and how one of them is."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator, Mapping
from typing import Any

import click

from openclaw_ray.cli.exits import FAILED, OK
from openclaw_ray.cli.listing import Listing, format_options
from openclaw_ray.cli.output import data_stream, kept_for_data

__all__ = ["status"]


@click.command(short_help="Show the runtimes that live here, or one of them.")
@click.option("--name", metavar="NAME", help="The runtime NAME alone, in full.  [default: all]")
@click.option("--address", metavar="ADDR", help="Ray cluster to look in.  [default: found by the name, RAY_ADDRESS]")
@format_options
def status(listing: Listing, name: str | None, address: str | None) -> int:
    """Show which runtimes live, what they have at work, and on what: sessions, processes, lanes, limits, memory.

    With --address or RAY_ADDRESS those of that Ray, else all of this machine.

    \b
    Exit status: 0 all of them answer, 1 one does not, 2 there is none of this name.
    """
    if address is not None:
        os.environ["RAY_ADDRESS"] = address
    with kept_for_data():
        rows = [_row(name)] if name is not None else list(_all())
    if listing.form == "table" and name is not None:
        _print_one(rows[0])
    elif listing.form == "table" and not rows:
        where = "in this Ray" if os.environ.get("RAY_ADDRESS") else "on this machine"
        click.echo(f"note: no runtime lives {where}; `openclaw-ray up --name NAME` starts one", err=True)
    else:
        listing.show(rows, _COLUMNS, _cells, right=("queued", "running", "paused", "processes"))
    return FAILED if any("error" in row for row in rows) else OK


_COLUMNS = ("name", "ends with", "up", "queued", "running", "paused", "processes", "address", "state")


def _all() -> Iterator[dict[str, Any]]:
    """Every live runtime that can be reached from here."""
    from openclaw_ray.cli.alive import alive_names

    for name in alive_names():
        try:
            yield _row(name)
        except Exception as error:  # noqa: BLE001 - one that does not answer is a row, too
            yield {"name": name, "error": str(error).splitlines()[0] if str(error) else type(error).__name__}


def _row(name: str) -> dict[str, Any]:
    """One runtime as it is now.

    Raises:
        RuntimeNotFound, RayUnreachable, RuntimeUnavailable: it cannot be looked at.
    """
    from openclaw_ray.runtime.runtime import Runtime

    with Runtime.connect(name) as runtime:
        facts = runtime.facts()
        stats = runtime.stats()
        states = dict.fromkeys(("queued", "running", "paused"), 0)
        for row in runtime.runs(state=list(states), limit=100_000):
            states[row["state"]] += 1
        return {
            "name": name,
            **facts,
            "address": runtime.ray_address,
            "agents": sorted(runtime.agents()),
            "runs": states,
            "stats": stats.to_json(),
        }


def _cells(row: Mapping[str, Any]) -> tuple[object, ...]:
    if "error" in row:
        return (row["name"], None, None, None, None, None, None, None, f"does not answer: {row['error']}")
    runs, actors = row["runs"], row["stats"].get("actors", {})
    return (
        row["name"],
        row["lifetime"],
        _age(row["since"]),
        runs["queued"],
        runs["running"],
        runs["paused"],
        sum(actors.values()),
        row["address"],
        row["stateDir"],
    )


def _print_one(row: Mapping[str, Any]) -> None:
    out, stats = data_stream(), row["stats"]
    ends = {"owner": "with the process that started it", "clients": "with its last client", "service": "by `down`"}
    lines = [
        ("runtime", f"{row['name']}, up for {_age(row['since'])}, ends {ends.get(row['lifetime'], row['lifetime'])}"),
        ("ray", row["address"]),
        ("state", row["stateDir"]),
        ("agents", ", ".join(row["agents"]) or "none"),
        ("runs", ", ".join(f"{count} {state}" for state, count in row["runs"].items())),
        ("processes", f"{_counts(stats.get('actors', {}))} (of at most {stats['poolMax']})"),
        ("activations", f"{stats['sessionsStarted']} ({stats['warmActivations']} on a process that was there)"),
        ("memory", f"{stats['memoryBytes'] / 1e6:.0f} MB of the processes on the registry's host"),
        ("registry", f"incarnation {stats['registryIncarnation']}, {row['stepCpuP99Ms']} ms CPU a step (p99)"),
    ]
    lines += [(f"lane {lane}", f"{taken} of {width or 'any'} taken") for lane, width, taken in row["lanes"]]
    lines += [
        (f"limit {limit}", f"{counts['held']} in, {counts['waiting']} waiting")
        for limit, counts in stats.get("limits", {}).items()
    ]
    lines += [("waiting", f"{run}: {why}") for run, why in list(stats.get("waiting", {}).items())[:_WAITING]]
    width = max(len(name) for name, _ in lines)
    with contextlib.suppress(BrokenPipeError):
        for name, text in lines:
            print(f"{name:<{width}}  {text}", file=out)


_WAITING = 10


def _counts(actors: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {state}" for state, count in sorted(actors.items())) or "none"


def _age(since: float) -> str:
    from openclaw_ray.core.announce import duration

    return duration((time.time() - since) * 1000)
