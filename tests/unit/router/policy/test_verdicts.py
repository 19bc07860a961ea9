"""What a decision service is asked, and what is taken from its answer."""

from __future__ import annotations

import msgspec
import pytest

from services.router.policy.routes import DecisionService
from services.router.policy.verdicts import (
    BODY_BYTES_MAX,
    agreed,
    cut,
    http_question,
    in_both_orders,
    model_question,
    read_verdict,
)

CRITERIA = {"small": "greetings", "large": "proofs"}
SERVICE = DecisionService(instructions="Choose.")


def test_probabilities_are_taken_as_they_are_and_strangers_left_out() -> None:
    verdict = read_verdict(
        '{"probabilities": {"small": 0.2, "large": 0.7, "x": 1}, "confidence": 0.5}', CRITERIA, "s", 0.1
    )
    assert (verdict.probabilities, verdict.confidence, verdict.took_s) == ({"small": 0.2, "large": 0.7}, 0.5, 0.1)


def test_an_option_is_all_of_the_probability_and_a_confidence_not_given_is_whole() -> None:
    assert read_verdict('{"option": 2}', CRITERIA, "s", 0.1).probabilities == {"large": 1.0}
    assert read_verdict('{"option": 1}', CRITERIA, "s", 0.1).confidence == 1.0


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ("", "no JSON"),
        ("large", "no JSON"),
        ("[]", "a list, not an object"),
        ("{}", "neither probabilities nor an option from 1 to 2"),
        ('{"option": 3}', "an option from 1 to 2"),
        ('{"option": true}', "an option from 1 to 2"),
        ('{"probabilities": {"x": 1}}', "none of small, large"),
        ('{"probabilities": {"small": 2}}', "its probability of small is 2"),
        ('{"probabilities": {"small": "1"}}', "its probability of small is a str"),
        ('{"option": 1, "confidence": "sure"}', "its confidence is a str"),
        ("[" * 100_000, "no JSON"),
    ],
)
def test_anything_else_is_no_verdict_and_says_why(answer: str, words: str) -> None:
    with pytest.raises(ValueError, match="."):
        read_verdict(answer, CRITERIA, "s", 0.1)
    try:
        read_verdict(answer, CRITERIA, "s", 0.1)
    except ValueError as error:
        assert words in str(error)


@pytest.mark.parametrize("said", ['"probabilities": {"small": %s}', '"option": 1, "confidence": %s'])
@pytest.mark.parametrize("text", ['"Dear Anna"', '["Dear Anna"]', '{"Dear Anna": 1}'])
def test_what_a_service_repeats_of_the_request_is_not_in_the_reason(said: str, text: str) -> None:
    with pytest.raises(ValueError, match="not a number from 0 to 1") as refused:
        read_verdict("{" + said % text + "}", CRITERIA, "s", 0.1)
    assert "Anna" not in str(refused.value)


def test_the_body_is_cut_at_64_kib_and_at_a_whole_character() -> None:
    sent = msgspec.json.decode(http_question(SERVICE, CRITERIA, "あ" * 100_000))
    assert sent["targets"] == [{"id": "small", "criterion": "greetings"}, {"id": "large", "criterion": "proofs"}]
    assert sent["instructions"] == "Choose."
    assert len(sent["request"].encode()) == BODY_BYTES_MAX - BODY_BYTES_MAX % 3
    assert cut("short") == "short"


def test_a_model_can_only_answer_with_an_option() -> None:
    body = model_question(SERVICE, CRITERIA, "Hi")
    schema = body.extra["response_format"]["json_schema"]["schema"]
    assert schema["properties"]["option"] == {"enum": [1, 2]}
    assert "1. greetings\n2. proofs" in body.messages[1]["content"]


def test_a_model_that_means_it_says_so_in_both_orders() -> None:
    one, other = in_both_orders(CRITERIA)
    assert list(other) == list(reversed(list(one)))
    means = agreed(
        read_verdict('{"option": 2, "confidence": 0.9}', one, "m", 1.0),
        read_verdict('{"option": 1, "confidence": 0.5}', other, "m", 1.0),
    )
    assert (means.probabilities, means.confidence) == ({"large": 1.0}, 0.5)
    with pytest.raises(ValueError, match="by the order of the options: small, and the other way round large"):
        agreed(read_verdict('{"option": 1}', one, "m", 1.0), read_verdict('{"option": 1}', other, "m", 1.0))
