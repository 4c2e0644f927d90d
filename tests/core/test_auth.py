"""core.auth beyond the conformance cases: both stores together, what failures and successes leave, classes, pins."""

from __future__ import annotations

from typing import Any

import pytest

from openclaw_ray.core.auth import (
    NO_SCOPE,
    AuthRules,
    FailureReason,
    ProfileOrder,
    Reason,
    after_failure,
    after_success,
    in_reach,
    order_profiles,
    pinned_profile,
    scope_of,
)

NOW = 1_700_000_000_000
HOUR = 3_600_000


def key(provider: str = "p", **more: Any) -> dict[str, Any]:
    return {"type": "api_key", "provider": provider, "key": "k", **more}


def token(**more: Any) -> dict[str, Any]:
    return {"type": "token", "provider": "p", "token": "t", **more}


def login(**more: Any) -> dict[str, Any]:
    return {"type": "oauth", "provider": "p", "access": "a", "refresh": "r", **more}


def store(profiles: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"profiles": profiles, **more}


def order(own: dict[str, Any], shared: dict[str, Any] | None = None, **more: Any) -> ProfileOrder:
    return order_profiles("p", agent_store=own, shared_store=shared or {}, now=NOW, **more)


def test_the_agents_own_go_before_shared_ones_however_long_those_are_unused() -> None:
    own = store({"p:own": key()}, usageStats={"p:own": {"lastUsed": NOW - 1}})
    assert order(own, store({"p:shared": login()})).order == ("p:own", "p:shared")


def test_logins_go_before_tokens_and_those_before_keys() -> None:
    found = order(store({"p:k": key(), "p:t": token(), "p:l": login()}))
    assert found.order == ("p:l", "p:t", "p:k")


def test_of_two_that_were_never_used_the_last_good_one_is_first() -> None:
    assert order(store({"p:1": key(), "p:2": key()}, lastGood={"P": "p:2"})).order == ("p:2", "p:1")


def test_what_rests_goes_behind_the_shared_ones() -> None:
    own = store({"p:own": key()}, usageStats={"p:own": {"disabledUntil": NOW + 5}})
    found = order(own, store({"p:shared": key()}))
    assert found.order == ("p:shared", "p:own")
    assert found.cooling == {"p:own": NOW + 5}


def test_of_what_rests_the_soonest_is_first_and_what_has_rested_does_not() -> None:
    stats = {name: {"cooldownUntil": until} for name, until in (("p:1", NOW + 9), ("p:2", NOW + 3), ("p:3", NOW))}
    found = order(store({name: key() for name in stats}, usageStats=stats))
    assert found.order == ("p:3", "p:2", "p:1")


def test_a_shared_keys_failures_say_nothing_of_the_agents_own_of_that_name() -> None:
    shared = store({"p:x": key()}, usageStats={"p:x": {"cooldownUntil": NOW + 9}})
    assert order(store({"p:x": key()}), shared).cooling == {}
    assert order({}, shared).cooling == {"p:x": NOW + 9}


@pytest.mark.parametrize(("in_agents", "in_shared"), [(9, 3), (3, 9), (0, 9), (9, 0)])
def test_of_two_words_on_a_shared_key_the_longer_rest_counts(in_agents: int, in_shared: int) -> None:
    stats = [{"p:x": {"cooldownUntil": NOW + each}} for each in (in_agents, in_shared)]
    found = order(store({}, usageStats=stats[0]), store({"p:x": key()}, usageStats=stats[1]))
    assert found.cooling == {"p:x": NOW + 9}


def test_orders_count_agents_store_then_shared_store_then_configuration() -> None:
    profiles = {f"p:{n}": key() for n in (1, 2, 3)}
    own = store(profiles, order={"p": ["p:1"]})
    shared = store({}, order={"p": ["p:2"]})
    rules = AuthRules(order={"p": ("p:3",)})
    assert order(own, shared, rules=rules).order == ("p:1",)
    assert order(store(profiles), shared, rules=rules).order == ("p:2",)
    assert order(store(profiles), rules=rules).order == ("p:3",)


def test_a_pin_leads_even_when_it_rests_and_brings_in_nothing_that_is_left_out() -> None:
    own = store({"p:1": key(), "p:2": key(), "q:1": key("q")}, usageStats={"p:2": {"cooldownUntil": NOW + 9}})
    assert order(own, pin="p:2").order == ("p:2", "p:1")
    left_out = order(own, pin="p:2", rules=AuthRules(order={"p": ("p:1",)}))
    assert (left_out.order, left_out.excluded) == (("p:1",), {"p:2": Reason.EXCLUDED})
    assert order(own, pin="q:1").excluded == {"q:1": Reason.OTHER_PROVIDER}
    assert order(own, pin="gone").excluded == {"gone": Reason.NO_PROFILE}


