"""What was said about an answer, in words: a rating, a judge's verdict, a check, a signal.

Answers "what speaks for this answer, and what against it?". Weak evidence is called weak. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable

from schemas.events import AnyEvent, QualityJudged
from services.router.signals import words_of

_THUMBS = {1.0: "Rated good", 0.5: "Rated neither good nor bad", 0.0: "Rated bad"}
_BESIDE = {1.0: "Preferred to", 0.5: "Called as good as", 0.0: "Put behind"}


def judgement_words(event: QualityJudged) -> str:
    """One sentence."""
    if event.source == "signal":
        words = words_of(event.signal)
        return f"{words[0].upper()}{words[1:]}."
    who = event.client if event.source == "thumb" else event.judge
    by = f" by {who}" if who else ""
    told = f": {event.comment}" if event.comment else ""
    if event.peer is not None:
        if event.source == "thumb" and not event.weight:
            return f"Chosen anew{by}: no preference beside {event.peer} any more."
        uncounted = " (not counted)" if not event.weight else ""
        return f"{_BESIDE.get(event.value, f'Worth {event.value:.2f} beside')} {event.peer}{by}{uncounted}{told}."
    if event.source == "thumb":
        return f"{_THUMBS.get(event.value, f'Rated {event.value:.2f} of 1')}{by}{told}."
    return f"{'Checked' if event.source == 'check' else 'Judged'} {event.value:.2f} of 1{by}{told}."


def replaced(events: Iterable[AnyEvent]) -> frozenset[str]:
    """The ids of people's words that a later word of theirs about the same answer took the place of: they count nothing."""
    last: dict[object, str] = {}
    gone: set[str] = set()
    for event in events:
        if isinstance(event, QualityJudged) and event.source == "thumb":
            key = (event.tasks, event.client)
            if key in last and last[key] != event.id:
                gone.add(last[key])
            last[key] = event.id
    return frozenset(gone)
