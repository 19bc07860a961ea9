"""What models answer to the benchmarker's questions, and which of two answers a judge picks.

Answers "what would come back?" with texts that the product's own graders and its reading of verdicts understand. An answer is
worth what its model is worth in that domain, and something of its own; whether it passes a check is drawn by that. A judge picks
by the difference, with some liking for whatever it sees first.
"""

from __future__ import annotations

import math
import random
import re
from collections.abc import Callable, Mapping, Sequence

from schemas.work import Body
from services.benchmarker.asking import Work
from services.benchmarker.graders.number import Number
from services.benchmarker.known_pairs import KNOWN_PAIRS
from services.benchmarker.suites import Prompt, Suite

ANSWERS_VARY = 0.15
"""Sigma of one answer's worth about its model's in that domain."""
PROMPTS_VARY = 0.10
"""Sigma of how much easier or harder one checked prompt is than its domain, for every model alike."""
JUDGE_SHARPNESS = 0.12
JUDGE_LIKES_FIRST = 0.4
"""A judge picks the first answer with the odds e^(difference / 0.12 + 0.4): of two equal answers it takes the first in 60 % of
the times, and with a difference of 0.15 it says the same in both orders in about 70 %, as published judges do (ROUTING.md B1)."""
RIGHT, WRONG = "The answer is 42.", "The answer is 17."
ANSWER_TOKENS = 120

_SHOWN = re.compile(r"The (?:first|second) answer:\n(=+\w+=+)\n(.*?)\n\1", re.S)
_KNOWN = {**{known.right: 1.0 for known in KNOWN_PAIRS}, **{known.wrong: 0.0 for known in KNOWN_PAIRS}}


def suites_of(domains: Sequence[str], *, checked: int, judged: int) -> Mapping[str, Suite]:
    """So many prompts of each kind for each domain; the product's have 11 to 15 that can be checked, and 0 to 3 that cannot."""
    check = Number(value=42.0)
    return {
        domain: Suite(
            name=domain, domain=domain,
            prompts=tuple(
                Prompt(
                    id=f"{domain}-{n}", level=2, language="en", text=f"Question {n} about {domain}?",
                    max_tokens=ANSWER_TOKENS, check=check if n < checked else None,
                )
                for n in range(checked + judged)
            ),
        )
        for domain in domains
    }  # fmt: skip


class Voices:
    """``worth`` of (model, domain) is in [0, 1]."""

    def __init__(self, seed: int, worth: Callable[[str, str], float], suites: Mapping[str, Suite]) -> None:
        self._random = random.Random(f"voices.{seed}")
        self._worth, self._suites = worth, suites
        self._answers: dict[str, float] = {}
        self._harder: dict[str, float] = {}

    def answer(self, work: Work) -> str:
        if work.purpose == "judge":
            first, second = (self._answers.get(text, _KNOWN.get(text, 0.5)) for text in shown(work.body))
            return f'{{"better": "{"first" if self.says_first(first, second) else "second"}"}}'
        prompt = next(p for p in self._suites[work.domain].prompts if p.id == work.prompt)
        worth = self._worth(work.model, work.domain)
        if prompt.check is None:
            text = f"Answer {len(self._answers)} of {work.model}."
            self._answers[text] = worth + self._random.gauss(0.0, ANSWERS_VARY)
            return text
        harder = self._harder.setdefault(prompt.id, self._random.gauss(0.0, PROMPTS_VARY))
        return RIGHT if self._random.random() < worth - harder else WRONG

    def says_first(self, first: float, second: float) -> bool:
        """A judge's choice when shown the two in this order."""
        odds = (first - second) / JUDGE_SHARPNESS + JUDGE_LIKES_FIRST
        return self._random.random() < 1.0 / (1.0 + math.exp(-odds))


def shown(body: Body) -> tuple[str, str]:
    """The two answers of a judge's question, in their order."""
    found = _SHOWN.findall(body.messages[-1]["content"])
    assert len(found) == 2, f"not a judge's question: {body}"
    return found[0][1], found[1][1]
