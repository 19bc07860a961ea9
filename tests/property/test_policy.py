"""What must hold of every decision on every fleet: silence never pays, and nobody is judged by his neighbours."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from hypothesis import given, strategies as st

from schemas.cells import Cell, Rates, Sums
from schemas.events import Candidate
from services.router.fleet import WorkerView
from services.router.policy.decide import Decision, decide
from services.router.policy.request import RouteRequest
from support.fleets import NOW_US, cell, fleet, measured, model, worker

MODELS = ("small", "large")
BYTES = {"small": 2_000_000_000, "large": 9_000_000_000}
SHARES = st.one_of(st.none(), st.floats(0.0, 1.0))


@st.composite
def views(draw: st.DrawFn, name: str) -> WorkerView:
    held = draw(st.sets(st.sampled_from(MODELS), min_size=1))
    resident = draw(st.one_of(st.none(), st.sets(st.sampled_from(MODELS)).map(frozenset)))
    return worker(
        name,
        *(model(each, bytes=draw(st.sampled_from((None, BYTES[each])))) for each in sorted(held)),
        resident=resident,
        others_use=draw(SHARES),
        wait_s=draw(st.one_of(st.none(), st.floats(0.0, 3600.0))),
        free=draw(st.sampled_from((None, 0, 1))),
        running=draw(st.sampled_from((None, 0, 1))),
        credit_age_s=draw(st.sampled_from((None, 1.0))),
        fresh=draw(st.booleans()),
        alive=draw(st.sampled_from((True, True, True, False))),
    )


@st.composite
def cells(draw: st.DrawFn, worker_id: str, model_name: str) -> Cell:
    speed = st.one_of(st.none(), st.floats(1.0, 500.0))
    return cell(
        model_name,
        draw(st.sampled_from(("code", "general"))),
        worker_id,
        n=draw(st.integers(1, 40)),
        decode=draw(speed),
        prefill=draw(st.one_of(st.none(), st.floats(50.0, 5000.0))),
        load_s=draw(st.one_of(st.none(), st.floats(0.5, 60.0))),
        output=draw(st.one_of(st.none(), st.integers(1, 2000))),
        quality=draw(st.one_of(st.none(), st.floats(0.0, 1.0))),
        model_bytes=BYTES[model_name],
    )


@st.composite
def worlds(draw: st.DrawFn) -> tuple[tuple[WorkerView, ...], tuple[Cell, ...], RouteRequest, float]:
    names = [f"w{index}" for index in range(draw(st.integers(1, 4)))]
    machines = tuple(draw(views(name)) for name in names)
    known = tuple(draw(cells(name, each)) for name in names for each in MODELS if draw(st.booleans()))
    asks = RouteRequest(
        domain="code", prompt_tokens=draw(st.integers(1, 4000)), max_tokens=draw(st.sampled_from((None, 64)))
    )
    return machines, known, asks, draw(st.sampled_from((0.0, 1.0, 2.0)))


World = tuple[tuple[WorkerView, ...], tuple[Cell, ...], RouteRequest, float]


def decision(world: World, seed: int = 0) -> Decision:
    machines, known, asks, slider = world
    return decide(asks, fleet(*machines), measured(known), seed=seed, now_us=NOW_US, slider=slider)


def by_pair(candidates: Sequence[Candidate]) -> dict[tuple[str, str], Candidate]:
    return {(candidate.model, candidate.worker): candidate for candidate in candidates}


def silent(view: WorkerView, fields: Sequence[str]) -> WorkerView:
    return msgspec.structs.replace(view, **dict.fromkeys(fields))


def assert_no_gain(before: Decision, after: Decision, worker_id: str) -> None:
    """No pair of the worker got cheaper, and none passed a candidate that stood before it and did not change."""
    old, new = by_pair(before.candidates), by_pair(after.candidates)
    for key, candidate in new.items():
        if key[1] == worker_id and key in old:
            assert candidate.cost_s >= old[key].cost_s
            assert candidate.fresh <= old[key].fresh
            ahead_before = {k for k in old if rank(before, k) < rank(before, key) and k[1] != worker_id}
            assert all(rank(after, other) < rank(after, key) for other in ahead_before if other in new)


def rank(decision: Decision, key: tuple[str, str]) -> int:
    return [(c.model, c.worker) for c in decision.candidates].index(key)


METRICS = ("others_use", "resident", "wait_s", "free", "running", "credit_age_s")


@given(worlds(), st.sets(st.sampled_from(METRICS), min_size=1), st.data())
def test_acceptance_6_a_worker_that_stops_reporting_a_metric_never_gains_by_it(
    world: World, fields: set[str], data: st.DataObject
) -> None:
    machines = world[0]
    index = data.draw(st.integers(0, len(machines) - 1))
    quieter = (*machines[:index], silent(machines[index], sorted(fields)), *machines[index + 1 :])
    assert_no_gain(decision(world), decision((quieter, *world[1:])), machines[index].id)


@given(worlds(), st.data())
def test_acceptance_6_a_worker_that_reports_nothing_at_all_never_gains_by_it(world: World, data: st.DataObject) -> None:
    machines = world[0]
    index = data.draw(st.integers(0, len(machines) - 1))
    mute = msgspec.structs.replace(silent(machines[index], METRICS), fresh=False)
    assert_no_gain(decision(world), decision(((*machines[:index], mute, *machines[index + 1 :]), *world[1:])), mute.id)


@given(worlds())
def test_case_24_somebody_alive_or_not_is_always_there_to_choose(world: World) -> None:
    result = decision(world)
    assert result.choice is not None
    heard = {view.id for view in world[0] if view.alive}
    assert not heard or result.choice.worker in heard
    everyone_off = tuple(msgspec.structs.replace(view, alive=False, fresh=False) for view in world[0])
    assert decision((everyone_off, *world[1:])).choice is not None


@given(worlds(), st.sampled_from(("bad", "good")))
def test_another_candidate_never_changes_anybody_elses_cost(world: World, kind: str) -> None:
    newcomer = worker("new", *(model(each) for each in MODELS), wait_s=3000.0 if kind == "bad" else 0.0, alive=True)
    before, after = decision(world), decision(((*world[0], newcomer), *world[1:]))
    old, new = by_pair(before.candidates), by_pair(after.candidates)
    assert {key: c for key, c in new.items() if key in old} == {key: c for key, c in old.items() if key in new}
    kept = [key for key in ((c.model, c.worker) for c in before.candidates) if key in new]
    assert kept == [(c.model, c.worker) for c in after.candidates if c.worker != "new"]


@given(worlds(), st.randoms(use_true_random=False))
def test_the_order_in_which_machines_and_cells_come_changes_nothing(world: World, rng: random.Random) -> None:
    machines, known = list(world[0]), list(world[1])
    rng.shuffle(machines)
    rng.shuffle(known)
    assert decision((tuple(machines), tuple(known), *world[2:])) == decision(world)


@given(worlds(), st.integers(0, 10), st.integers(0, 10))
def test_the_seed_orders_equals_only(world: World, one: int, other: int) -> None:
    a, b = decision(world, one).candidates, decision(world, other).candidates
    assert [(c.fresh, c.cost_s) for c in a] == [(c.fresh, c.cost_s) for c in b]
    assert by_pair(a) == by_pair(b)


@given(worlds())
def test_a_cost_is_exactly_its_parts_and_is_recomputed_from_the_record(world: World) -> None:
    result = decision(world)
    slider, least, wait = (result.policy.weights[k] for k in ("slider", "others_factor_least", "unknown_wait_s"))
    for c in result.candidates:
        assert c.others_weight is not None and c.others_weight.value is not None and c.slowdown is not None
        assert c.use_known is not None and c.use_known.value is not None
        most = 1.0 - least
        share = 1.0 - c.use_known.value * (
            most if c.others_use is None else min(c.others_weight.value * c.others_use, most)
        )
        assert c.decode.value and c.prefill.value and c.load.value and c.quality.value is not None
        assert c.output_tokens is not None and c.output_tokens.value is not None and c.prompt_tokens is not None
        length = min(c.output_tokens.value, world[2].max_tokens or float("inf"))
        total = wait if c.predicted.wait_s is None else c.predicted.wait_s
        total += 0.0 if c.resident else c.load.value
        total += c.prompt_tokens / (c.prefill.value * share) + length / (c.decode.value * share)
        assert c.cost_s == pytest.approx(total - slider * 100.0 * c.quality.value, rel=1e-9, abs=1e-6)


def scaled(known: Cell, by: int) -> Cell:
    """The same measurements, ``by`` times as many: every count and weight grows, no mean does."""

    def more(part: Any) -> Any:
        factor = {field: getattr(part, field) * by for field in part.__struct_fields__ if field not in ("p50", "p95")}
        return msgspec.structs.replace(part, **factor)

    parts = {f: more(v) for f in Cell.__struct_fields__ if isinstance(v := getattr(known, f), Sums | Rates)}
    return msgspec.structs.replace(known, **parts)


def alone(known: Cell) -> Candidate:
    """The only pair of a fleet of one machine that was measured as ``known``."""
    machine = worker("w0", model("small", bytes=BYTES["small"]))
    return decision(((machine,), (known,), RouteRequest(domain="code", prompt_tokens=100), 1.0)).candidates[0]


@given(st.floats(1.0, 400.0), st.floats(0.0, 1.0), st.integers(2, 40))
def test_s5_more_samples_move_an_estimate_towards_what_was_measured_and_are_no_merit_of_themselves(
    decode: float, quality: float, times: int
) -> None:
    few = cell("small", "code", "w0", n=3, decode=decode, quality=quality, model_bytes=BYTES["small"])
    a, b = alone(few), alone(scaled(few, times))
    for old, new, truth in ((a.decode, b.decode, decode), (a.quality, b.quality, quality)):
        assert old.value is not None and new.value is not None
        assert new.n == times * old.n
        assert abs(new.value - truth) <= abs(old.value - truth) + 1e-5 * max(truth, 1.0)
    assert b.uncertainty is not None and a.uncertainty is not None and b.uncertainty < a.uncertainty


@given(st.integers(2, 40))
def test_s5_a_machine_measured_at_what_was_guessed_costs_the_same_with_any_number_of_samples(times: int) -> None:
    guessed = cell("small", "code", "w0", n=3, decode=60.0, quality=0.5, model_bytes=BYTES["small"])
    unmeasured = alone(cell("small", "code", "w0", n=1, model_bytes=BYTES["small"]))
    costs = [unmeasured.cost_s, alone(guessed).cost_s, alone(scaled(guessed, times)).cost_s]
    assert costs == pytest.approx([costs[0]] * 3, abs=1e-3)


FIELDS = ("decode", "prefill", "load", "output", "quality")


@given(worlds(), st.sampled_from(FIELDS), st.data())
def test_a_field_missing_from_a_cell_changes_that_field_alone(world: World, field: str, data: st.DataObject) -> None:
    """S4: no other field, and above all not the whole row, falls back with it."""
    machines, known, asks, slider = world
    if not known:
        return
    index = data.draw(st.integers(0, len(known) - 1))
    bare = msgspec.structs.replace(known[index], **{field: Rates() if field in ("decode", "prefill") else Sums()})
    before = by_pair(decision(world).candidates)
    after = by_pair(decision((machines, (*known[:index], bare, *known[index + 1 :]), asks, slider)).candidates)
    part = {"output": "output_tokens"}.get(field, field)
    for key, candidate in after.items():
        for name in {"decode", "prefill", "load", "output_tokens", "quality"} - {part}:
            assert getattr(candidate, name) == getattr(before[key], name)


@given(st.floats(1.0, 400.0), st.floats(1.0, 400.0), st.sampled_from(("decode", "prefill")))
def test_a_machine_faster_than_its_parents_say_never_gains_by_an_unmeasured_cell(
    own: float, others: float, field: str
) -> None:
    """The other direction is meant: an unmeasured machine is unknown, not slow (DESIGN.md, rule 3)."""
    own, others = max(own, others), min(own, others)
    rate = 10.0 if field == "prefill" else 1.0
    machines = (worker("w0", model("small", bytes=BYTES["small"])), worker("w1", model("small", bytes=BYTES["small"])))
    mine = cell("small", "code", "w0", n=10, model_bytes=BYTES["small"], **{field: own * rate})  # type: ignore[arg-type]
    theirs = cell("small", "code", "w1", n=10, model_bytes=BYTES["small"], **{field: others * rate})  # type: ignore[arg-type]
    guess = {"decode": 60.0, "prefill": 1500.0}[field]
    asks = RouteRequest(domain="code", prompt_tokens=500)
    with_ = by_pair(decision((machines, (mine, theirs), asks, 1.0)).candidates)["small", "w0"]
    without = by_pair(decision((machines, (theirs,), asks, 1.0)).candidates)["small", "w0"]
    if own * rate > 1.001 * guess:  # at the guess itself only the rounding of the sums would decide
        assert without.cost_s >= with_.cost_s - 1e-9