@pytest.mark.parametrize(
    ("entry", "why"),
    [
        (key(key="  "), Reason.MISSING),
        (token(token=None), Reason.MISSING),
        (login(access="", refresh=""), Reason.MISSING),
        (token(expires=NOW), Reason.EXPIRED),
        (token(expires="soon"), Reason.INVALID_EXPIRES),
        (token(expires=None), Reason.INVALID_EXPIRES),
        (token(expires=-1), Reason.INVALID_EXPIRES),
        (token(expires=float("nan")), Reason.INVALID_EXPIRES),
        ({"type": "aws-sdk", "provider": "p"}, Reason.INVALID),
        (key(key="${NOT_THERE}"), Reason.UNRESOLVED),
        (key(key=None, keyRef={"source": "file", "id": "/x"}), Reason.UNRESOLVED),
    ],
)
def test_each_reason_has_its_word(entry: dict[str, Any], why: Reason) -> None:
    found = order(store({"p:x": entry}), resolves=lambda ref: False)
    assert (found.order, found.excluded) == ((), {"p:x": why})


def test_a_profile_of_another_sort_than_the_configuration_says_is_left_out() -> None:
    rules = AuthRules(profiles={"p:k": ("p", "oauth"), "p:t": ("p", "oauth"), "p:o": ("q", "api_key")})
    found = order(store({"p:k": key(), "p:t": token(), "p:o": key()}), rules=rules)
    assert found.order == ("p:t",)
    assert found.excluded == {"p:k": Reason.OTHER_MODE, "p:o": Reason.NOT_LISTED}


@pytest.mark.parametrize("odd", [None, 3, "text", [], {}, {"provider": 3}, {"provider": "p", "type": []}])
def test_an_entry_that_is_none_is_nobodys(odd: Any) -> None:
    assert order(store({"p:odd": odd, "p:x": key()})).order == ("p:x",)


def test_providers_are_compared_without_case_and_blanks() -> None:
    found = order_profiles(" P ", agent_store=store({"x": key("p ")}), shared_store={}, now=NOW)
    assert found.order == ("x",)


# ---------------------------------------------------------------------- usage


def test_failures_rest_longer_and_longer_and_a_success_ends_it() -> None:
    entry: dict[str, Any] = {"odd": 1}
    rests = []
    for _ in range(5):
        entry = after_failure(entry, NOW, FailureReason.RATE_LIMIT)
        rests.append((entry["cooldownUntil"] - NOW) // 60_000)
    assert rests == [1, 5, 25, 60, 60]
    assert entry["failureCounts"] == {"rate_limit": 5}
    assert after_success(entry, NOW) == {"odd": 1, "lastUsed": NOW, "errorCount": 0, "lastFailureAt": NOW}


def test_want_of_money_rests_for_hours() -> None:
    entry: dict[str, Any] = {}
    rests = []
    for _ in range(4):
        entry = after_failure(entry, NOW, FailureReason.BILLING)
        rests.append((entry["disabledUntil"] - NOW) // HOUR)
    assert rests == [5, 10, 20, 24]
    assert entry["disabledReason"] == "billing"


def test_failures_of_before_yesterday_are_forgotten() -> None:
    entry = after_failure({"errorCount": 7, "lastFailureAt": NOW - 25 * HOUR}, NOW, FailureReason.AUTH)
    assert (entry["errorCount"], entry["cooldownUntil"]) == (1, NOW + 60_000)


def test_a_cooldown_that_is_said_counts_as_it_is() -> None:
    entry = after_failure({"cooldownUntil": NOW + HOUR}, NOW, FailureReason.UNKNOWN, 0.5)
    assert entry["cooldownUntil"] == NOW + 500


# ---------------------------------------------------------------------- classes


def test_a_class_follows_ids_stores_and_providers_and_no_secret_and_no_time() -> None:
    rules = AuthRules(own="/own", shared="/shared")
    one = in_reach(store({"p:1": key()}), store({"p:2": key(), "q:1": key("q")}), rules)
    assert one == (("p:1", "/own", "p"), ("p:2", "/shared", "p"), ("q:1", "/shared", "q"))
    rotated = in_reach(store({"p:1": key(key="new")}), store({"p:2": token(expires=1), "q:1": key("q")}), rules)
    assert scope_of(one) == scope_of(rotated)
    own_now = in_reach(store({"p:1": key(), "p:2": key()}), store({"p:2": key(), "q:1": key("q")}), rules)
    assert scope_of(own_now) != scope_of(one)
    assert scope_of(in_reach({}, {}, rules)) == NO_SCOPE


def test_what_an_order_leaves_out_is_not_in_reach() -> None:
    rules = AuthRules(own="/own", order={"p": ("p:1",), "q": ()})
    found = in_reach(store({"p:1": key(), "p:2": key(), "q:1": key("q")}), {}, rules)
    assert found == (("p:1", "/own", "p"),)


@pytest.mark.parametrize(
    ("model", "pin"),
    [
        ("anthropic/sonnet@anthropic:work", "anthropic:work"),
        ("sonnet@anthropic:me@example.com", "anthropic:me@example.com"),
        ("vertex/sonnet@20250929", None),
        ("vertex/sonnet@20250929@vertex:a", "vertex:a"),
        ("openrouter/moon/kimi@openrouter:x", "openrouter:x"),
        ("anthropic/sonnet", None),
        ("", None),
        (None, None),
    ],
)
def test_a_model_string_may_pin_a_profile(model: str | None, pin: str | None) -> None:
    assert pinned_profile(model) == pin
