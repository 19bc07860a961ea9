from __future__ import annotations

from enum import Enum
from typing import Annotated, Literal

import msgspec
import pytest

from services.router.http.reading import BadRequest, typed


class Colour(Enum):
    RED = "red"
    GREEN = "green"


class Inner(msgspec.Struct, forbid_unknown_fields=True):
    urgency: Literal["interactive", "batch"] = "batch"
    colour: Colour | None = None
    limit: Annotated[int, msgspec.Meta(ge=1)] | None = None


class Asked(msgspec.Struct, forbid_unknown_fields=True):
    prompt: str
    constraints: Inner | None = None
    several: list[Inner] = []
    named: dict[str, Inner] = {}


@pytest.mark.parametrize(
    ("values", "field", "words", "nearest"),
    [
        ({"promt": "x"}, "promt", "promt: unknown field `promt`; nearest: prompt", ("prompt",)),
        ({"constraints": {}}, "prompt", "prompt: missing required field `prompt`", ()),
        ({"prompt": 1}, "prompt", "prompt: Expected `str`, got `int`", ()),
        (
            {"prompt": "x", "constraints": {"urgency": "bach"}},
            "constraints.urgency",
            "constraints.urgency: 'bach' is not one of batch, interactive",
            ("batch",),
        ),
        (
            {"prompt": "x", "constraints": {"urgancy": "batch"}},
            "constraints.urgancy",
            "constraints.urgancy: unknown field `urgancy`; nearest: urgency",
            ("urgency",),
        ),
        (
            {"prompt": "x", "several": [{}, {"colour": "gren"}]},
            "several[1].colour",
            "several[1].colour: 'gren' is not one of red, green",
            ("green", "red"),
        ),
        (
            {"prompt": "x", "constraints": {"limit": 0}},
            "constraints.limit",
            "constraints.limit: Expected `int` >= 1, got 0",
            (),
        ),
    ],
)
def test_a_fault_says_where_it_is_and_what_may_stand_there(
    values: dict[str, object], field: str, words: str, nearest: tuple[str, ...]
) -> None:
    with pytest.raises(BadRequest) as caught:
        typed(values, Asked)
    assert (str(caught.value), caught.value.field, caught.value.nearest) == (words, field, nearest)


def test_a_fault_in_a_table_of_names_still_says_what_may_stand_there() -> None:
    with pytest.raises(BadRequest, match=r"nearest: limit"):
        typed({"prompt": "x", "named": {"any": {"limitt": 1}}}, Asked)


def test_a_prefix_stands_before_the_field() -> None:
    with pytest.raises(BadRequest, match=r"^headrace\.urgancy: unknown field"):
        typed({"urgancy": "batch"}, Inner, prefix="headrace")
