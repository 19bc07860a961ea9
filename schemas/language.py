"""Which language a prompt is written in, and about how many tokens it has, from its characters alone.

Answers ``ja``, ``en`` or ``other`` (another script or another Latin language), None for a text without letters. It looks at
scripts and a few function words and must stay far below a millisecond; it never judges what the text is about.
"""

from __future__ import annotations

import re

_FENCED = re.compile(r"```.*?(?:```|\Z)|`[^`\n]+`", re.DOTALL)
_QUOTED = re.compile(r"\"[^\"\n]{1,400}\"|“[^”]{1,400}”|(?<!\w)'[^'\n]{1,400}'(?!\w)|「[^」]{1,400}」|『[^』]{1,400}』")
_KANA = re.compile(r"[\u3041-\u309f\u30a0-\u30ff\uff66-\uff9f]")
_HAN = re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]")
_LATIN = re.compile(r"[A-Za-z\u00c0-\u024f]")
_ACCENTED = re.compile(r"[\u00c0-\u024f]")
_WORD = re.compile(r"[a-z\u00c0-\u024f']+")
_JAPANESE = re.compile(r"[\u3041-\u309f\u30a0-\u30ff\uff66-\uff9f\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]")
# Everyday characters of Chinese that Japanese does not write: they tell a Chinese sentence from a title in kanji alone.
_CHINESE = frozenset("你们这说吗么请给让对时个为见译谢欢实变从过还进问")
_ENGLISH = frozenset(
    "the of and to in is are for on with this that what how why who when where which please you your my i me it a an be"
    " can could would should do does write explain tell give list between from into not or if make let's".split()
)
_OTHER_LATIN = frozenset(
    "der die das und ist nicht ein eine wie für auf mit den dem bitte von zu le la les des est une un et pour dans que qui"
    " avec sur el los las es una por para con como del il che di della per sono het een van niet voor och att som inte"
    " är jest nie czy jak ve bir için nasıl não uma você".split()
)
# A Japanese character says about as much as three Latin letters; a quarter of the prose is then enough to be Japanese.
_WEIGHT_OF_JAPANESE = 3
_SENTENCE_CHARS = 24
# Detection looks no further: a prompt shows its language at once, and a pasted book must cost no more than a question.
_LOOK_CHARS = 2000


def language_of(text: str) -> str | None:
    """``ja``, ``en``, ``other``, or None where the text holds no letter of any script."""
    sample = text[:_LOOK_CHARS]
    prose = _QUOTED.sub(" ", _FENCED.sub(" ", sample))
    if not any(character.isalpha() for character in prose):
        prose = sample
    letters = sum(map(str.isalpha, prose))
    if prose.isascii():  # most are; the patterns would find all letters Latin, at ten times the cost
        kana, han, latin, accents = 0, 0, letters, 0
    else:
        kana, han, latin, accents = (len(pattern.findall(prose)) for pattern in (_KANA, _HAN, _LATIN, _ACCENTED))
    if letters == 0:
        return None
    first = prose.lstrip()[:_SENTENCE_CHARS]
    if kana + han > 0 and _WEIGHT_OF_JAPANESE * (kana + han) >= latin:
        return "ja" if kana or not _CHINESE.intersection(prose) else "other"
    if kana and _WEIGHT_OF_JAPANESE * len(_JAPANESE.findall(first)) > len(_LATIN.findall(first)):
        return "ja"  # an instruction in Japanese above a page of code or of English
    if 2 * latin < letters:
        return "other"
    words = _WORD.findall(prose.lower())
    english = sum(word in _ENGLISH for word in words)
    foreign = sum(word in _OTHER_LATIN for word in words)
    return "other" if foreign > english or (accents * 25 > latin and foreign >= english) else "en"


def estimate_tokens(text: str) -> int:
    """An estimate before anybody has counted: four characters a token, one for a Japanese character (ROUTING.md B3.3)."""
    if text.isascii():
        return -(-len(text) // 4)
    dense = len(_JAPANESE.findall(text))
    return dense - (-(len(text) - dense) // 4)
