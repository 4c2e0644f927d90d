"""A benchmark as a script: ``python benchmarks/NAME.py [--quick] [--SIZE VALUE]`` prints one JSON object."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from typing import TextIO

from openclaw_ray.bench.budget import Column, budget_of, missed
from openclaw_ray.bench.catalogue import ABOUT, configuration, find, parse_setting, run_one
from openclaw_ray.bench.rig import Rig

__all__ = ["main"]


def main(name: str, arguments: Sequence[str] | None = None) -> int:
    """Run one benchmark, print its result.

    Returns:
        0; 1 if it failed or a line of the budget that it measured is missed; 2 for a size that is none.
    """
    benchmark = find(name)
    parser = argparse.ArgumentParser(
        description=f"{ABOUT[name]}.", epilog="Exit status: 0, or 1 if it failed or a line of the budget is missed."
    )
    parser.add_argument("--quick", action="store_true", help="smaller sizes")
    parser.add_argument("--json", action="store_true", help="no progress on standard error")
    parser.add_argument("--against", choices=["first", "final"], default="final", help="which column of the budget")
    for size, value in benchmark.FULL.items():
        quick = json.dumps(benchmark.QUICK[size])
        parser.add_argument(f"--{size.replace('_', '-')}", metavar="JSON", help=f"{json.dumps(value)}; quick: {quick}")
    given = parser.parse_args(arguments)
    try:
        settings = [
            parse_setting(f"{size}={text}") for size in benchmark.FULL if (text := getattr(given, size)) is not None
        ]
        configuration(benchmark, quick=given.quick, settings=settings)
    except ValueError as error:
        parser.error(str(error))
    out = _own_stdout()
    with Rig((lambda line: None) if given.json else _say) as rig:
        result = run_one(rig, name, quick=given.quick, settings=settings)
    standings = [each for each in budget_of([result], Column(given.against)) if each.line.benchmark == name]
    result["budget_lines"] = [each.to_json() for each in standings]
    json.dump(result, out, indent=2)
    out.write("\n")
    out.close()
    return 1 if result.get("failed") or missed(standings) else 0


def _own_stdout() -> TextIO:
    """Standard output for the result alone; what Ray prints to its driver goes to standard error from now on."""
    sys.stdout.flush()
    own = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    return own


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
