"""A run's end as its requester hears it, the same for each repeat (SPEC.md F2)."""

from __future__ import annotations

from openclaw_ray.core.announce import idempotency_key
from openclaw_ray.core.announce_text import announce_status, stats_line, status_label
from openclaw_ray.core.lifecycle import RunState, result_status
from openclaw_ray.core.protocol.parts import Outcome
from openclaw_ray.core.protocol.records import Run
from openclaw_ray.core.protocol.restart import replaces
from openclaw_ray.core.protocol.state import State
from openclaw_ray.core.results import Completion, Result

__all__ = ["completion_of"]


def completion_of(s: State, run: Run) -> Completion:
    """The completion of a terminal run, the same for each repeat."""
    outcome = run.outcome or Outcome(run.state)
    status = result_status(run.state)
    ended = run.ended if run.ended is not None else s.clock.wall()
    runtime_ms = 0 if run.started is None else max(0, round((ended - run.started) * 1000))
    usage = run.usage.with_below(run.below_usage)
    partial = None
    if run.state not in (RunState.SUCCEEDED, RunState.FAILED) and run.progress is not None:
        partial = run.progress[0]
    result: Result[object] = Result(
        status,
        outcome.text if run.state is RunState.SUCCEEDED else None,
        None,
        outcome.error,
        usage,
        outcome.missing,
        outcome.text_truncated,
        partial,
        run.id,
        run.session,
        runtime_ms,
        run.index,
    )
    return Completion(
        idempotency_key(run.session, run.id),
        result,
        run.session,
        run.session_id,
        run.id,
        run.agent,
        run.label or run.task_name,
        status_label(announce_status(status), outcome.error.message if outcome.error else None),
        stats_line(runtime_ms or None, usage.input_tokens, usage.output_tokens),
        run.fallback,
        run.created,
        replaces(run),
    )
