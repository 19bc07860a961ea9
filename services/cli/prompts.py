"""What the demo asks: a dozen short prompts in two languages over the domains that the router tells apart.

Answers "what is typed in the demo?". Their domains are not written here: the router classifies them as it does anybody's.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

MAX_TOKENS = 24
"""Long enough to measure a decode rate, short enough that the slow machine answers in about two seconds."""

Way = Literal["measure", "all at once", "one by one"]
WAYS: tuple[Way, ...] = ("measure", "all at once", "one by one")
"""In this order: a machine pulls with a priority that rests on measurements, and renews it every five seconds."""


class DemoPrompt(NamedTuple):
    """``way``: to one named machine so that it is measured, together with the others of its kind, or alone."""

    way: Way
    text: str


PROMPTS = (
    DemoPrompt("measure", "What is the capital of Japan?"),
    DemoPrompt("measure", "日本で一番高い山は何ですか。"),
    DemoPrompt("all at once", "Pythonでファイルを読み込むコードを書いてください。"),
    DemoPrompt("all at once", "12 × 12 を計算してください。"),
    DemoPrompt("all at once", "Translate into Japanese: Good morning, how are you?"),
    DemoPrompt("all at once", "次の文章を一文で要約してください: 水車は川の水で回り、石臼を動かして小麦を粉にします。"),
    DemoPrompt("all at once", "Why is the sky blue?"),
    DemoPrompt("all at once", "Write a short poem about a river."),
    DemoPrompt("one by one", "Write a Python function that reverses a list."),
    DemoPrompt("one by one", "Solve the equation 3x + 5 = 20."),
    DemoPrompt("one by one", "次の文を英語に翻訳してください: 猫が好きです。"),
    DemoPrompt(
        "one by one",
        "Summarise in one sentence: Water turns a wheel, the wheel turns a stone, the stone grinds the corn.",
    ),
)
