"""``openclaw-ray tools KEY``: what a session may call, and which rule decided (SPEC.md E)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from openclaw_ray.cli.exits import OK, CommandError
from openclaw_ray.cli.live import live_option, open_live
from openclaw_ray.cli.output import JsonLines
from openclaw_ray.cli.table import print_table

if TYPE_CHECKING:
    from openclaw_ray.core.policy import Decision, Sender, ToolView

__all__ = ["sender_of", "tools"]


def sender_of(context: click.Context, option: click.Parameter, text: str | None) -> Sender | None:
    """The value of a ``--sender``."""
    from openclaw_ray.core.policy import Sender

    if text is None:
        return None
    try:
        return Sender.read(text)
    except ValueError as error:
        raise click.BadParameter(str(error), context, option) from None


@click.command("tools", short_help="Show which tools a session may call, and why.")
@click.argument("key")
@click.option("--json", "as_json", is_flag=True, help="One JSON object instead of a table.")
@click.option(
    "--config",
    "config_file",
    metavar="FILE",
    type=click.Path(exists=True, dir_okay=False),
    help="Ask this configuration (JSON5) instead of a runtime; KEY is an agent id then.",
)
@click.option(
    "--depth",
    metavar="N",
    type=click.IntRange(min=0),
    help="With --config: the tools of its sessions at depth N.  [default: 0, the main session]",
)
@click.option(
    "--sender",
    metavar="WHO",
    callback=sender_of,
    help="In a turn that answers this sender, by a key of toolsBySender: channel:telegram:42, id:42, username:ada.",
)
@click.option("--model", metavar="MODEL", help="With --config: of a session with this provider/model.")
@click.option("--sandboxed", is_flag=True, help="With --config: of a sandboxed session.")
@live_option
def tools(
    key: str,
    as_json: bool,
    config_file: str | None,
    depth: int | None,
    sender: Sender | None,
    model: str | None,
    sandboxed: bool,
    name: str | None,
) -> int:
    """Show each tool that there is: whether the session KEY may call it, and the rule that decided.

    KEY is a session key, or an agent id for its main session, which need not be there yet. A turn that runs keeps the
    rules of its first look at its tools; shown are those in force, for the senders behind the turn that runs or is
    next.

    \b
    Exit status: 0 shown, 2 no such session, agent or runtime.
    """
    if config_file is not None:
        if name is not None:
            raise CommandError("--config asks a file and --name a runtime: give one of them")
        view = _by_config(key, config_file, depth or 0, sender, model, sandboxed)
    elif depth is not None or model is not None or sandboxed:
        option = "--depth" if depth is not None else "--model" if model is not None else "--sandboxed"
        raise CommandError(f"{option} is for --config; a session of a runtime has its own")
    else:
        view = _by_runtime(key, name, sender)
    if as_json:
        JsonLines().write(view.to_json())
        return OK
    title = f"{view.session_key or view.agent_id}: agent {view.agent_id}, depth {view.depth}, {view.role}"
    print_table(("tool", "may", "rule", "where"), map(_cells, view), title=title)
    return OK


def _by_runtime(key: str, name: str | None, sender: Sender | None) -> ToolView:
    with open_live(name) as live:
        try:
            view: ToolView = live.runtime.tools(key, **({} if sender is None else {"sender": sender}))
        except KeyError:
            what = f"no session or agent {key!r} in {live.source}"
            raise CommandError(f"{what}; `openclaw-ray sessions list` lists the keys") from None
        return view


def _by_config(
    agent_id: str, config_file: str, depth: int, sender: Sender | None, model: str | None, sandboxed: bool
) -> ToolView:
    from openclaw_ray.agents.tools import TOOLS
    from openclaw_ray.config import load
    from openclaw_ray.core.auth import model_parts
    from openclaw_ray.core.keys import main_key, normalise_agent_id
    from openclaw_ray.core.policy import effective_tools

    agent = normalise_agent_id(agent_id)
    if agent is None:
        raise CommandError(f"not an agent id: {agent_id!r}; with --config, KEY is one")
    config = load(config_file)
    limits = config.agent_limits(agent)
    settings = limits.settings
    if model is None and settings is not None:
        model = (settings.child_model if depth else None) or settings.model
    provider, model = model_parts(model)
    return effective_tools(
        config.runtime_limits(cpus=1).tools,
        limits.tools,
        agent_id=agent,
        depth=depth,
        max_spawn_depth=config.max_spawn_depth,
        universe=TOOLS,
        sandboxed=sandboxed,
        provider=provider,
        model=model,
        sender=sender,
        session_key="" if depth else main_key(agent),
    )


def _cells(one: Decision) -> tuple[object, ...]:
    if one.rule == "none":
        return one.tool, "yes", "", ""
    where = one.path or "built in"
    if one.entry:
        where = f"{where}: {one.entry}"
    elif not one.allowed:
        where = f"{where}: not named"
    return one.tool, "yes" if one.allowed else "no", one.rule, where
