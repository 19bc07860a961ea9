"""What a body says and how large it is."""

from __future__ import annotations

from typing import Any

import pytest

from schemas.sizes import sizes_of, text_of
from schemas.work import Body


def test_the_last_user_message_is_what_counts() -> None:
    body = Body(
        messages=(
            {"role": "system", "content": "You write Python code."},
            {"role": "user", "content": "Translate this."},
            {"role": "assistant", "content": "Done."},
            {
                "role": "user",
                "content": [{"type": "text", "text": "Write a haiku"}, {"type": "image_url", "image_url": {}}],
            },
            {"role": "tool", "content": "SELECT 1"},
        )
    )
    assert text_of(body) == "Write a haiku"
    assert text_of(Body(prompt="hello")) == "hello"
    assert text_of(Body(inputs=("a", "b"))) == "a"
    assert text_of(Body(messages=({"role": "user", "content": None},))) == ""
    assert text_of(Body()) == ""


def test_every_message_counts_towards_the_size_and_a_picture_has_no_text() -> None:
    body = Body(
        messages=(
            {"role": "system", "content": "four"},
            {"role": "user", "content": [{"type": "text", "text": "eight ch"}, {"type": "image_url", "image_url": {}}]},
        ),
        extra={"tools": [{}]},
    )
    sizes = sizes_of(body, 99)
    assert (sizes.messages, sizes.chars, sizes.prompt_tokens, sizes.images, sizes.tools) == (2, 12, 3, 1, 1)
    assert sizes_of(Body(inputs=("abcd", "abcd")), 9).prompt_tokens == 2


@pytest.mark.parametrize(
    ("image", "elsewhere"),
    [
        ({"url": "https://pictures.example/cat.png"}, 1),
        ({"url": "HTTP://pictures.example/cat.png"}, 1),
        ({"url": "file:///cat.png"}, 1),
        ("https://pictures.example/cat.png", 1),
        ({"url": "data:image/png;base64,iVBORw0KGgo="}, 0),
        ({"url": "DATA:image/png;base64,iVBORw0KGgo="}, 0),
        ({"url": "iVBORw0KGgo="}, 0),
        ({}, 0),
        (None, 0),
    ],
)
def test_an_image_that_somebody_would_have_to_fetch_is_told_apart(image: Any, elsewhere: int) -> None:
    sizes = sizes_of(Body(messages=({"role": "user", "content": [{"type": "image_url", "image_url": image}]},)), 9)
    assert (sizes.images, sizes.image_urls) == (1, elsewhere)
