"""A decision on a terminal: what a newcomer reads, on one screen."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from rich.cells import cell_len
from rich.console import Console, RenderableType

from schemas.events import TaskRouted
from services.cli import decisions
from services.cli.evidence import evidence, is_measured
from services.cli.screen import HEIGHT, WIDTH
from services.router.explain import explain_words, story_words
from services.router.port import TaskStatus
from support.decisions import real_decision
from support.history import history
from support.http_examples import example


def lines_of(renderable: RenderableType, width: int = WIDTH) -> list[str]:
    console = Console(width=width, color_system=None, highlight=False)
    with console.capture() as captured:
        console.print(renderable)
    return captured.get().splitlines()


def text_of(renderable: RenderableType, width: int = 200) -> str:
    return " ".join(" ".join(lines_of(renderable, width)).split())


def explained(seed: int) -> dict[str, Any]:
    """``GET /explain/{id}`` of a random task, as the router would write it."""
    submitted, routed = real_decision(seed)
    events = [entry.event for entry in history(seed, 40) if getattr(entry.event, "task", "") == submitted.task]
    events = [routed if isinstance(event, TaskRouted) else event for event in events]
    status = TaskStatus(task=submitted.task, state="completed", waited_s=1.5)
    body = {
        "status": status,
        "decision": routed,
        "events": events,
        "words": explain_words(status, routed, events),
        "story": story_words(status, routed, events),
    }
    found: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(body))
    return found


@pytest.mark.parametrize("seed", range(40))
def test_the_explanation_of_any_task_fits_on_a_screen(seed: int) -> None:
    lines = lines_of(decisions.explanation(explained(seed)))
    assert len(lines) <= HEIGHT
    assert all(cell_len(line) <= WIDTH for line in lines)
    told = " ".join(lines)
    for words in ("Asked:", "Chosen:", "cost = seconds", "Then:"):
        assert words in told


@pytest.mark.parametrize("width", [40, 64, 99])
def test_a_narrow_terminal_loses_no_cell_of_what_was_asked_for(width: int) -> None:
    body = explained(3)
    lines = lines_of(decisions.explanation(body, show_all=True), width)
    assert all(cell_len(line) <= width for line in lines)
    whole = "".join(lines).replace(" ", "")
    table = decisions.candidates(body["decision"]["candidates"])
    for row in table.rows:
        for cell in row:
            assert cell.replace(" ", "") in whole


def test_all_shows_every_candidate_every_number_and_every_removal() -> None:
    body = explained(5)
    told = text_of(decisions.explanation(body, show_all=True))
    for row in body["decision"]["candidates"]:
        assert f"How well that is known ({row['model']} on {row['worker']})" in told
        assert f"{row['cost_s']:.1f}" in told
    for row in body["decision"]["removed"]:
        assert row["reason"] in told
    assert "more line" not in told


def test_a_preview_names_the_choice_its_parts_and_the_removals() -> None:
    words = text_of(decisions.preview(example("`GET /route/preview`")))
    assert "Chosen: qwen3 on desktop: 4.2 s predicted, the least" in words
    assert "~70" in words and "~ borrowed or guessed" in words
    assert "writes 96.4 tok/s 31 samples: this model, domain and machine; newest 40 s ago" in words
    assert "Left out: llava on laptop (capability: needs gpu_inference, has cpu_inference)" in words


def test_only_what_was_measured_for_just_this_is_not_marked_as_borrowed() -> None:
    assert is_measured({"value": 58.1, "level": "cell", "n": 12, "age_s": 3.0})
    assert not is_measured({"value": 58.1, "level": "model", "n": 12, "age_s": 3.0})


def test_a_guess_is_called_one_and_the_unknown_is_said_to_count_as_the_worst() -> None:
    row = dict(example("`GET /route/preview`")["candidates"][0], others_use=None, resident=None)
    told = {name: (value, source) for name, value, source in evidence(row).rows}
    assert told["answer's length"] == ("300 tokens", "a guess: nothing like it was measured")
    assert told["used by others"] == ("unknown", "unknown, counted as the worst: 25 % of the speed is left")
    assert told["load (perhaps)"] == (
        "2.40 s",
        "3 samples: other models on this machine, scaled by size; newest 2 h ago",
    )


def test_a_preview_without_a_choice_says_that_nobody_could_answer() -> None:
    body: dict[str, Any] = example("`GET /route/preview`") | {"choice": None, "candidates": []}
    assert "nobody could answer this now." in text_of(decisions.preview(body))
    assert "`headrace doctor` says what to do" in text_of(decisions.preview(body | {"removed": []}))


def test_an_explanation_calls_machines_by_their_names() -> None:
    body = example("`GET /explain/{id}`")
    body["decision"]["candidates"] = [dict(example("`GET /route/preview`")["candidates"][0])]
    del body["decision"]["candidates"][0]["worker_name"]
    body["decision"]["choice"] = {"model": "qwen3", "worker": "w-7f3a", "reason": "the only one"}
    words = text_of(decisions.explanation(body, names={"w-7f3a": "desktop"}))
    assert "Chosen: qwen3 on desktop: the only one." in words
    assert "w-7f3a" not in words


def test_a_task_that_was_decided_again_when_it_left_the_queue_shows_that_decision() -> None:
    body = explained(2)
    rows = body["decision"]["candidates"]
    other = rows[1]
    released = {
        "type": "task.released", "attempt": 1, "model": other["model"], "expected_worker": other["worker"],
        "candidates": rows, "reason": "the first idea was busy",
    }  # fmt: skip
    told = lines_of(decisions.explanation(body | {"events": [*body["events"], released]}), 200)
    line = next(line for line in told if line.startswith("Chosen:"))
    assert "(when it left the queue): the first idea was busy." in " ".join(" ".join(told).split())
    assert other["model"] in line
    assert next(line for line in told if line.startswith("→")).split()[1] == other["model"]


def test_what_is_compared_of_a_task_that_was_decided_again_is_the_decision_of_its_arrival() -> None:
    """Else the screen says two choices of the same task."""
    body = explained(2)
    other = body["decision"]["candidates"][1]
    released = {
        "type": "task.released", "attempt": 1, "model": other["model"], "expected_worker": other["worker"],
        "candidates": body["decision"]["candidates"], "reason": "the first idea was busy",
    }  # fmt: skip
    body["versus"] = {"label": "slider=2", "words": ["The choice is the same, m on desk."], "pairs": []}
    assert "Compared with slider=2: The choice" in text_of(decisions.explanation(body))
    again = text_of(decisions.explanation(body | {"events": [*body["events"], released]}))
    assert "Compared with slider=2, as decided on arrival: The choice" in again


def test_two_decisions_beside_each_other_show_the_parts_before_and_after() -> None:
    parts = {"wait_s": 0.0, "load_s": 0.0, "prefill_s": 0.1, "decode_s": 3.0, "sharing_s": 0.0, "others_s": 0.0}
    side = parts | {"quality_s": -70.0, "cost_s": -66.9}
    pair = {
        "model": "m",
        "worker": "w-1",
        "worker_name": "desk",
        "before": side,
        "after": side | {"decode_s": 9.0, "cost_s": -60.9},
    }
    gone = {"model": "m", "worker": "w-2", "worker_name": "laptop", "before": side, "after": None}
    beside = {"label": "slider=2", "words": ["m on desk costs 6.00 s more."], "pairs": [pair, gone]}
    told = text_of(decisions.preview(example("`GET /route/preview`") | {"versus": beside}, show_all=True))
    assert "Compared with slider=2: m on desk costs 6.00 s more." in told
    assert "model machine answer s cost s m desk 3.00 → 9.00 -66.90 → -60.90 m laptop 3.00 -66.90 → out" in told


@pytest.mark.parametrize("width", [60, 80])
@pytest.mark.parametrize("seed", range(0, 40, 7))
def test_what_verification_says_is_whole_on_a_narrow_terminal(seed: int, width: int) -> None:
    words = "The release of attempt 1 comes out otherwise when computed again: the log has 1, computed again it is 2."
    body = explained(seed) | {"verification": [{"same": False, "words": words}] * 2}
    lines = lines_of(decisions.explanation(body), width)
    assert len(lines) <= HEIGHT
    assert " ".join(" ".join(lines).split()).count(words) == 2


@pytest.mark.parametrize("width", [80])
def test_at_80_columns_candidates_are_columns_with_their_parts_below(width: int) -> None:
    lines = lines_of(decisions.explanation(explained(4)), width)
    head = next(line for line in lines if "model" in line and "cost" in line)
    assert "seconds" in head and "machine" in head
    row = lines.index(head) + 1
    assert lines[row].startswith("→")
    assert lines[row + 1].lstrip().startswith("wait ") and "answer" in lines[row + 1]


def test_the_task_line_and_the_story_do_not_tell_the_same_thing_in_two_ways() -> None:
    body = explained(2)
    body["status"]["waited_s"] = 0.00148
    assert "waited" not in lines_of(decisions.explanation(body))[0]
    body["status"]["waited_s"] = 0.02
    assert "waited 20.0 ms" in lines_of(decisions.explanation(body))[0]
    assert "domain code (by its words, confidence 0.90)" in text_of(decisions.preview(example("`GET /route/preview`")))


def test_what_verification_says_stays_on_the_screen() -> None:
    body = explained(4) | {
        "verification": [{"same": True, "words": "The decision was computed again and is the same."}]
    }
    lines = lines_of(decisions.explanation(body))
    assert len(lines) <= HEIGHT
    assert "Verified: The decision was computed again and is the same." in " ".join(lines)


def test_events_are_a_timeline_on_request() -> None:
    body = example("`GET /explain/{id}`")
    body["events"].append(
        {"type": "attempt.failed", "at": 1764437002.0, "by": "w-7f3a", "failure": "stall", "attempt": 1}
    )
    words = text_of(decisions.explanation(body, with_events=True))
    assert "attempt.failed" in words
    assert "attempt 1, failure stall" in words


def test_a_preview_says_whether_it_would_start_at_once_or_why_and_how_long_not() -> None:
    body = example("`GET /route/preview`")
    assert "Now: it would start at once, with qwen3 on desktop." in text_of(decisions.preview(body))
    held = {
        "starts_s": 4.2,
        "place": 3,
        "waiting": 3,
        "reason": "waiting_for_faster: desktop is free in 4 s",
        "worker": None,
    }
    told = text_of(decisions.preview(body | {"prospect": held}))
    assert "Now: it would wait (about 4.20 s; place 3 of 3): desktop is free in 4 s." in told
    told = text_of(decisions.preview(body | {"prospect": held | {"starts_s": None, "reason": "no_worker: nobody"}}))
    assert "Now: it would wait (nobody knows how long; place 3 of 3): nobody." in told


def test_all_also_shows_what_further_streams_and_others_cost_and_how_sure_the_speed_is() -> None:
    learned = {"value": 0.42, "level": "worker", "n": 12, "age_s": 30.0}
    row = dict(example("`GET /route/preview`")["candidates"][0], slowdown=learned, others_weight=learned)
    told = {name: (value, source) for name, value, source in evidence(row, everything=True).rows}
    assert told["a further stream"][0] == "+42 %"
    assert told["weight of others"][0] == "0.42"
    assert told["the speed is sure"] == ("to ×1.2", "shown only: it changes no cost")
    assert "a further stream" not in {name for name, *_ in evidence(row).rows}


def test_a_speed_is_what_is_left_now_beside_what_it_is_without_others() -> None:
    certain = {"value": 1.0, "level": "cell", "n": 9, "age_s": 1.0}
    row = dict(
        example("`GET /route/preview`")["candidates"][0], others_use=0.82, others_weight=certain, use_known=certain
    )
    told = {name: (value, source) for name, value, source in evidence(row).rows}
    assert told["writes"][0] == "24.1 tok/s now, 96.4 without other users"
    assert told["used by others"] == ("82 %", "25 % of the speed is left")
    told = {name: (value, source) for name, value, source in evidence(row | {"others_use": 0.0}).rows}
    assert told["writes"][0] == "96.4 tok/s" and "used by others" not in told


def test_a_preview_says_that_the_waits_of_the_table_leave_out_those_ahead_of_it() -> None:
    held = {
        "starts_s": 6.8,
        "place": 2,
        "waiting": 2,
        "reason": "busy: x",
        "model": "m",
        "worker": "w",
        "worker_name": "fast",
    }
    told = text_of(decisions.preview(example("`GET /route/preview`") | {"prospect": held}))
    assert "it would wait for fast (about 6.80 s; place 2 of 2): x." in told
    assert "without the 1 task ahead of it." in told
    told = text_of(decisions.preview(example("`GET /route/preview`") | {"prospect": held | {"place": 1}}))
    assert "ahead of it" not in told


def test_differences_and_costs_below_nought_are_put_in_words() -> None:
    row = dict(example("`GET /route/preview`")["candidates"][0])
    cheaper = row | {"worker_name": "laptop", "cost_s": row["cost_s"] - 5.11}
    told = text_of(decisions.preview(example("`GET /route/preview`") | {"candidates": [row, cheaper]}))
    assert "5.11 s less" in told and "-5.11" not in told
    assert "Below 0 the quality is worth more than the seconds; only differences count." in told


def test_votes_are_set_beside_each_other_and_reasons_have_names_for_ids() -> None:
    parts = ("wait_s", "load_s", "prefill_s", "decode_s", "sharing_s", "others_s", "quality_s")
    side = dict.fromkeys(parts, 0.0) | {"cost_s": 1.0, "votes": None}
    pair = {"model": "m", "worker": "w-1", "worker_name": "desk", "before": side, "after": side | {"votes": 0.5}}
    beside = {"label": "least_in_flight", "words": [], "pairs": [pair]}
    told = text_of(decisions.preview(example("`GET /route/preview`") | {"versus": beside}, show_all=True))
    assert "cost s votes m desk 1.00 - → 0.50" in told
    body = example("`GET /explain/{id}`")
    body["decision"]["removed"] = [{"model": "m", "worker": "w-2", "reason": "worker: the client asked for w-1"}]
    body["decision"]["choice"] = {"model": "m", "worker": "w-1", "reason": "better than w-2"}
    told = text_of(decisions.explanation(body, names={"w-1": "desk", "w-2": "laptop"}))
    assert "m on laptop (worker: the client asked for desk)" in told and "better than laptop" in told


def test_a_task_that_ended_undecided_was_given_to_nobody() -> None:
    body = example("`GET /explain/{id}`") | {"decision": None}
    body["status"]["state"] = "failed"
    assert "Chosen: nothing, before it ended." in text_of(decisions.explanation(body))
