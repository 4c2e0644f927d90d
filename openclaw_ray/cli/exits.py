"""How a command ends: its exit codes, and one readable message for whatever went wrong."""

from __future__ import annotations

import os
import sys
import traceback

import click

from openclaw_ray.cli.next_step import next_step

__all__ = [
    "BROKEN_PIPE",
    "FAILED",
    "INTERRUPTED",
    "OK",
    "USAGE",
    "CommandError",
    "Interrupted",
    "OutputClosed",
    "exit_code_of",
    "tell",
]

OK = 0
"""Everything asked for was done."""
FAILED = 1
"""It ran, and some of it failed."""
USAGE = 2
"""The command line, the app file, the configuration or a named place is wrong; no session was started."""
INTERRUPTED = 130
"""Ctrl-C, SIGTERM or SIGHUP; everything was stopped."""
BROKEN_PIPE = 141
"""The reader of standard output went away (as a shell shows SIGPIPE); everything was stopped."""


class CommandError(Exception):
    """A command cannot go on. Its text names the way out.

    Attributes:
        exit_code: `USAGE` unless said otherwise.
    """

    def __init__(self, message: str, exit_code: int = USAGE) -> None:
        super().__init__(message, exit_code)
        self.exit_code = exit_code

    def __str__(self) -> str:
        return str(self.args[0])


class Interrupted(Exception):
    """The command was interrupted; raised by `openclaw_ray.cli.interrupt`."""

    def __init__(self, exit_code: int) -> None:
        super().__init__(exit_code)
        self.exit_code = exit_code


class OutputClosed(Exception):
    """Nobody reads standard output any more; raised by `openclaw_ray.cli.output`."""


def exit_code_of(error: BaseException) -> int:
    """The exit code that ``error`` ends a command with."""
    from openclaw_ray.core import errors

    if isinstance(error, CommandError | Interrupted):
        return error.exit_code
    if isinstance(error, click.exceptions.Exit | click.ClickException):
        return error.exit_code
    if isinstance(error, KeyboardInterrupt | click.Abort):
        return INTERRUPTED
    if isinstance(error, OutputClosed | BrokenPipeError):
        return BROKEN_PIPE
    wrong_from_the_start = (
        errors.AgentImportError,
        errors.AgentNotPicklable,
        errors.ConfigError,
        errors.DuplicateAgent,
        errors.PoolTooSmall,
        errors.RayClientUnsupported,
        errors.RayUnreachable,
        errors.RuntimeInUse,
        errors.RuntimeNotFound,
        errors.StateDirError,
        errors.UnknownAgent,
    )
    return USAGE if isinstance(error, wrong_from_the_start) else FAILED


def tell(error: BaseException) -> None:
    """Say on standard error what went wrong; a traceback only with ``OPENCLAW_RAY_DEBUG=1``."""
    from openclaw_ray.core.errors import OpenClawRayError

    debug = os.environ.get("OPENCLAW_RAY_DEBUG", "") not in ("", "0")
    if isinstance(error, click.exceptions.Exit | Interrupted | OutputClosed | BrokenPipeError):
        return
    if debug:
        traceback.print_exception(error)
    if isinstance(error, KeyboardInterrupt | click.Abort):
        message = "interrupted"
    elif isinstance(error, click.UsageError):
        hint = f"; see {error.ctx.command_path} --help" if error.ctx else ""
        message = f"{error.format_message().rstrip('.')}{hint}"
    elif isinstance(error, click.ClickException):
        message = error.format_message()
    elif isinstance(error, CommandError | OpenClawRayError):
        message = str(error)
    else:
        hint = "" if debug else " (OPENCLAW_RAY_DEBUG=1 shows where)"
        message = f"{type(error).__name__}: {error}{hint}"
    click.echo(f"error: {message}", file=sys.stderr)
    if (step := next_step(error)) is not None:
        click.echo(f"next: {step}", file=sys.stderr)
