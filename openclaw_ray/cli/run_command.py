"""``openclaw-ray run``: one message to an agent, its tree live, and its reply once the tree has settled.

1. The message and the app file are read and checked before anything is started.
2. The agent's main session is asked. ``--timeout`` bounds the whole answer: when it is over, all is stopped.
3. The reply goes to standard output, or one JSON object with the tree; the tree is read from the registry, after the
   end, so that it is whole.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import click

from openclaw_ray.cli.app_file import AppFile, load_app
from openclaw_ray.cli.exits import FAILED, OK, CommandError, OutputClosed
from openclaw_ray.cli.interrupt import Interrupt
from openclaw_ray.cli.live_tree import show_tree
from openclaw_ray.cli.opening import LiveRuntime, Place, open_runtime, place_options, seconds
from openclaw_ray.cli.output import JsonLines, data_stream
from openclaw_ray.cli.run_tree import nested_tree, rows_since

if TYPE_CHECKING:
    from openclaw_ray.core.results import Result

__all__ = ["VALUE_MAX_BYTES", "Answer", "run_command", "value_fields"]

VALUE_MAX_BYTES = 64 << 10
"""Bytes of JSON that a returned value may have in the output; a larger one is shown by its repr."""
_REPR_MAX = 2_000
_PAGE = 500


@dataclass(frozen=True, slots=True)
class Answer:
    """How a question ended.

    Attributes:
        fields: `Result.to_json` of the run (camelCase).
        value: what the agent returned, as JSON-ready fields; see `value_fields`.
        failure: the error that stands for it, `None` if it ended well.
    """

    fields: dict[str, Any]
    value: dict[str, object] = field(default_factory=dict)
    failure: Exception | None = None

    def to_json(self, tree: dict[str, object] | None) -> dict[str, object]:
        """One object; what is absent is `None`."""
        whole: dict[str, object] = {name: self.fields.get(name) for name in ("status", "text")}
        whole |= {"value": None, **self.value}
        whole |= {name: self.fields.get(name) for name in ("error", "runtimeMs", "usage", "runId", "sessionKey")}
        whole |= {name: self.fields[name] for name in ("missing", "textTruncated", "partial") if name in self.fields}
        return {**whole, "tree": tree}


@click.command("run", short_help="Ask an agent and wait for its whole tree.")
@click.argument("message")
@click.option("--app", metavar="FILE", required=True, help="Python file with agents.")
@click.option("--agent", metavar="ID", help="Which of its agents to ask.  [default: main, else the only one]")
@click.option(
    "--timeout", metavar="S", type=float, callback=seconds, help="Seconds to the answer, then all is stopped; 0: none."
)
@click.option("--json", "as_json", is_flag=True, help="The outcome and the tree as one JSON object.")
@click.option("--no-progress", is_flag=True, help="Nothing on standard error but errors and notes.")
@place_options
def run_command(
    message: str,
    app: str,
    agent: str | None,
    timeout: float | None,
    as_json: bool,
    no_progress: bool,
    **place: str | None,
) -> int:
    """Send MESSAGE to an agent of --app and wait until the tree of sessions that it starts has settled.

    With - the message is read from standard input. The tree is shown on standard error while it works; the
    final reply goes to standard output. With --json it is one object: status, text, value, error, runtimeMs,
    usage, and the tree, each session with its children.

    \b
      openclaw-ray run --app app.py "summarise the three reports"
      git diff | openclaw-ray run --app review.py --agent reviewer --json -

    Ctrl-C stops the tree and exits; a second one ends at once.

    \b
    Exit status: 0 ok, 1 it failed, 2 usage or configuration,
                 130 interrupted, 141 the reader of the output went away.
    """
    text = _message(message)
    loaded = load_app(app)
    agent_id = _pick(loaded, agent)
    with (
        Interrupt() as interrupt,
        open_runtime(
            loaded.agents.values(), Place(**place), interrupt, app_dir=loaded.path.resolve().parent
        ) as runtime,
    ):
        with show_tree(runtime.events(), fold=_leaves(loaded, agent_id), wanted=not no_progress) as view:
            interrupt.note = view.note
            answer = _ask(runtime, agent_id, text, timeout or None)
            if interrupt.exit_code is not None:
                # a stopped run ends before what is below it; this stop is over when all of it has ended
                runtime.stop(runtime.root_key)
        if as_json:
            JsonLines().write(answer.to_json(_tree(runtime, answer)))
        if interrupt.exit_code is not None:
            return interrupt.exit_code
        if answer.failure is not None and not as_json:
            raise answer.failure
        if not as_json:
            _print_reply(answer, agent_id)
        return OK if answer.failure is None else FAILED


def value_fields(value: object) -> dict[str, object]:
    """A returned value for JSON: itself if it is JSON of at most `VALUE_MAX_BYTES`, else its repr, which is marked."""
    if value is None:
        return {"value": None}
    try:
        if len(json.dumps(value, allow_nan=False)) <= VALUE_MAX_BYTES:
            return {"value": value}
    except (TypeError, ValueError, RecursionError):
        pass
    from openclaw_ray.agents.text import short_repr

    return {"value": short_repr(value, _REPR_MAX), "valueIsRepr": True}


def _ask(runtime: LiveRuntime, agent_id: str, text: str, timeout: float | None) -> Answer:
    from openclaw_ray.core.errors import AskTimeout, RunError

    try:
        result: Result[Any] = runtime.ask(agent_id, text, timeout=timeout)
    except RunError as error:
        return Answer(error.result_json, failure=error)
    except AskTimeout as error:
        runtime.stop(error.session_key)
        why = f"not settled within {error.seconds:g} s (--timeout); everything was stopped"
        fields = {
            "status": "timeout",
            "error": {"type": "timeout", "message": why, "cause": "timeout"},
            "runId": error.run_id,
            "sessionKey": error.session_key,
            "runtimeMs": round(error.seconds * 1000),
        }
        return Answer(fields, failure=CommandError(f"{error.session_key}: {why}", FAILED))
    return Answer(result.to_json(), value_fields(result.value))


def _tree(runtime: LiveRuntime, answer: Answer) -> dict[str, object] | None:
    run_id = str(answer.fields.get("runId", ""))
    rows = list(rows_since(_rows(runtime, str(answer.fields.get("sessionKey", ""))), run_id))
    return nested_tree(rows, run_id)


def _rows(runtime: LiveRuntime, root: str) -> Iterator[dict[str, Any]]:
    offset = 0
    while page := runtime.runs(limit=_PAGE, offset=offset, root=root):
        yield from page
        offset += len(page)


def _message(message: str) -> str:
    if message != "-":
        text = message
    elif sys.stdin is None:
        raise CommandError("standard input is closed; give the message as an argument")
    else:
        text = sys.stdin.buffer.read().decode("utf-8", "replace").rstrip("\r\n")
    if not text.strip():
        raise CommandError("the message is empty")
    return text


def _pick(loaded: AppFile, agent: str | None) -> str:
    return loaded.pick("main" if agent is None and "main" in loaded.agents else agent)


def _leaves(loaded: AppFile, asked: str) -> tuple[str, ...]:
    """Agents that may have no children are counted under their requester, not shown one by one."""
    from openclaw_ray.agents.info import agent_info

    return tuple(key for key, value in loaded.agents.items() if key != asked and not agent_info(value).spawns)


def _print_reply(answer: Answer, agent_id: str) -> None:
    text = answer.fields.get("text")
    if text is None:
        click.echo(f"note: {agent_id} succeeded and delivered no output", err=True)
        return
    try:
        out = data_stream()
        out.buffer.write(text.encode("utf-8", "backslashreplace") + (b"" if text.endswith("\n") else b"\n"))
        out.buffer.flush()
    except BrokenPipeError:
        raise OutputClosed from None
    except OSError as error:
        raise CommandError(f"cannot write to standard output: {error.strerror}", FAILED) from error
    if answer.fields.get("textTruncated"):
        click.echo("note: the reply was longer and has been cut; return large data as a value (--json)", err=True)
