"""Which child a typed target means (SPEC.md B4). Pure: what is not among the caller's children is never found here.

1. In this order: ``last``; a number, that of ``subagents list``; a text with ``:``, a session key; an exact run id,
   task name, label; what one task name or label alone begins with; what one run id alone begins with.
2. Names and numbers are those of the children that a list shows: active, or ended lately. Keys and run ids may be of
   any child. Letter case does not count in names.
3. Several runs of one child session: the newest stands for it. The id of a run that was steered is that of the run
   that goes on.
4. Two that fit are none: a command that ends things does not guess.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from openclaw_ray.core.subagent_rows import RECENT_DEFAULT, ChildFacts, shown

__all__ = ["Found", "resolve"]

_NAMED = 5  # candidates that an ambiguous target's error names


@dataclass(frozen=True, slots=True)
class Found:
    """What a target means.

    Attributes:
        child: the one that is meant, `None` if there is not exactly one.
        error: why there is none: ``missing`` (no target), ``invalid_index``, ``unknown_session``, ``ambiguous`` or
            ``unknown``; empty if there is one.
        text: the same for whoever wrote the target, with the way out.
    """

    child: ChildFacts | None = None
    error: str = ""
    text: str = ""


def resolve(
    target: str | None, children: Iterable[ChildFacts], now: int, recent_minutes: int = RECENT_DEFAULT
) -> Found:
    """The child that ``target`` means.

    Args:
        target: as it was written.
        children: all of the caller's, ended ones too.
        now: milliseconds since the epoch.
        recent_minutes: how long an ended child has its name and number.
    """
    word = (target or "").strip()
    if not word:
        return Found(error="missing", text="no target: give a run id, session key, label, task name, number, or last")
    known = _newest(children)
    active, recent = shown(known, now, recent_minutes)
    listed = [*active, *recent]
    if word.casefold() == "last":
        return Found(max(listed, key=_begun)) if listed else Found(error="unknown", text="there is no child to mean")
    if word.isdecimal():
        return _numbered(int(word), listed)
    if ":" in word:
        return _keyed(word, known)
    for fitting in (
        [facts for facts in known if word == facts.run_id or word in facts.replaces],
        _named(listed, lambda name: name == word.casefold(), task_names=True, labels=False),
        _named(listed, lambda name: name == word.casefold(), task_names=False, labels=True),
        _named(listed, lambda name: name.startswith(word.casefold()), task_names=True, labels=True),
        [facts for facts in known if facts.run_id.startswith(word)],
    ):
        if len(fitting) == 1:
            return Found(fitting[0])
        if fitting:
            return _ambiguous(word, fitting)
    return Found(error="unknown", text=f"no child of this session is meant by {word!r}; subagents list shows them")


def _begun(facts: ChildFacts) -> tuple[int, str]:
    return facts.started_at or facts.created_at, facts.run_id


def _newest(children: Iterable[ChildFacts]) -> list[ChildFacts]:
    """One run for each child session (3)."""
    newest: dict[str, ChildFacts] = {}
    for facts in children:
        other = newest.get(facts.session_key)
        if other is None or _age(facts) > _age(other):
            newest[facts.session_key] = facts
    return list(newest.values())


def _age(facts: ChildFacts) -> tuple[int, int, str]:
    return facts.created_at, facts.generation, facts.run_id


def _numbered(number: int, listed: Sequence[ChildFacts]) -> Found:
    if 1 <= number <= len(listed):
        return Found(listed[number - 1])
    there = f"1 to {len(listed)}" if listed else "none"
    return Found(error="invalid_index", text=f"there is no child number {number} (numbers: {there})")


def _keyed(key: str, known: Sequence[ChildFacts]) -> Found:
    for facts in known:
        if facts.session_key == key:
            return Found(facts)
    return Found(
        error="unknown_session", text=f"no child of this session has the key {key!r}; subagents list shows them"
    )


def _named(
    listed: Sequence[ChildFacts], fits: Callable[[str], bool], *, task_names: bool, labels: bool
) -> list[ChildFacts]:
    return [
        facts
        for facts in listed
        if (task_names and facts.task_name is not None and fits(facts.task_name.casefold()))
        or (labels and facts.label is not None and fits(facts.label.casefold()))
    ]


def _ambiguous(word: str, fitting: Sequence[ChildFacts]) -> Found:
    named = ", ".join(facts.run_id for facts in fitting[:_NAMED])
    more = f" (+{len(fitting) - _NAMED})" if len(fitting) > _NAMED else ""
    return Found(error="ambiguous", text=f"{word!r} means {len(fitting)} children: say a run id ({named}{more})")
