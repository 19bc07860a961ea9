"""A cheap look before a pattern or a phrase is searched for never hides one that is there."""

from __future__ import annotations

import pytest
from hypothesis import given, settings, strategies as st

from services.router.domain_words import BUILT_IN
from services.router.domains import _Sample, _score, compile_rules

RULES = compile_rules()
PIECES = sorted(
    {
        *(word for label in BUILT_IN.values() for word in label["words_en"]),
        *(need for label in BUILT_IN.values() for needs in label.get("needs", ()) for need in needs.split("|")),
        *"0 1 x n y ( ) { } : ; ` $ ^ = + - * / \\frac \\sum into in to for from where french German function".split(),
        *("email", "letter", "text", "Error", "Exception", "Traceback", "def", "from a import", "x = 2"),
        *("f(x) {", "日本語に訳", "円"),
        *(" ", "\n", ".", "translate", "what is 2 + 2", "the french for", "write a function", "Say it in french"),
    }
)  # fmt: skip
TEXTS = st.lists(st.sampled_from(PIECES), max_size=12).flatmap(
    lambda pieces: st.sampled_from([" ", "", "\n"]).map(lambda between: between.join(pieces))
)


@given(TEXTS)
@settings(max_examples=400, deadline=None)
def test_what_is_found_is_what_a_full_search_finds(text: str) -> None:
    seen = _Sample(text)
    for rule in RULES:
        for clue in rule.clues:
            assert clue.is_in(seen) == (clue.pattern.search(text) is not None), clue
        in_full = {one for phrases in rule.phrases_en.values() for one in phrases if one in seen.spaced}
        looked_for = {one for first in rule.phrases_en if first in seen.words for one in rule.phrases_en[first]}
        assert in_full <= looked_for
        assert _score(rule, seen) >= 0.0


@pytest.mark.parametrize("label", [label for label, words in BUILT_IN.items() if "patterns" in words])
def test_every_built_in_pattern_says_what_it_needs(label: str) -> None:
    assert len(BUILT_IN[label]["needs"]) == len(BUILT_IN[label]["patterns"])
