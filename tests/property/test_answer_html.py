"""Whatever a model writes: its HTML is of few tags that all close, leads out or nowhere, and has lost no word."""

from __future__ import annotations

import re
from html.parser import HTMLParser

from hypothesis import given, strategies as st

from services.router.http.page.markdown import answer_html
from services.router.http.page.words import words_of

WORDS = words_of("ja")
TAGS = set("a blockquote br code div em h4 h5 h6 hr li ol p pre s strong table tbody td th thead tr ul".split())
ATTRIBUTES = {"href", "target", "rel", "tabindex", "role", "aria-label", "class", "start"}
VOID = {"br", "hr"}
PIECES = st.one_of(
    st.sampled_from(
        "* ** _ __ ~~ ` `` ``` ~~~ # ## > - + 1. 10) | |-| |:-:|--:| [ ]( ] ) ! ![ < > </ <!-- --> \" ' = & &lt; &#60; \\ \\\\ : ://"
        " http://e.x https://e.x/ javascript: data:text/html, mailto:a@e.x //e.x <script> </script> <img onerror= <a href=".split(
            " "
        )
    ),
    st.sampled_from(["\n", "\n\n", " ", "    ", "\t", "\0", "\u2028", "\r\n", "「", "」", "。", "、", "*「", "」**"]),
    st.sampled_from(["mill1", "race2", "水車3", "weir4", "堰5"]),
    st.text(max_size=4),
)


class Seen(HTMLParser):
    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.faults: list[str] = []
        self.feed(html)
        self.close()
        self.faults += self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.faults += [tag] if tag not in TAGS or (tag == "a" and "a" in self.open) else []
        self.faults += [f"{tag} {name}" for name, _ in attrs if name not in ATTRIBUTES]
        self.faults += [
            f"{name}={value}" for name, value in attrs
            if name == "href" and not re.match(r"(?i)https?://|mailto:", value or "")
        ]  # fmt: skip
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open.pop() != tag:
            self.faults.append(f"/{tag}")


@given(st.lists(PIECES, max_size=40).map("".join))
def test_an_answer_is_never_more_than_an_answer(text: str) -> None:
    html = answer_html(text, WORDS)
    if html is None:
        return
    assert Seen(html).faults == []
    for word in ("mill1", "race2", "weir4"):
        assert html.count(word) >= (word in text)
