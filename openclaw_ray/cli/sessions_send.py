"""``openclaw-ray sessions send``: a message to a session of a live runtime."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from openclaw_ray.cli.exits import FAILED, OK
from openclaw_ray.cli.live import live_option, open_live
from openclaw_ray.cli.opening import seconds
from openclaw_ray.cli.output import JsonLines, data_stream, printable
from openclaw_ray.cli.tools import sender_of
from openclaw_ray.core.message import MessageMode

if TYPE_CHECKING:
    from openclaw_ray.core.policy import Sender
    from openclaw_ray.core.sent import Sent

__all__ = ["send"]

_NOT_WELL = ("error", "timeout", "forbidden")


@click.command("send", short_help="Send a message to a session and wait for its reply.")
@click.argument("to")
@click.argument("message")
@click.option("--label", "is_label", is_flag=True, help="TO is a label.")
@click.option("--agent", metavar="ID", help="With --label: only sessions of this agent.")
@click.option(
    "--timeout",
    metavar="S",
    type=float,
    callback=seconds,
    default=30.0,
    show_default=True,
    help="Seconds to wait for the reply; 0: do not wait.",
)
@click.option(
    "--mode",
    type=click.Choice([mode.value for mode in MessageMode]),
    help="What becomes of it; notify starts no turn.  [default: a turn of its own]",
)
@click.option("--from", "requester", metavar="KEY", help="The session that it is from; its rules hold.")
@click.option(
    "--sender",
    metavar="WHO",
    callback=sender_of,
    help="Who wrote it, as a key of tools.toolsBySender: channel:telegram:42, id:42, username:ada.",
)
@click.option("--json", "as_json", is_flag=True, help="What became of it as one JSON object.")
@live_option
def send(
    to: str,
    message: str,
    is_label: bool,
    agent: str | None,
    timeout: float | None,
    mode: str | None,
    requester: str | None,
    sender: Sender | None,
    as_json: bool,
    name: str | None,
) -> int:
    """Send MESSAGE to the session TO of a live runtime, and print its reply.

    TO is a session key, a session id, or an agent id for its main session. A message that was accepted is handled
    also when nobody waits for it any more.

    \b
    Exit status: 0 accepted, with or without a reply; 1 it was refused or its turn failed; 2 no such runtime.
    """
    with open_live(name) as view:
        sent: Sent = view.runtime.send(
            None if is_label else to,
            message,
            timeout or 0.0,
            label=to if is_label else None,
            agent_id=agent,
            mode=mode,
            requester=requester,
            **({} if sender is None else {"sender": sender}),
        )
    if as_json:
        JsonLines().write(sent.to_json())
    elif sent.reply is not None:
        data_stream().write("\n".join(printable(line) for line in sent.reply.splitlines()) + "\n")
        data_stream().flush()
    more = f", {sent.turns} turns of replies, {sent.ended}" if sent.turns else ""
    why = f": {sent.error}" if sent.error else ""
    click.echo(f"note: {sent.status.value} (run {sent.run_id} of {sent.session_key}{more}){why}", err=True)
    return FAILED if sent.status.value in _NOT_WELL else OK
