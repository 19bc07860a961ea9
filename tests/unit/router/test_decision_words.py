"""One decision in words: parts, sources, unknowns, rivals, removals; short enough for a screen."""

from __future__ import annotations

import msgspec
import pytest

from schemas.events import Measure, Wants
from services.router.decision_words import Parts, decision_words, named, parts_of, provenance
from support.choosing import route
from support.fleets import cell, worker

CELLS = [
    cell("qwen3", "code", "desk", n=31, decode=60, prefill=2000, output=300, quality=0.8),
    cell("qwen3", "code", "laptop", n=12, decode=9, prefill=250),
]
DESK, LAPTOP = worker("desk", "qwen3"), worker("laptop", "qwen3", resident=frozenset())


def test_the_parts_of_every_candidate_add_up_to_its_cost() -> None:
    for known in (DESK, worker("desk", "qwen3", wait_s=None, others_use=None, resident=None)):
        for candidate in route([known, LAPTOP], CELLS).candidates:
            parts = parts_of(candidate)
            assert sum(getattr(parts, field) for field in Parts.__struct_fields__) == pytest.approx(candidate.cost_s)


def test_each_number_says_where_it_comes_from_how_many_and_how_old() -> None:
    words = "\n".join(decision_words(route([DESK, LAPTOP], CELLS)))
    assert "Decode 60.0 tokens/s (31 samples of this model, domain and machine, the last 60 s ago)." in words
    assert "Its quality of 80 points is worth 80 s at 1 s a point." in words
    assert "Quality 80 of 100 (31 samples of this model, domain and machine, the last 60 s ago)." in words


@pytest.mark.parametrize(
    ("measure", "words"),
    [
        (Measure(value=1.0, level="prior", n=0), "never measured, a starting guess"),
        (
            Measure(value=1.0, level="cell", n=1, age_s=3.0),
            "1 sample of this model, domain and machine, the last 3 s ago",
        ),
        (
            Measure(value=1.0, level="worker", n=4, age_s=7200.0),
            "4 samples of other models on this machine, scaled by size, the last 2 h ago",
        ),
        (
            Measure(value=1.0, level="model", n=4, age_s=300_000.0),
            "4 samples of this model elsewhere, the last 3 d ago",
        ),
        (Measure(value=1.0, level="model_domain", n=4), "4 samples of this model and domain"),
    ],
)
def test_the_provenance_of_a_number(measure: Measure, words: str) -> None:
    assert provenance(measure) == words


def test_a_rival_is_told_by_its_differences_largest_first() -> None:
    words = decision_words(route([DESK, LAPTOP], CELLS))
    rival = next(line for line in words if line.startswith("qwen3 on laptop: "))
    assert " more (decode +" in rival
    assert "load +" in rival


def test_unknowns_are_said_with_their_reason() -> None:
    laptop = worker("laptop", "qwen3", others_use=None, others_reason="no_agent", wait_s=None, fresh=False)
    words = decision_words(route([DESK, laptop], CELLS))
    assert (
        "Unknown of laptop: its load is older than 15 s or was never heard, the wait for a free slot, "
        "others' use of it (no_agent), which models are loaded. Each counts as its worst case."
    ) in words


def test_somebody_elses_use_is_said() -> None:
    words = decision_words(route([worker("desk", "qwen3", others_use=0.4)], CELLS))
    assert "Somebody else uses 40 % of the machine, which slows it down." in words
    assert words[2].startswith("Decode 36.0 tokens/s now, 60.0 without other users (31 samples")


def test_a_guess_about_a_machine_is_called_one() -> None:
    guess = "This model was never measured on this machine: its speed is a guess, until this answer is in."
    assert guess in decision_words(route([worker("new", "qwen3")], []))
    assert guess not in decision_words(route([DESK], CELLS))


def test_a_clients_limit_is_told_beside_the_expected_length() -> None:
    candidate = route([DESK], CELLS).candidates[0]
    assert candidate.output_tokens is not None and candidate.output_tokens.value is not None
    limited = msgspec.structs.replace(
        candidate, predicted=msgspec.structs.replace(candidate.predicted, decode_s=20 / (candidate.decode.value or 1.0))
    )
    routed = msgspec.structs.replace(route([DESK], CELLS), candidates=(limited,))
    assert any("of which at most 20 are asked for" in line for line in decision_words(routed))
    assert not any("asked for" in line for line in decision_words(route([DESK], CELLS)))


def test_workers_are_called_by_name_where_the_name_is_known() -> None:
    routed = route([DESK, LAPTOP, worker("w3", "llama", draining=True)], CELLS)
    words = decision_words(routed, {"desk": "Desk of Ann", "w3": "Old Mac"})
    assert words[0].startswith("qwen3 on Desk of Ann was chosen")
    assert words[-1] == "Left out: llama on Old Mac, draining: takes no new work."


def test_a_large_fleet_still_fits_on_a_screen() -> None:
    many = [worker(f"w{i}", "qwen3", "llama") for i in range(40)]
    off = [worker(f"x{i}", "qwen3", alive=False) for i in range(40)]
    words = decision_words(route([*many, *off], CELLS))
    assert len(words) <= 24
    assert "74 more could have answered at a higher cost." in words
    assert words[-1] == "Left out: 35 more."


def test_where_policies_voted_each_rivals_votes_are_told() -> None:
    routed = route([DESK, LAPTOP], CELLS)
    voted = [
        msgspec.structs.replace(c, votes={"least_in_flight": n})
        for c, n in zip(routed.candidates, (0.8, 0.2), strict=True)
    ]
    words = decision_words(msgspec.structs.replace(routed, candidates=tuple(voted)))
    assert any(line.startswith("qwen3 on laptop: ") and ", 0.20 votes, costs" in line for line in words)


def test_reasons_call_workers_by_name_too() -> None:
    routed = route([worker("w-1", "qwen3"), worker("w-2", "qwen3")], CELLS, wants=Wants(worker="w-1"))
    words = decision_words(routed, {"w-1": "desk", "w-2": "laptop"})
    assert words[-1] == "Left out: qwen3 on laptop, worker: the client asked for desk."
    assert named("w-11 and (w-1)", {"w-1": "desk"}) == "w-11 and (desk)"
