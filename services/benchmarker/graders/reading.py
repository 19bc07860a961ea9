"""What does an answer say, before anybody judges it? The parts of a text that graders look at.

Everything here takes time in proportion to the text: an answer is as long as its author likes.
"""

from __future__ import annotations

import re
import unicodedata

ECHO_CHARS = 15
WINDOW, CIRCLE_CHARS = 6, 60

_ANSWER = re.compile(
    r"(?:\b(?:final )?answer(?: is| would be|\s*[:=])|(?:正解|解答|答え)(?:は|[:=])|####)\s*", re.IGNORECASE
)
_WORD = re.compile(r"[^\W_]+(?:['’.-][^\W_]+)*")
_BULLET = re.compile(r"^\s*(?:[-*•・●◦–]|\d{1,2}[.)])\s*\S")
_LETTER = r"[0-9A-Za-z\u00c0-\u024f]"
_DENSE = re.compile(r"[\u3041-\u30ff\u3400-\u4dbf\u4e00-\u9fff]")
_MARKS = re.compile(r"[*_`#>]+")


def plain(text: str) -> str:
    """One width for every character, no emphasis marks: ``**１２**`` is ``12``."""
    return _MARKS.sub("", unicodedata.normalize("NFKC", text)).strip()


def without_echo(answer: str, asked: str) -> str:
    """The answer without the question, and without the beginning of one: models that only continue texts repeat it, and would be
    right by quoting. A few words in common are no echo."""
    if len(asked) < ECHO_CHARS:
        return answer
    said = answer.replace(asked, "").lstrip()
    at = next((at for at, pair in enumerate(zip(said, asked, strict=False)) if pair[0] != pair[1]), None)
    shared = min(len(said), len(asked)) if at is None else at
    return said[shared:] if shared >= ECHO_CHARS else said


def goes_in_circles(text: str) -> bool:
    """Whether most of a text is said again and again: small models end so, and would pass by sheer length."""
    windows = [text[at : at + WINDOW] for at in range(len(text) - WINDOW + 1)]
    return len(windows) >= CIRCLE_CHARS and 2 * len(set(windows)) < len(windows)


def first_line(text: str) -> str:
    return next((line.strip() for line in text.splitlines() if line.strip()), "")


def after_answer(text: str) -> str | None:
    """What follows the last "the answer is", up to the end of its line."""
    ends = [found.end() for found in _ANSWER.finditer(text)]
    return first_line(text[ends[-1] :]) if ends else None


def says(text: str, phrase: str) -> bool:
    """Whether the phrase stands in the text as a whole: ``cat`` is not in ``category``. A lone capital letter must be one there
    too, or "A" would be in every English sentence; Japanese has no spaces, so there a phrase stands anywhere."""
    wanted = unicodedata.normalize("NFKC", phrase)
    if not wanted.isascii() and _DENSE.search(wanted):
        return wanted in text
    flags = 0 if len(wanted) == 1 and wanted.isupper() else re.IGNORECASE
    return re.search(rf"(?<!{_LETTER}){re.escape(wanted)}(?!{_LETTER})", text, flags) is not None


def words(text: str) -> int:
    return len(_WORD.findall(text))


def lines(text: str) -> int:
    """Those with something on them."""
    return sum(1 for line in text.splitlines() if line.strip())


def bullets(text: str) -> int:
    return sum(1 for line in text.splitlines() if _BULLET.match(line))


def characters(text: str) -> int:
    """Without white space: how Japanese counts length."""
    return sum(1 for char in text if not char.isspace())
