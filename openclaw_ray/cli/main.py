"""The entry point of ``openclaw-ray``: the commands, and what becomes of an error."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import metadata

import click

from openclaw_ray.cli import exits
from openclaw_ray.cli.agents import agents
from openclaw_ray.cli.auth import auth
from openclaw_ray.cli.bench import bench
from openclaw_ray.cli.config_command import config
from openclaw_ray.cli.demo import demo
from openclaw_ray.cli.doctor import doctor
from openclaw_ray.cli.map_command import map_command
from openclaw_ray.cli.output import discard_output
from openclaw_ray.cli.run_command import run_command
from openclaw_ray.cli.runs import runs
from openclaw_ray.cli.sessions import sessions
from openclaw_ray.cli.status import status
from openclaw_ray.cli.tasks import tasks
from openclaw_ray.cli.tools import tools
from openclaw_ray.cli.top import top
from openclaw_ray.cli.up import down, up

__all__ = ["cli", "main", "run"]


def _print_version(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
    if not wanted or ctx.resilient_parsing:
        return
    try:
        version = metadata.version("openclaw_ray")
    except metadata.PackageNotFoundError:
        version = "not installed"
    click.echo(f"openclaw-ray {version}")
    ctx.exit()


@click.group(context_settings={"help_option_names": ["-h", "--help"]}, invoke_without_command=True)
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_version,
    help="Show the version.",
)
@click.pass_context
def cli(ctx: click.Context) -> None:
    """Trees of isolated agent sessions on a Ray cluster.

    Data goes to standard output, progress to standard error. OPENCLAW_RAY_DEBUG=1 shows tracebacks.
    """
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


_WORK = (demo, run_command, map_command, up, down, status, top)
_LOOK = (agents, auth, bench, runs, sessions, tasks, tools, config, doctor)
for _command in (*_WORK, *_LOOK):
    cli.add_command(_command)


def run(args: Sequence[str] | None = None) -> int:
    """Run one command line and return its exit code; errors are told on standard error.

    Args:
        args: what follows the program's name; ``sys.argv[1:]`` if not given.
    """
    try:
        code = cli.main(args=None if args is None else list(args), prog_name="openclaw-ray", standalone_mode=False)
        sys.stdout.flush()
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 - told, with a traceback if wanted
        exits.tell(error)
        code = exits.exit_code_of(error)
    if code == exits.BROKEN_PIPE:
        discard_output()
    return code if isinstance(code, int) else exits.OK


def main() -> None:
    """The console script."""
    sys.exit(run())


if __name__ == "__main__":
    main()
