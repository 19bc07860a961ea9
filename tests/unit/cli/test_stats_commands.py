from __future__ import annotations

import pytest

from services.cli.exits import CommandFailed, Exit
from services.cli.stats_commands import cell_of


@pytest.mark.parametrize(
    ("text", "options", "model", "domain", "worker"),
    [
        ("qwen3/code/desk", {}, "qwen3", "code", "desk"),
        ("Qwen/Qwen3-8B/code/desk", {}, "Qwen/Qwen3-8B", "code", "desk"),
        ("hf.co/org/model:Q4_K_M/code/w-7f3a", {}, "hf.co/org/model:Q4_K_M", "code", "w-7f3a"),
        ("Qwen/Qwen3-8B/code", {"worker": "a/b"}, "Qwen/Qwen3-8B", "code", "a/b"),
        ("Qwen/Qwen3-8B/desk", {"domain": "code"}, "Qwen/Qwen3-8B", "code", "desk"),
        ("Qwen/Qwen3-8B", {"domain": "code", "worker": "desk"}, "Qwen/Qwen3-8B", "code", "desk"),
        ("code/desk", {"model": "Qwen/Qwen3-8B"}, "Qwen/Qwen3-8B", "code", "desk"),
        ("-", {"model": "a/b", "domain": "code", "worker": "desk"}, "a/b", "code", "desk"),
    ],
)
def test_a_cell_is_read_from_its_end_and_what_an_option_says_is_not_in_it(
    text: str, options: dict[str, str], model: str, domain: str, worker: str
) -> None:
    given = {"model": None, "domain": None, "worker": None, **options}
    assert cell_of(text, **given) == {"model": model, "domain": domain, "worker": worker}


@pytest.mark.parametrize(
    ("text", "options", "words"),
    [
        ("qwen3", {}, "no model and no domain"),
        ("code/desk", {}, "no model"),
        ("-", {"model": "a"}, "no domain and no machine"),
        ("a/b/c", {"model": "a"}, "left over"),
        ("a", {"model": "a", "domain": "b", "worker": "c"}, "left over"),
    ],
)
def test_less_or_more_than_a_cell_is_refused_with_an_example(text: str, options: dict[str, str], words: str) -> None:
    with pytest.raises(CommandFailed, match=words) as refused:
        cell_of(text, **{"model": None, "domain": None, "worker": None, **options})
    assert refused.value.code == Exit.USAGE and "--explain" in (refused.value.hint or "")
