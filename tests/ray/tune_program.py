"""A Ray Tune trial that has a tree at work when it is pruned: ``tune_program.py PLACE``; prints what became of it."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

from ray import tune
from ray.tune.schedulers import FIFOScheduler

import openclaw_ray as oc
from openclaw_ray.testing.eventually import eventually

CHILDREN = 3


@oc.agent
def lead(turn: oc.SyncTurn) -> None:
    """Waits for children that wait to be stopped."""
    for _ in range(CHILDREN):
        turn.spawn(task=turn.text, agent_id="waits")
    turn.join()


@oc.agent(spawns=False)
def waits(turn: oc.SyncTurn) -> None:
    """Until it is stopped."""
    (Path(turn.text) / f"in-{turn.run_id}").touch()
    while True:
        turn.check()
        time.sleep(0.01)


class Prunes(FIFOScheduler):  # type: ignore[misc]
    """Has each trial end with its second result."""

    def on_trial_result(self, controller: Any, trial: Any, result: dict[str, Any]) -> str:
        return str(self.STOP if result["training_iteration"] >= 2 else self.CONTINUE)


def trial(config: dict[str, Any]) -> None:
    with oc.Runtime.connect(config["runtime"]) as rt:
        rt.spawn(config["place"], "lead")
        eventually(lambda: len(list(Path(config["place"]).glob("in-*"))) == CHILDREN, 60)
        for step in range(5):
            tune.report({"step": step})


if __name__ == "__main__":
    place = sys.argv[1]
    allowed = {"agents": {"defaults": {"subagents": {"allowAgents": ["*"]}}}, "ray": {"pool": {"prewarm": 2, "max": 8}}}
    with oc.Runtime.start(agents=[lead, waits], config=allowed) as rt:
        space = {"runtime": rt.name, "place": place}
        how = tune.TuneConfig(metric="step", mode="max", scheduler=Prunes())
        kept = tune.RunConfig(storage_path=place, verbose=0)
        result = tune.Tuner(trial, param_space=space, tune_config=how, run_config=kept).fit()[0]
        began = time.monotonic()
        eventually(lambda: not rt.runs(agent="waits", state=["queued", "running"]), 30)
        seconds = time.monotonic() - began
        ended = [row["state"] for agent in ("lead", "waits") for row in rt.runs(agent=agent)]
    print(json.dumps({"steps": result.metrics["training_iteration"], "ended": ended, "seconds": seconds}))
