"""An answer as HTML: what becomes Markdown, what stays text, and that no words of a model are more than words."""

from __future__ import annotations

import pytest

from services.router.http.page.markdown import CHARACTERS_MOST, NESTING_MOST, answer_html
from services.router.http.page.words import LANGUAGES, words_of

WORDS = words_of("en")
OUT = 'target="_blank" rel="noopener noreferrer nofollow"'


def shown(text: str) -> str:
    return (answer_html(text, WORDS) or "").replace("\n", "")


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("a **b** *c* `d` ~~e~~", "<p>a <strong>b</strong> <em>c</em> <code>d</code> <s>e</s></p>"),
        ("- a\n- b\n\n1. c", "<ul><li>a</li><li>b</li></ul><ol><li>c</li></ol>"),
        ("4. d", '<ol start="4"><li>d</li></ol>'),
        ("> *q*", "<blockquote><p><em>q</em></p></blockquote>"),
        ("*a*\nb", "<p><em>a</em><br>b</p>"),
        ("# a\n### b", "<h4>a</h4><h6>b</h6>"),
        ("```python\na < b\n```", '<pre tabindex="0" role="group" aria-label="Code python"><code>a &lt; b</code></pre>'),
        ("```\nnot closed", '<pre tabindex="0" role="group" aria-label="Code"><code>not closed</code></pre>'),
        ("[a](https://b.c/d?e&f)", f'<p><a href="https://b.c/d?e&amp;f" {OUT}>a</a></p>'),
        ("<https://b.c> <d@e.f>", f'<p><a href="https://b.c" {OUT}>https://b.c</a> '
                                  f'<a href="mailto:d@e.f" {OUT}>d@e.f</a></p>'),
    ],
)  # fmt: skip
def test_markdown_is_shown_as_it_is_meant(text: str, html: str) -> None:
    assert shown(text) == html


def test_a_table_scrolls_in_its_own_box_and_needs_no_style() -> None:
    html = shown("| a | b |\n|---|--:|\n| c | 1 |")
    assert html.startswith('<div class="wide" tabindex="0" role="group" aria-label="Table"><table><thead>')
    assert html.endswith("</table></div>") and "style" not in html
    assert '<th class="right">b</th>' in html and '<td>c</td><td class="right">1</td>' in html


@pytest.mark.parametrize(
    "text",
    [
        "plain words\nin two lines",
        "<script>alert(1)</script>",
        "<img src=x onerror=alert(1)>",
        "[a](javascript:alert(1))",
        "[a](JaVaScRiPt&colon;alert(1)) [b](java\nscript:alert(1))",
        "[a](data:text/html,<script>alert(1)</script>)",
        "[a](vbscript:x) [b](file:///etc/passwd) [c](ftp://d)",
        "[a](/task/1) [b](//evil.example) [c](#fleet) [d](x.html) [e](http:x)",
        "<javascript:alert(1)> <data:text/html,x>",
        "![a](data:image/png;base64,AAAA) ![b](/page/static/x/icon.svg)",
        "[a]: https://b.c\n\n[a]",
        "&lt;b&gt; &nbsp; &#106;avascript",
    ],
)
def test_everything_else_stays_as_it_was_written(text: str) -> None:
    assert answer_html(text, WORDS) is None


@pytest.mark.parametrize(
    "text",
    [
        "```html\n<script>alert(1)</script>\n```",
        '```"><script>alert(1)</script>\na\n```',
        "`<script>alert(1)</script>`",
        "    <script>alert(1)</script>",
        "**<script>alert(1)</script>**",
        '[<script>alert(1)</script>](https://b.c/"onclick="alert(1))',
        '[a](https://b.c "<script>alert(1)</script>")',
        '![<script>alert(1)</script>" onerror="alert(1)](https://b.c/d.png)',
        "|<script>alert(1)</script>|\n|---|\n|<img src=x onerror=alert(1)>|",
        "# <script>alert(1)</script>",
    ],
)
def test_html_within_markdown_is_text(text: str) -> None:
    html = shown(text)
    assert html and "<script" not in html and "<img" not in html
    assert '"onclick' not in html and '" onerror' not in html


def test_an_image_is_a_link_to_it_and_nothing_loads() -> None:
    assert shown("![a *b*](https://c.d/e.png)") == f'<p><a href="https://c.d/e.png" {OUT}>a b</a></p>'
    assert shown("![](https://c.d)") == f'<p><a href="https://c.d" {OUT}>https://c.d</a></p>'
    assert shown("[![a](https://c.d)](https://e.f) ![b](https://c.d)") == (
        f'<p><a href="https://e.f" {OUT}>a</a> <a href="https://c.d" {OUT}>b</a></p>'
    ), "no link within a link"


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("**「強調」**は", "<strong>「強調」</strong>は"),
        ("これは**重要。**次に", "これは<strong>重要。</strong>次に"),
        ("**用語:**説明", "<strong>用語:</strong>説明"),
        ("結果は**`x`**です", "結果は<strong><code>x</code></strong>です"),
        ("~~「古い」~~新しい", "<s>「古い」</s>新しい"),
        ("**𠮷野「家」**で", "<strong>𠮷野「家」</strong>で"),
    ],
)
def test_japanese_emphasis_needs_no_blanks_around_it(text: str, html: str) -> None:
    assert shown(text) == f"<p>{html}</p>"


def test_blanks_still_tell_a_product_from_emphasis() -> None:
    assert answer_html("面積は 縦 * 横 * 高さ ではなく a*「b」 です", WORDS) is None
    assert answer_html("a * b * c, snake_case_name, 2**3", WORDS) is None
    assert shown('**"a"**b *c*') == "<p>**&quot;a&quot;**b <em>c</em></p>", "English is CommonMark's"


def test_code_and_tables_are_named_in_the_readers_language() -> None:
    for language in LANGUAGES:
        words = words_of(language)
        html = answer_html("```\na\n```\n\n|b|\n|-|", words) or ""
        assert f'aria-label="{words["code"]}"' in html and f'aria-label="{words["table"]}"' in html


@pytest.mark.parametrize("text", ["> " * NESTING_MOST + "deep", "- " * NESTING_MOST + "deep", "*a*" * CHARACTERS_MOST])
def test_what_would_lose_words_or_take_long_is_not_tried(text: str) -> None:
    assert answer_html(text, WORDS) is None
    assert "deep" in shown("- " * 15 + "deep")
