"""Programs of their own, for what a test process can be only once: a host of Ray, a driver, a script of a user's."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import openclaw_ray
from openclaw_ray.testing.leaks import ProcessMark

__all__ = ["Program", "run_program"]

_SOURCE = str(Path(openclaw_ray.__file__).parent.parent)
_AGENTS = str(Path(__file__).parent.parent / "ray")


class Program:
    """How a program has ended.

    Attributes:
        code: its exit status.
        output, errors: what it wrote.
    """

    def __init__(self, done: subprocess.CompletedProcess[str]) -> None:
        self.code = done.returncode
        self.output = done.stdout
        self.errors = done.stderr

    def answer(self) -> Any:
        """The JSON of its last line.

        Raises:
            AssertionError: it failed, or said nothing.
        """
        assert self.code == 0, f"exit {self.code}\n{self.output[-2000:]}\n{self.errors[-4000:]}"
        lines = [line for line in self.output.splitlines() if line.startswith(("{", "["))]
        assert lines, self.errors[-4000:]
        return json.loads(lines[-1])


def run_program(
    source: str | Path,
    *arguments: str,
    cwd: Path | None = None,
    env: dict[str, str | None] | None = None,
    timeout: float = 90.0,
    nothing_left: bool = True,
) -> Program:
    """Run a script, or Python source, to its end, and see that no process of it is left.

    Args:
        env: changes to this process's environment; `None` takes a name out.
        nothing_left: whether that is looked at.
    """
    mark = ProcessMark()
    environment = mark.environment()
    environment |= {"PYTHONPATH": os.pathsep.join((_SOURCE, _AGENTS)), "PYTHONWARNINGS": "error::UserWarning"}
    environment.pop("RAY_ADDRESS", None)
    for name, value in (env or {}).items():
        if value is None:
            environment.pop(name, None)
        else:
            environment[name] = value
    what = [str(source)] if isinstance(source, Path) else ["-c", textwrap.dedent(source)]
    done = subprocess.run(
        [sys.executable, *what, *arguments],
        cwd=cwd,
        env=environment,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
    if nothing_left:
        mark.assert_none(timeout=10.0)
    return Program(done)
