"""``openclaw-ray doctor``: what would keep the other commands from working here, and what to do about it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from openclaw_ray.cli.exits import FAILED, OK
from openclaw_ray.cli.output import JsonLines, kept_for_data
from openclaw_ray.cli.table import print_table

if TYPE_CHECKING:
    from openclaw_ray.cli.doctor_facts import Facts

__all__ = ["doctor", "look"]

_SHOWN = 5
"""Leftovers that are named where a person reads."""


@click.command("doctor", short_help="Check this machine, the cluster and the configuration.")
@click.option("--json", "as_json", is_flag=True, help="All findings as one JSON object.")
@click.option("--address", metavar="ADDR", help="Ray cluster to reach.  [default: RAY_ADDRESS, else none]")
@click.option(
    "--config",
    "config_file",
    metavar="FILE",
    type=click.Path(dir_okay=False),
    help="Configuration (JSON5).  [default: OPENCLAW_CONFIG_PATH, else ~/.openclaw/openclaw.json]",
)
@click.option("--state", metavar="DIR", help="State dir.  [default: that of named runtimes, ~/.openclaw/ray]")
@click.option("--fix", "mend", is_flag=True, help="Let go of tombstones; print what to take out of allowlists.")
@click.option("--name", metavar="NAME", help="--fix: of this live runtime.  [default: all on this machine]")
def doctor(
    as_json: bool, address: str | None, config_file: str | None, state: str | None, mend: bool, name: str | None
) -> int:
    """Check Ray, the cluster at --address, limits of this machine, the state dir and the configuration.

    Nothing is changed without --fix: state that dead runtimes have left is listed, never deleted. With it, sessions of
    live runtimes that restarts do not resume any more (they have a tombstone) are let go, and each id that an allowlist
    of the configuration names without there being such an agent is printed with its place: the file itself is yours,
    and is never written. A cluster is given 30 seconds to answer.

    \b
    Exit status: 0 nothing failed (there may be warnings), 1 something did.
    """
    from openclaw_ray.cli.doctor_checks import Verdict, check_all

    with kept_for_data():
        facts = look(address, config_file, state)
        found = check_all(facts)
        failed = any(check.verdict is Verdict.FAIL for check in found)
        for stale in facts.stale_allowed if mend else ():
            click.echo(f"note: to take out: {stale}", err=True)
        for runtime, key in _mended(mend, name):
            click.echo(f"note: {key} of runtime {runtime} is resumed again after a restart", err=True)
        if as_json:
            leftovers = [each.to_json() for each in facts.leftovers]
            JsonLines().write({"ok": not failed, "checks": [c.to_json() for c in found], "leftovers": leftovers})
        else:
            rows = ((c.verdict.value, c.name, _in_a_line(c.detail, c.remedy)) for c in found)
            print_table(("", "check", "what was seen, and what to do"), rows)
            died = [each for each in facts.leftovers if each.unended != 0]
            for each in died[:_SHOWN]:
                click.echo(f"note: died with something un-ended: {each.path}", err=True)
            if (more := len(died) - _SHOWN) > 0:
                click.echo(f"note: … and {more} more (--json has all)", err=True)
    return FAILED if failed else OK


def _mended(mend: bool, name: str | None) -> list[tuple[str, str]]:
    if not mend:
        return []
    from openclaw_ray.cli.doctor_fix import clear_tombstones

    return clear_tombstones(name)


def _in_a_line(*texts: str) -> str:
    """Errors of Ray and of the configuration have several lines."""
    return "; ".join(" ".join(text.split()) for text in texts if text)


def look(address: str | None, config_file: str | None, state: str | None) -> Facts:
    """Gather the facts. Tests put others here."""
    from openclaw_ray.cli.doctor_gather import gather

    return gather(address, config_file, state)
