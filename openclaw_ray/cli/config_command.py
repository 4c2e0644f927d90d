"""``openclaw-ray config …``: whether a configuration is in order, what it amounts to, and what may be in one."""

from __future__ import annotations

import dataclasses
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from openclaw_ray.cli.exits import OK, USAGE, CommandError, OutputClosed
from openclaw_ray.cli.output import JsonLines, data_stream, printable

if TYPE_CHECKING:
    from openclaw_ray.config import Config, Setting
    from openclaw_ray.core.errors import ConfigFault

__all__ = ["config"]

_JSON = click.option("--json", "as_json", is_flag=True, help="JSON instead of text.")
_FILE = click.argument("file", required=False, type=click.Path(path_type=Path))
_CONFIG = click.option(
    "--config", "config_file", metavar="FILE", type=click.Path(path_type=Path), help="The same, as for other commands."
)


@click.group(short_help="Check, show and describe configurations.", no_args_is_help=False)
def config() -> None:
    """Check, show and describe configurations (JSON5).

    FILE is the one that OPENCLAW_CONFIG_PATH names if none is given, else ~/.openclaw/openclaw.json, else there is
    none and the defaults hold.
    """


@config.command("check", short_help="Say what is wrong with a configuration.")
@_FILE
@_CONFIG
@_JSON
def check(file: Path | None, config_file: Path | None, as_json: bool) -> int:
    """Say what is wrong with a configuration: one line for each fault, with its path and the way out.

    Of one that is in order it lists what does not act: keys of ours that are not in effect yet, and real OpenClaw
    keys that are tolerated. Exit code 0 if it is in order, 2 if it is faulty.
    """
    from openclaw_ray.config import ConfigError

    try:
        loaded = _load(_one(file, config_file))
    except ConfigError as error:
        _tell_faults(error.faults, as_json)
        return USAGE
    if as_json:
        JsonLines().write(
            {
                "ok": True,
                "source": loaded.source,
                "rev": loaded.rev,
                "faults": [],
                "notices": [dataclasses.asdict(notice) for notice in loaded.notices],
                "tolerated": list(loaded.tolerated),
            }
        )
    else:
        _tell_order(loaded)
    return OK


@config.command("show", short_help="Print a configuration's values.")
@_FILE
@_CONFIG
@click.option("--effective", is_flag=True, help="Every value in force, the defaults too.")
@click.option("--agent", metavar="ID", help="Only what holds for one agent.")
@_JSON
def show(file: Path | None, config_file: Path | None, effective: bool, agent: str | None, as_json: bool) -> int:
    """Print the values that a configuration sets, each with the place where it is set.

    What the environment puts in is shown as it is written, as ${NAME}. With --json it is one object a line.
    """
    loaded = _load(_one(file, config_file))
    try:
        found = [one for one in loaded.settings(agent=agent) if effective or _is_set(one, agent)]
    except ValueError as error:
        raise CommandError(f"{error}; `openclaw-ray config show` lists agents.ids") from None
    if as_json:
        output = JsonLines()
        for one in found:
            output.write(dataclasses.asdict(one))
    else:
        for one in found:
            value = json.dumps(one.value, ensure_ascii=False)
            origin = "" if one.origin in (one.name, "default") else f"  ({one.origin})"
            _print(f"{one.name} = {value}{origin}")
    return OK


@config.command("schema", short_help="Print what may be in a configuration.")
@click.option("--table", "as_table", is_flag=True, help="A Markdown table: key, type, default, meaning.")
@_JSON
def schema(as_table: bool, as_json: bool) -> int:
    """Print the JSON Schema of configurations, for editors.

    Keys of OpenClaw that are only tolerated are in it, too, without what is below them.
    """
    from openclaw_ray import config as library

    if as_table and as_json:
        output = JsonLines()
        for row in library.rows():
            output.write(dataclasses.asdict(row))
    elif as_table:
        _print(library.table().rstrip("\n"))
    else:
        _print(json.dumps(library.json_schema(), ensure_ascii=False, indent=None if as_json else 2))
    return OK


def _one(file: Path | None, config_file: Path | None) -> Path | None:
    if file is not None and config_file is not None:
        raise click.UsageError("give the file once: as FILE, or with --config FILE")
    return config_file if file is None else file


def _load(file: Path | None) -> Config:
    from openclaw_ray.config import load

    if file is None and not os.environ.get("OPENCLAW_CONFIG_PATH"):
        usual = Path.home() / ".openclaw" / "openclaw.json"
        file = usual if usual.is_file() else None
    return load(file)


def _is_set(one: Setting, agent: str | None) -> bool:
    """Whether the file says so itself; what an agent has from the defaults is told once, with the defaults."""
    inherited = one.name.startswith("agent:") and one.origin.startswith("agents.defaults.")
    return one.origin != "default" and not (inherited and agent is None)


def _tell_faults(faults: tuple[ConfigFault, ...], as_json: bool) -> None:
    if as_json:
        rows: list[dict[str, Any]] = [dataclasses.asdict(fault) for fault in faults]
        JsonLines().write({"ok": False, "faults": rows})
        return
    for fault in faults:
        _print(str(fault))
    click.echo(f"{len(faults)} fault{'s' if len(faults) > 1 else ''}; nothing would be started with this", err=True)


def _tell_order(loaded: Config) -> None:
    from openclaw_ray.config import NoticeKind

    _print(f"ok: {loaded.source}")
    headings = {
        NoticeKind.LIST: "lists that mean more or less than they look",
        NoticeKind.PENDING: "not yet in effect",
        NoticeKind.RETIRED: "retired in OpenClaw, without effect",
        NoticeKind.VARIABLE: "variables that are not set and not needed",
    }
    for kind, heading in headings.items():
        found = [notice for notice in loaded.notices if notice.kind is kind]
        if found:
            _print(f"{heading}:")
        for notice in found:
            _print(f"  {notice.path}" + ("" if kind is NoticeKind.PENDING else f": {notice.text}"))
    if loaded.tolerated:
        _print("tolerated, without effect:")
    for path in loaded.tolerated:
        _print(f"  {path}")


def _print(text: str) -> None:
    try:
        data_stream().write("".join(printable(line) + "\n" for line in text.split("\n")))
        data_stream().flush()
    except BrokenPipeError:
        raise OutputClosed from None
