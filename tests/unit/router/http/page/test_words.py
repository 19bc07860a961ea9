"""Every word in both languages, every code of the product among them."""

from __future__ import annotations

import re
from typing import get_args

import pytest

from schemas.scales import COLOURS, INKS
from services.router.decision_words import PART_NAMES
from services.router.explain import _HOLDS
from services.router.http.page.rendering import HERE, static
from services.router.http.page.routes import SCRIPT_WORDS
from services.router.http.page.words import LANGUAGES, WORDS, coded, language_of, late, span, to_go, words_of
from services.router.policy import filters, needs
from services.router.port import RiseCode, State
from support.source import ROOT

TEMPLATES = "".join(path.read_text() for path in (HERE / "templates").iterdir())
MODULES = "".join(path.read_text() for path in HERE.glob("*.py"))
SCRIPTS = "".join(data.decode() for name, (data, _) in static().files.items() if name.endswith(".js"))


def test_every_word_is_there_in_both_languages_with_the_same_places_to_fill() -> None:
    for key, both in WORDS.items():
        assert len(both) == len(LANGUAGES) and all(both), key
        assert both[0].count("{}") == both[1].count("{}"), key


def test_every_code_of_the_product_has_its_words() -> None:
    removal = set(re.findall(r'return f?"([a-z_]+): ', (ROOT / "services/router/policy/filters.py").read_text()))
    assert {"capability", "context", "paused", "room"} <= removal
    wanted = {f"removed_{code}" for code in (*removal, *needs.WORDS, "silent")}
    wanted |= {f"hold_{code}" for code in _HOLDS}
    wanted |= {f"rise_{code}" for code in get_args(RiseCode)} | {f"state_{state}" for state in get_args(State)}
    wanted |= {f"state_{state}" for state in ("silent", "paused", "backend down", "draining", "ready", "stale")}
    wanted |= {f"part_{part}" for part in PART_NAMES}
    assert wanted - set(WORDS) == set()
    assert filters.HARD and filters.SOFT


def test_no_word_is_asked_for_that_is_not_there_and_none_is_there_for_nobody() -> None:
    used = set(re.findall(r"\bw\.([a-z_]+)", TEMPLATES)) | set(SCRIPT_WORDS)
    assert used - set(WORDS) == set()
    assert set(re.findall(r"\bwords\.([a-z_]+)", SCRIPTS)) - {"js", "py"} <= set(SCRIPT_WORDS)
    prefixes = ("state_", "hold_", "rise_", "removed_", "part_", "map_", "theme_", "unit_", "unknown_")
    named = set(re.findall(r"words\[['\"]([a-z_]+)['\"]\]", MODULES))
    assert {key for key in WORDS if not key.startswith(prefixes)} - used - named == set()


def test_the_blocks_have_the_colours_of_the_fixed_scale() -> None:
    css = static().files["page.css"][0].decode()
    found = re.findall(r"\.s(\d) \{ background: (#\w+); color: (#\w+) \}", css)
    assert found == [(str(at), COLOURS[at], INKS[at]) for at in range(len(COLOURS))]


@pytest.mark.parametrize(
    ("seconds", "english", "japanese"),
    [(0.04, "0.0 s", "0.0 秒"), (-3, "0.0 s", "0.0 秒"), (9.94, "9.9 s", "9.9 秒"), (9.96, "10 s", "10 秒"),
     (119, "119 s", "119 秒"),
     (125, "2 min", "2 分"), (7_300, "2 h 1 min", "2 時間 1 分")],
)  # fmt: skip
def test_seconds_are_written_as_people_say_them(seconds: float, english: str, japanese: str) -> None:
    assert (span(seconds, words_of("en")), span(seconds, words_of("ja"))) == (english, japanese)


def test_a_code_is_translated_and_its_details_stay() -> None:
    words = words_of("ja")
    assert coded("busy: desktop is free in 4 s", "hold", words) == (WORDS["hold_busy"][1], "desktop is free in 4 s")
    assert coded("client_full(me)", "hold", words) == (WORDS["hold_client_full"][1], "")
    assert coded("brand_new: of a later version", "hold", words) == ("brand_new", "of a later version")


@pytest.mark.parametrize(
    ("query", "cookie", "accepted", "language"),
    [("ja", "en", "en", "ja"), ("xx", "ja", "en", "ja"), (None, None, "de, ja;q=0.5, en;q=0.4", "ja"),
     (None, None, "fr;q=broken, en-GB", "en"), (None, None, "", "en")],
)  # fmt: skip
def test_the_language_is_the_one_asked_for_then_kept_then_preferred(
    query: str | None, cookie: str | None, accepted: str, language: str
) -> None:
    assert language_of(query, cookie, accepted) == language


@pytest.mark.parametrize(
    ("at", "seconds", "words"), [(0, 4.2, "4.2 s"), (0, 0.9, "less than 1 s"), (1, -5, "1 秒未満")]
)
def test_a_prediction_never_says_that_nothing_is_left(at: int, seconds: float, words: str) -> None:
    assert to_go(seconds, words_of(LANGUAGES[at])) == words


def test_what_is_late_says_by_how_much() -> None:
    assert [late(12.3, words_of(language)) for language in LANGUAGES] == [
        "12 s longer than predicted",
        "予測を 12 秒超過",
    ]
