"""core.tool_params: a table reads a call, and makes the schema that a model is shown."""

from __future__ import annotations

from typing import Any

import pytest

from openclaw_ray.core.errors import ToolInputError
from openclaw_ray.core.tool_params import Kind, Parameter, read_params, schema, snake_name

TABLE = (
    Parameter("someText", Kind.TEXT, "A text.", also=("words",)),
    Parameter("flag", Kind.FLAG, required=True),
    Parameter("count", Kind.WHOLE, least=1, most=9),
    Parameter("choice", Kind.TEXT, words=("a", "b")),
    Parameter("items", Kind.LIST),
    Parameter("box", Kind.OBJECT),
    Parameter("hidden", Kind.ANY, offered=False),
)


def read(**given: Any) -> dict[str, Any]:
    return read_params("tool", TABLE, {"flag": True, **given}, {"old": "it is gone"})


@pytest.mark.parametrize("spelling", ["someText", "some_text", "words"])
def test_every_spelling_is_the_same_parameter(spelling: str) -> None:
    assert read(**{spelling: "x"}) == {"flag": True, "someText": "x"}


def test_two_spellings_must_say_the_same() -> None:
    assert read(someText="x", some_text="x")["someText"] == "x"
    with pytest.raises(ToolInputError, match="another spelling of someText"):
        read(someText="x", words="y")


def test_null_is_as_good_as_absent() -> None:
    assert read(someText=None, count=None) == {"flag": True}
    with pytest.raises(ToolInputError, match="flag: it is required"):
        read_params("tool", TABLE, {"flag": None})


def test_an_unknown_name_is_refused_with_the_one_it_resembles() -> None:
    with pytest.raises(ToolInputError, match="did you mean someText") as caught:
        read(someTxt="x")
    assert (caught.value.tool, caught.value.parameter) == ("tool", "someTxt")
    with pytest.raises(ToolInputError, match=r"no such parameter; \(parameters: someText, flag, count, choice"):
        read(zzzz=1)


def test_a_refused_name_is_refused_with_its_reason_whatever_it_says() -> None:
    for value in (1, None):
        with pytest.raises(ToolInputError, match="old: it is gone"):
            read(old=value)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("someText", 1),
        ("flag", "true"),
        ("flag", 1),
        ("count", "1"),
        ("count", True),
        ("count", 1.5),
        ("count", float("nan")),
        ("count", float("inf")),
        ("items", "abc"),
        ("box", ["a"]),
    ],
)
def test_nothing_is_coerced(name: str, value: Any) -> None:
    with pytest.raises(ToolInputError, match=f"tool: {name}: it is of type"):
        read(**{name: value})


def test_a_whole_number_may_be_written_with_a_fraction_of_0() -> None:
    count = read(count=3.0)["count"]
    assert count == 3
    assert isinstance(count, int)


@pytest.mark.parametrize("value", [0, 10, -1])
def test_a_number_out_of_its_bounds_is_refused(value: int) -> None:
    with pytest.raises(ToolInputError, match="from 1 to 9"):
        read(count=value)


def test_a_word_that_is_none_of_the_words_is_refused() -> None:
    assert read(choice="b")["choice"] == "b"
    with pytest.raises(ToolInputError, match="one of a, b, not 'c'"):
        read(choice="c")


def test_a_long_value_is_not_quoted_whole() -> None:
    with pytest.raises(ToolInputError) as caught:
        read(choice="c" * 10_000)
    assert len(str(caught.value)) < 200


def test_the_schema_shows_what_is_offered() -> None:
    made = schema(TABLE)
    assert made["required"] == ["flag"]
    assert made["additionalProperties"] is False
    assert list(made["properties"]) == ["someText", "flag", "count", "choice", "items", "box"]
    assert made["properties"]["someText"] == {"type": "string", "description": "A text."}
    assert made["properties"]["count"] == {"type": "integer", "minimum": 1, "maximum": 9}
    assert made["properties"]["choice"] == {"type": "string", "enum": ["a", "b"]}
    assert "required" not in schema(())


@pytest.mark.parametrize(("name", "snake"), [("task", "task"), ("runTimeoutSeconds", "run_timeout_seconds")])
def test_snake_case(name: str, snake: str) -> None:
    assert snake_name(name) == snake
