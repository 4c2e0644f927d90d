"""A Ray Data job that asks a session about each batch, against the same job that computes the answer itself.

Two actors of the job are clients of the runtime. Needs Ray Data: ``pip install 'openclaw_ray[pipelines]'``.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from openclaw_ray.bench.figures import Better, in_turn, rates, ratio
from openclaw_ray.bench.result import Measured, Skipped

if TYPE_CHECKING:
    from openclaw_ray.bench.rig import Rig

__all__ = ["FULL", "QUICK", "measure"]

FULL = {"rows": 20_000, "batch": 100, "rounds": 3}
QUICK = {"rows": 4_000, "batch": 100, "rounds": 2}


def measure(rig: Rig, config: Mapping[str, Any]) -> Measured:
    """All figures of one run."""
    try:
        import ray.data
    except ImportError as error:
        raise Skipped(f"Ray Data is not installed ({error}): pip install 'openclaw_ray[pipelines]'") from None
    rows, batch = int(config["rows"]), int(config["batch"])
    rig.ray()
    ray.data.DataContext.get_current().enable_progress_bars = False
    asks, computes = _steps()
    found = Measured()
    seconds: dict[str, list[float]] = {"sessions": [], "plain": []}
    with rig.runtime([_square()], ray={"pool": {"prewarm": 4, "max": 8}}) as rt:
        rig.settled(rt, 4)
        for number, name in in_turn(seconds, int(config["rounds"])):
            step = asks if name == "sessions" else computes
            began = time.perf_counter()
            data = ray.data.range(rows, override_num_blocks=4).map_batches(
                step,
                fn_constructor_args=[rt.name],
                batch_size=batch,
                compute=ray.data.ActorPoolStrategy(size=2),
                num_cpus=0.1,
            )
            total = sum(row["square"] for row in data.take_all())
            lasted = time.perf_counter() - began
            assert total == sum(n * n for n in range(rows))
            rig.look(rt)
            rig.say(f"  round {number + 1}: {name} {rows / lasted:.0f} rows/s")
            if number >= 0:
                seconds[name].append(lasted)
    for name, values in seconds.items():
        found.figures[f"rows_{name}"] = rates(rows, values)
    found.figures["sessions_vs_plain"] = ratio(seconds["plain"], seconds["sessions"], Better.MORE)
    found.notes.append("starting the job's two actors is in each round, of both contenders")
    return found


def _steps() -> tuple[type[Any], type[Any]]:
    class Asks:
        """Asks a session."""

        def __init__(self, runtime: str) -> None:
            import openclaw_ray as oc

            self.rt = oc.Runtime.connect(runtime)

        def __call__(self, batch: dict[str, Any]) -> dict[str, Any]:
            [result] = self.rt.map("square", [batch["id"]])
            return {"square": result.raise_for_status().value}

    class Computes:
        """Asks nobody."""

        def __init__(self, runtime: str) -> None:
            pass

        def __call__(self, batch: dict[str, Any]) -> dict[str, Any]:
            return {"square": batch["id"] ** 2}

    return Asks, Computes


def _square() -> Any:
    import openclaw_ray as oc

    @oc.agent(id="square", spawns=False)
    def square(turn: oc.SyncTurn) -> Any:
        return turn.input**2

    return square
