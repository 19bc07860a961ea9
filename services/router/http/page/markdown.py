"""How does an answer look that was written as Markdown? As HTML of a few kinds: no scripts, and nothing that loads.

Pure. What is not Markdown stays text, HTML too; an image is a link to it, and a link leads to the web or to a mailbox. What a
renderer would drop or change unseen (the addresses of references, entities) stays as it was written.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, MutableMapping, Sequence
from functools import cache
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.common.utils import escapeHtml
from markdown_it.parser_inline import ParserInline
from markdown_it.renderer import RendererHTML
from markdown_it.rules_inline.state_inline import Scanned, StateInline
from markdown_it.token import Token
from markdown_it.utils import OptionsDict

CHARACTERS_MOST = 32_768
"""Of an answer: some 8,000 tokens."""
NESTING_MOST = 40
"""Of tags, 19 lists in each other: the library drops what lies deeper, and takes a second for ten thousand ``![`` as it is."""
HEADING_ABOVE = 3
"""An answer stands under an ``h3``, and its own headings under that."""
PLAIN = re.compile(r"<(?!/?p>|br>)")
LEADS_OUT = re.compile(r"(?:https?://|mailto:)", re.IGNORECASE)
WITHOUT_BLANKS = re.compile("[\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\uff00-\uffef\U00020000-\U0003ffff]")
"""Chinese, Japanese and Korean, and their punctuation."""
OPTIONS = {"html": False, "breaks": True, "xhtmlOut": False, "maxNesting": NESTING_MOST}

Env = MutableMapping[str, Any]


def answer_html(text: str, words: Mapping[str, str]) -> str | None:
    """None: it is best shown as it was written, for there is no Markdown in it, or more than is worth the time."""
    if len(text) > CHARACTERS_MOST:
        return None
    parser, env = _parser(), {"words": words}
    tokens = parser.parse(text, env)
    if any(token.level >= NESTING_MOST - 1 for token in tokens):
        return None
    html: str = parser.renderer.render(tokens, parser.options, env)
    return html if PLAIN.search(html) else None


@cache
def _parser() -> MarkdownIt:
    parser = _Answers("commonmark", OPTIONS, renderer_cls=_Renderer)
    parser.inline = _Inline()
    return parser.enable(["table", "strikethrough"]).disable(["reference", "entity"])


class _Answers(MarkdownIt):
    def validateLink(self, url: str) -> bool:  # noqa: N802 (the library's name)
        """What does not lead out is shown as it was written: a relative address would be this router's."""
        return LEADS_OUT.match(url) is not None


class _State(StateInline):
    def scanDelims(self, start: int, canSplitWord: bool) -> Scanned:  # noqa: N802, N803 (the library's names)
        """CommonMark tells by blanks and punctuation where emphasis begins and ends, and Japanese has no blanks around words:
        ``**「強調」**は`` would stay as it is. Next to such a character it is told by blanks alone."""
        found = super().scanDelims(start, canSplitWord)
        before = self.src[start - 1] if start else " "
        after = self.src[start + found.length] if start + found.length < self.posMax else " "
        if not canSplitWord or not (WITHOUT_BLANKS.match(before) or WITHOUT_BLANKS.match(after)):
            return found
        return Scanned(can_open=not after.isspace(), can_close=not before.isspace(), length=found.length)


class _Inline(ParserInline):
    def parse(self, src: str, md: MarkdownIt, env: Env, tokens: list[Token]) -> list[Token]:
        """As the library's, over our state."""
        state = _State(src, md, env, tokens)
        self.tokenize(state)
        for rule in self.ruler2.getRules(""):
            rule(state)
        return state.tokens


class _Renderer(RendererHTML):
    """A method for each kind of token that does not look as the library has it. No ``style``: the page's policy forbids it."""

    def link_open(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: Env) -> str:
        env["in_link"] = True
        return _link(tokens[idx].attrs["href"])

    def link_close(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: Env) -> str:
        env["in_link"] = False
        return "</a>"

    def image(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: Env) -> str:
        source = str(tokens[idx].attrs["src"])
        words = escapeHtml(self.renderInlineAsText(tokens[idx].children, options, env) or source)
        return words if env.get("in_link") else f"{_link(source)}{words}</a>"

    def heading_open(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: Env) -> str:
        return f"<{_below(tokens[idx].tag)}>"

    def heading_close(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: Env) -> str:
        return f"</{_below(tokens[idx].tag)}>\n"

    def fence(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: Env) -> str:
        words: Mapping[str, str] = env["words"]
        label = escapeHtml(f"{words['code']} {tokens[idx].info}".strip())
        code = escapeHtml(tokens[idx].content)
        return f'<pre tabindex="0" role="group" aria-label="{label}"><code>{code}</code></pre>\n'

    code_block = fence

    def table_open(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: Env) -> str:
        words: Mapping[str, str] = env["words"]
        return f'<div class="wide" tabindex="0" role="group" aria-label="{escapeHtml(words["table"])}"><table>\n'

    def table_close(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: Env) -> str:
        return "</table></div>\n"

    def th_open(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: Env) -> str:
        token = tokens[idx]
        return f'<{token.tag} class="right">' if "right" in str(token.attrs.get("style")) else f"<{token.tag}>"

    td_open = th_open


def _link(url: str | float) -> str:
    """A window of its own, which knows nothing of this one: the answer stays where it is."""
    return f'<a href="{escapeHtml(str(url))}" target="_blank" rel="noopener noreferrer nofollow">'


def _below(tag: str) -> str:
    return f"h{min(6, int(tag[1]) + HEADING_ABOVE)}"
