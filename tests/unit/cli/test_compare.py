"""services.cli.compare: answers beside each other, on terminals of any width."""

from __future__ import annotations

import json
from typing import Any

import pytest
from rich.console import Console, RenderableType

from services.cli.compare import Comparison, columns, foot_words, plain, state, times, verdict_words
from services.cli.sse import ServerEvent

ROW = {"worker": "w-1", "worker_name": "desktop", "predicted": {"total_s": 4.0}, "cost_s": -66.0, "resident": True}
ENTRIES = [{**ROW, "entry": n, "task": f"t{n}", "model": name} for n, name in enumerate(("qwen3", "llama3"), 1)]
REMOVED = [{"model": "qwen3", "worker": "w-2", "worker_name": "laptop", "reason": "paused: takes no new work"}]
SPENT = {
    "wait_s": 0.5, "load_s": 0.0, "prefill_s": 0.1, "decode_s": 2.0, "first_token_s": 0.2, "took_s": 3.2,
    "tokens_per_s": 63.2, "cost_s": -66.8,
}  # fmt: skip


def end(entry: int, text: str = "", outcome: str = "ok", **status: Any) -> tuple[str, dict[str, Any]]:
    status = {"task": f"t{entry}", "state": "completed", "outcome": outcome} | status
    answer = {"text": text, "thinking": "hm" if outcome == "empty" else ""} if status["state"] == "completed" else None
    return "end", {"entry": entry, "status": status, "answer": answer, "spent": SPENT if answer else None}


def heard(*events: tuple[str, dict[str, Any]]) -> Comparison:
    comparison = Comparison()
    for name, data in (("compare", {"compare": "c", "entries": ENTRIES, "removed": REMOVED}), *events):
        comparison.hear(ServerEvent(name, json.dumps(data)))
    return comparison


def shown(what: RenderableType, width: int) -> str:
    console = Console(width=width, color_system=None)
    with console.capture() as captured:
        console.print(what)
    return captured.get()


def test_tokens_grow_in_their_own_column_and_a_restart_begins_anew() -> None:
    said = ((1, 0, "blue "), (2, 0, "grey"), (1, 1, "sky"))
    tokens = [("token", {"entry": n, "attempt": 1, "index": index, "text": text}) for n, index, text in said]
    assert heard(*tokens).texts == {1: "blue sky", 2: "grey"}
    comparison = heard(*tokens, ("restart", {"entry": 1, "attempt": 2, "reason": "lost"}))
    assert comparison.texts == {1: "", 2: "grey"}
    side_by_side = next(line for line in shown(columns(heard(*tokens), 100), 100).splitlines() if "blue sky" in line)
    assert "grey" in side_by_side


@pytest.mark.parametrize("width", [30, 60, 100, 200])
def test_no_line_is_wider_than_the_terminal_and_whole_answers_are_whole(width: int) -> None:
    text = "\n".join(f"line{n} of the answer" for n in range(30))
    comparison = heard(end(1, text), end(2, "short"))
    whole = shown(columns(comparison, width, lines=None), width)
    assert all(f"line{n}" in whole for n in range(30))
    for words in (whole, shown(columns(comparison, width), width), shown(times(comparison), width)):
        assert max(map(len, words.splitlines())) <= width


def test_what_it_took_stands_beside_what_was_predicted_and_who_was_left_out_below() -> None:
    words = shown(times(heard(end(1, "blue"), end(2, state="failed", failure="stall"))), 200)
    row = next(line for line in words.splitlines() if "qwen3" in line)
    for value in ("0.50 s", "0.10 s", "2.00 s", "3.20 s", "4.00 s", "63.2", "-66.8", "t1"):
        assert value in row, value
    assert "failed" in next(line for line in words.splitlines() if "llama3" in line)
    assert "left out: qwen3 on laptop: paused: takes no new work" in words


def test_an_answer_that_is_all_thinking_or_failed_says_so_in_its_place() -> None:
    comparison = heard(end(1, outcome="empty"), end(2, state="failed", failure="stall", detail="it stood still"))
    assert state(comparison, 1) == "an empty answer: it only thought"
    assert state(comparison, 2) == "it failed: stall: it stood still"
    assert "(an empty answer: it only thought)" in plain(comparison, 1)
    waiting = heard(("status", {"entry": 1, "state": "waiting", "reason": "busy: desktop is busy"}))
    assert state(waiting, 1) == "waiting: busy: desktop is busy"


def test_a_verdict_names_the_sides_and_leaves_other_words_alone() -> None:
    told = "a tie: own when shown first, peer when shown second; it counts 0: never tested on known pairs"
    verdict = {"first": 1, "second": 2, "judge": "gemma3", "kin": True, "value": 0.5, "words": told}
    words = verdict_words(verdict, heard())
    assert words == (
        "gemma3, a relative on 1 (qwen3) and 2 (llama3): a tie (a tie: 1 when shown first, 2 when shown second; "
        "it counts 0: never tested on known pairs)"
    )
    nobody = verdict_words({**verdict, "judge": None, "words": "no third model"}, heard())
    assert nobody == "nobody judged 1 (qwen3) against 2 (llama3): no third model"


def test_each_unknown_has_a_reason_below_the_table_and_the_cost_its_meaning() -> None:
    comparison = heard(end(1, "blue"), end(2, "grey"))
    assert "unknown" not in shown(times(comparison), 120) and "only differences count" in shown(times(comparison), 120)
    comparison.ends[1]["spent"] = SPENT | {"load_s": None}
    assert "load unknown: its model server does not tell it" in shown(times(comparison), 120)


@pytest.mark.parametrize(
    ("width", "foot"),
    [(None, "3.20 s (4.00 s predicted), 63.2 tok/s"), (30, "3.20 s (4.00 s predicted)"), (12, "3.20 s")],
)
def test_a_foot_that_is_too_wide_is_shortened_at_a_word(width: int | None, foot: str) -> None:
    assert foot_words(heard(end(1, "blue")), 1, width) == foot
