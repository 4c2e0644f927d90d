"""The filters of ``openclaw-ray sessions list``: those of the tool ``sessions_list`` (SPEC.md B5)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

import click

from openclaw_ray.cli.view import StateView
from openclaw_ray.core.keys import normalise_key
from openclaw_ray.core.session_rows import KINDS

__all__ = ["list_options", "listed"]

Command = TypeVar("Command", bound=Callable[..., object])

_OPTIONS = (
    click.option("--kind", "kinds", type=click.Choice(KINDS), multiple=True, help="Only sessions of this kind."),
    click.option("--label", metavar="TEXT", help="Only sessions of this label."),
    click.option("--search", metavar="TEXT", help="Only where key, label, task name or task has this text."),
    click.option("--spawned-by", metavar="KEY", help="Only children of this session."),
    click.option("--active", is_flag=True, help="Only what is at work, or has something below it that is."),
    click.option("--active-minutes", metavar="N", type=click.IntRange(min=1), help="Only what changed since then."),
    click.option("--no-subagents", is_flag=True, help="Only top-level sessions."),
    click.option("--archived", is_flag=True, help="Only deleted ones."),
    click.option("--titles", is_flag=True, help="With --json: a title made from what each one was asked."),
)


def list_options(command: Command) -> Command:
    """The options of a list."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def listed(view: StateView, options: Mapping[str, Any], filters: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Rows of the sessions that these options, and ``filters`` by agent and state, leave."""
    named = {
        "label": options["label"],
        "search": options["search"],
        "spawnedBy": options["spawned_by"] and normalise_key(options["spawned_by"]),
        "activeMinutes": options["active_minutes"],
        "kinds": list(options["kinds"]),
        "activeOnly": options["active"],
        "excludeSubagents": options["no_subagents"],
        "includeDerivedTitles": options["titles"],
        "agentId": filters.get("agent"),
        "state": None if options["archived"] else filters.get("state"),
        "archived": options["archived"] or "all",
    }
    for found in view.listed({name: value for name, value in named.items() if value}):
        row = view.session(str(found["key"]))
        if row is not None:
            # the words of `sessions list` are those of the session itself; what its run shows stands beside it
            yield {**found, "displayStatus": found["status"], **row}
