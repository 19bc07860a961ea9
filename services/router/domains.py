"""What a prompt is about, by rules: a label, how it was found and how sure that is.

Answers "which statistics apply to this prompt?". A label is a hint that picks a row of the statistics, so ``unknown`` is a
valid answer (the model's own mean is used then). It must cost microseconds, and never ask a model.

Each label has English words, Japanese words and patterns (weight 2); ``[domains]`` in the configuration adds to them or adds
labels. A hit among the first or last characters counts double, because that is where an instruction stands.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from schemas.errors import SettingsError
from schemas.events import Domain
from schemas.language import language_of
from services.router.domain_words import BUILT_IN

METHOD = "rules"
# The label of questions about nothing in particular: taken only where no other label has any evidence.
CATCH_ALL = "general"
JAPANESE = "japanese"
UNKNOWN = Domain(label="unknown", method=METHOD, confidence=0.0)
# The instruction is sought in the first and last part of the last user message; a document between them says little.
_HEAD_CHARS, _TAIL_CHARS = 400, 200
_EDGE_CHARS, _EDGE_WORDS = 80, 14
_PATTERN_WEIGHT = 2.0
# One unit of doubt: a single weak word gives a confidence of one half, and no amount of evidence gives certainty.
_DOUBT = 1.0
_SEPARATORS = re.compile(r"[^0-9a-z+#'\u00c0-\u024f]+")
# The share of letters that two labels have in common, in order: "maht" and "maths" have two thirds.
_NEAR = 0.65
_KEYS = ("words_en", "words_ja", "patterns")


class Clue(NamedTuple):
    """A pattern, and what an ASCII text must hold for it, any of these; None where nobody has said."""

    pattern: re.Pattern[str]
    needs: tuple[str, ...] | None

    def is_in(self, sample: _Sample) -> bool:
        if self.needs is not None and sample.plain is not None and not any(map(sample.plain.__contains__, self.needs)):
            return False
        return self.pattern.search(sample.text) is not None


class Rule(NamedTuple):
    """One label's evidence. ``phrases_en`` by their first word, padded with blanks, so that they match whole words only;
    ``first_words`` are all of both kinds: most labels have none of a text's."""

    label: str
    first_words: frozenset[str]
    words_en: frozenset[str]
    phrases_en: dict[str, tuple[str, ...]]
    words_ja: tuple[str, ...]
    clues: tuple[Clue, ...]


class _Sample:
    """A text made ready once for all rules."""

    def __init__(self, text: str) -> None:
        lower = text.lower()
        words = _SEPARATORS.sub(" ", lower).split()
        self.text, self.plain = text, lower if text.isascii() else None
        self.words = frozenset(words)
        self.edge_words = frozenset((*words[:_EDGE_WORDS], *words[-_EDGE_WORDS:]))
        self.spaced = f" {' '.join(words)} "


def compile_rules(configured: Mapping[str, Mapping[str, Sequence[str]]] | None = None) -> tuple[Rule, ...]:
    """The built-in rules with ``[domains]`` merged over them; raises SettingsError naming the key that is wrong."""
    extra = dict(configured or {})
    labels = [*BUILT_IN, *(label for label in extra if label not in BUILT_IN)]
    return tuple(_rule(label, BUILT_IN.get(label, {}), extra.get(label, {})) for label in labels)


def _rule(label: str, built_in: Mapping[str, Sequence[str]], extra: Mapping[str, Sequence[str]]) -> Rule:
    for key in extra:
        if key not in _KEYS:
            raise SettingsError(f"[domains.{label}] has no setting {key!r}; it knows {', '.join(_KEYS)}")
    english, japanese, patterns = (dict.fromkeys((*built_in.get(key, ()), *extra.get(key, ()))) for key in _KEYS)
    needs: dict[str, tuple[str, ...]] = {
        pattern: tuple(filter(None, need.split("|")))
        for pattern, need in zip(built_in.get("patterns", ()), built_in.get("needs", ()), strict=True)
    }
    clues = []
    for pattern in patterns:
        try:
            clues.append(Clue(re.compile(pattern, re.MULTILINE), needs.get(pattern)))
        except re.error as error:
            raise SettingsError(f"domains.{label}.patterns: {pattern!r} is no regular expression: {error}") from error
    normal = [_SEPARATORS.sub(" ", entry.lower()).strip() for entry in english]
    words = frozenset(entry for entry in normal if " " not in entry)
    phrases: dict[str, tuple[str, ...]] = {}
    for entry in normal:
        if " " in entry:
            first = entry.partition(" ")[0]
            phrases[first] = (*phrases.get(first, ()), f" {entry} ")
    return Rule(label, words.union(phrases), words, phrases, tuple(japanese), tuple(clues))


def classify(text: str, rules: Sequence[Rule]) -> Domain:
    """The label with the most evidence; among equals the one named first. ``confidence`` is its share, less one unit of doubt."""
    sample = text.strip()
    if len(sample) > _HEAD_CHARS + _TAIL_CHARS:
        sample = f"{sample[:_HEAD_CHARS]}\n{sample[-_TAIL_CHARS:]}"
    if not sample:
        return UNKNOWN
    seen = _Sample(sample)
    scores = [(_score(rule, seen), rule.label) for rule in rules if rule.label != CATCH_ALL]
    best, label = max(scores, key=_first, default=(0.0, ""))
    if best > 0:
        share = best / (sum(score for score, _ in scores) + _DOUBT)
        return Domain(label=label, method=METHOD, confidence=round(share, 3))
    # No sign of any task. Japanese writing alone already tells models apart; English alone does not.
    if language_of(sample) == "ja" and any(rule.label == JAPANESE for rule in rules):
        return Domain(label=JAPANESE, method=METHOD, confidence=0.4)
    if any(_score(rule, seen) > 0 for rule in rules if rule.label == CATCH_ALL):
        return Domain(label=CATCH_ALL, method=METHOD, confidence=0.4)
    return UNKNOWN


def misspelt(domain: Domain, rules: Sequence[Rule]) -> str | None:
    """What to say of a client's own label that is nearly a known one: it is taken as it is, and has statistics of its own. Who
    means it writes ``[domains.LABEL]`` into the configuration."""
    known = {UNKNOWN.label, *(rule.label for rule in rules)}
    if domain.method == METHOD or domain.label in known:
        return None
    near = difflib.get_close_matches(domain.label.casefold(), known, n=1, cutoff=_NEAR)
    if not near:
        return None
    return f"domain {domain.label[:64]!r} is no known label, and is taken as one of its own; {near[0]!r} is one"


def _first(pair: tuple[float, str]) -> float:
    return pair[0]


def _score(rule: Rule, seen: _Sample) -> float:
    score = 0.0
    if not rule.first_words.isdisjoint(seen.words):
        score += len(rule.words_en & seen.words) + len(rule.words_en & seen.edge_words)
        for first in rule.phrases_en.keys() & seen.words:
            score += _hits(rule.phrases_en[first], seen.spaced)
    if not seen.text.isascii():
        score += _hits(rule.words_ja, seen.text)
    return score + _PATTERN_WEIGHT * sum([clue.is_in(seen) for clue in rule.clues])


def _hits(needles: Iterable[str], sample: str) -> float:
    """One for each word found, two where it stands at either edge."""
    found = 0.0
    last = len(sample) - _EDGE_CHARS
    for needle in needles:
        at = sample.find(needle)
        if at >= 0:
            found += 2.0 if at < _EDGE_CHARS or sample.rfind(needle) >= last else 1.0
    return found
