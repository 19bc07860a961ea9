"""Which models are relatives?

Answers "of which family is this name?": a judge must not be of a candidate's family, and a new model starts from what its family
can do. Names are all there is to go by; a name that no rule knows is a family of its own. Never looks at digests or backends.
"""

from __future__ import annotations

import re
from functools import lru_cache

FAMILIES: dict[str, str] = {
    "qwen": "qwen qwenlong codeqwen qwq qvq marco",
    "llama": "llama codellama vicuna orca tulu",
    "mistral": "mistral mistralai mistrallite mixtral ministral magistral devstral codestral mathstral pixtral voxtral zephyr",
    "gemma": "gemma codegemma medgemma paligemma recurrentgemma shieldgemma embeddinggemma translategemma functiongemma",
    "deepseek": "deepseek",
    "phi": "phi",
    "gpt": "gpt chatgpt",
    "smollm": "smollm smolvlm",
    "granite": "granite",
    "glm": "glm chatglm codegeex cogvlm",
    "command": "command aya c4ai",
    "internlm": "internlm internvl",
    "falcon": "falcon falconmamba",
    "olmo": "olmo olmoe molmo",
    "stablelm": "stablelm stable",
    "starcoder": "starcoder starcoderbase starcoderplus",
    "yi": "yi",
    "kimi": "kimi moonlight moonshot",
    "exaone": "exaone",
    "minicpm": "minicpm",
    "hunyuan": "hunyuan",
    "ernie": "ernie",
    "lfm": "lfm",
    "claude": "claude",
    "gemini": "gemini",
}
"""Family -> the words that name it: a token that is one of them, with or without a version behind it. A fine-tuned model belongs
to whose weights it has, where its name says so."""

FAMILY_OF_WORD = {word: family for family, words in FAMILIES.items() for word in words.split()}

_TUNING = frozenset(
    "instruct instruction chat base it pt sft dpo gguf ggml mlx awq gptq exl2 onnx fp16 f16 bf16 fp8 f32 int4 int8 mini small "
    "medium large latest preview thinking reasoning vision uncensored abliterated quantized".split()
)
_SEPARATORS = re.compile(r"[-_.\s@+]+")
_VERSIONED = re.compile(r"([a-z]+)\d\S*$")
_SIZE_OR_VERSION = re.compile(r"v?\d|[qi]q?\d")
_STEM_LEAST = 3
"""Shorter stems than this keep their number: m1 and m2 are not one family."""


@lru_cache(maxsize=4096)
def families_of(model: str) -> tuple[str, ...]:
    """Every family that the name tells, first named first: a distilled model has its teacher's manner and another's weights."""
    found = dict.fromkeys(family for token in _tokens(model) if (family := _family(token)) is not None)
    return tuple(found) or (_stem(model),)


def family_of(model: str) -> str:
    """The first family that the name tells, else its own stem; lower case, never empty for a name that is not."""
    return families_of(model)[0]


def kin(one: str, other: str) -> bool:
    """Whether two models share a family, any of those that their names tell."""
    return not set(families_of(one)).isdisjoint(families_of(other))


def _name(model: str) -> str:
    """Without the path, the registry, the owner, the tag and the file's ending."""
    name = re.split(r"[/\\]|--", model.strip().lower().rstrip("/\\"))[-1]
    return name.removesuffix(".gguf").partition(":")[0] or model.strip().lower()


def _tokens(model: str) -> list[str]:
    return [token for token in _SEPARATORS.split(_name(model)) if token]


def _family(token: str) -> str | None:
    versioned = _VERSIONED.match(token)
    return FAMILY_OF_WORD.get(token) or (FAMILY_OF_WORD.get(versioned[1]) if versioned else None)


def _stem(model: str) -> str:
    """The words before the first size, version or manner of tuning, the last word without its version."""
    words: list[str] = []
    for token in _tokens(model):
        if words and (token in _TUNING or _SIZE_OR_VERSION.match(token)):
            break
        words.append(token)
    if not words:
        return _name(model)
    versioned = _VERSIONED.match(words[-1])
    if versioned and len(versioned[1]) >= _STEM_LEAST:
        words[-1] = versioned[1]
    return "-".join(words)
