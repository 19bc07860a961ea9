"""Domain rules: right on labelled prompts, open to configuration, and content with not knowing."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given, strategies as st

from schemas.errors import SettingsError
from schemas.events import Domain
from services.router.domain_words import BUILT_IN
from services.router.domains import classify, compile_rules, misspelt
from support.domain_prompts import HELD_OUT, LABELLED

RULES = compile_rules()


def wrong(prompts: Sequence[tuple[str, str]]) -> list[str]:
    """Each prompt that got another label than a person gave it, in words."""
    found = [(label, classify(text, RULES), text) for label, text in prompts]
    return [f"{label} -> {is_.label} {is_.confidence}: {text[:60]}" for label, is_, text in found if is_.label != label]


def test_at_least_85_of_100_labelled_prompts_are_recognised() -> None:
    errors = wrong(LABELLED)
    assert len(LABELLED) >= 48
    assert 1 - len(errors) / len(LABELLED) >= 0.85, errors


@pytest.mark.parametrize("label", BUILT_IN)
def test_each_domain_is_recognised_in_three_of_four_prompts(label: str) -> None:
    prompts = [pair for pair in LABELLED if pair[0] == label]
    assert len(prompts) >= 6
    assert len(wrong(prompts)) <= len(prompts) / 4


def test_prompts_that_nothing_was_tuned_on_are_mostly_recognised_and_rarely_mistaken() -> None:
    errors = wrong(HELD_OUT)
    assert 1 - len(errors) / len(HELD_OUT) >= 0.6, errors
    mistaken = [
        pair for pair in HELD_OUT if (is_ := classify(pair[1], RULES)).label != pair[0] and (is_.confidence or 0) >= 0.5
    ]
    assert len(mistaken) <= 2, mistaken


@pytest.mark.parametrize("text", ["", "   \n", "...", "asdf", "1234"])
def test_unknown_is_a_valid_answer(text: str) -> None:
    domain = classify(text, RULES)
    assert (domain.label, domain.method, domain.confidence) == ("unknown", "rules", 0.0)


def test_the_instruction_outweighs_the_document_it_is_about() -> None:
    document = "def area(r): return 3.14 * r * r  # the area of a circle\n" * 40
    assert classify(f"Summarise the following file.\n{document}", RULES).label == "summarise"
    assert classify(f"{document}\nこのファイルを要約してください。", RULES).label == "summarise"


def test_more_evidence_gives_more_confidence_but_never_certainty() -> None:
    weak = classify("Something with python in it, perhaps", RULES)
    strong = classify("Write a Python function and a unit test, then debug the regex", RULES)
    assert weak.label == strong.label == "code"
    assert weak.confidence is not None and strong.confidence is not None
    assert 0 < weak.confidence < strong.confidence < 1


def test_configuration_adds_words_to_a_domain_and_adds_domains() -> None:
    rules = compile_rules(
        {
            "code": {"words_en": ["zorglang"]},
            "law": {"words_en": ["plaintiff"], "words_ja": ["判例"], "patterns": [r"§ ?\d+"]},
        }
    )
    assert classify("Explain zorglang to me", rules).label == "code"
    assert classify("Write a Python function", rules).label == "code"
    assert classify("What can the plaintiff do?", rules).label == "law"
    assert classify("この判例について", rules).label == "law"
    assert classify("see § 12", rules).label == "law"
    assert classify("see § 12", RULES).label != "law"


@pytest.mark.parametrize(
    ("configured", "named"),
    [({"law": {"patterns": ["("]}}, "domains.law.patterns"), ({"law": {"word": ["x"]}}, "word")],
)
def test_a_wrong_setting_is_named(configured: dict[str, dict[str, list[str]]], named: str) -> None:
    with pytest.raises(SettingsError, match=named):
        compile_rules(configured)


def test_words_match_whole_words_only() -> None:
    assert classify("the digital capitalist", RULES).label == "unknown"  # neither git nor api
    assert classify("Pythonで書く", RULES).label == "code"  # but a Japanese particle ends an English word


@given(st.text(max_size=3000))
def test_any_text_gets_a_known_label_and_the_same_one_again(text: str) -> None:
    domain = classify(text, RULES)
    assert domain.label in {*BUILT_IN, "unknown"}
    assert domain.confidence is not None and 0 <= domain.confidence < 1
    assert classify(text, RULES) == domain


@pytest.mark.parametrize(
    ("label", "near"),
    [("maht", "maths"), ("Math", "maths"), ("cod", "code"), ("summary", "summarise"), ("law", None), ("cooking", None)],
)
def test_a_label_that_is_nearly_a_known_one_is_told_and_another_ones_own_is_not(label: str, near: str | None) -> None:
    told = misspelt(Domain(label=label, method="client"), RULES)
    assert (told is None) == (near is None) and (near is None or f"{near!r} is one" in (told or ""))


def test_a_known_or_configured_label_is_no_mistake() -> None:
    assert misspelt(Domain(label="maths", method="client"), RULES) is None
    assert misspelt(Domain(label="unknown", method="client"), RULES) is None
    assert misspelt(Domain(label="math", method="client"), compile_rules({"math": {"words_en": ["sum"]}})) is None
