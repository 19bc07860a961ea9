"""What every filter must keep: it judges one pair alone, says why, and what is unknown is no reason to remove anybody."""

from __future__ import annotations

import random
import re

import msgspec
import pytest
from hypothesis import given, strategies as st

from schemas.events import Wants
from services.router.policy.filters import HARD, SOFT, Filter, Pair, keep, pairs_of
from services.router.policy.picker import order
from services.router.policy.request import RouteRequest
from services.router.policy.routes import Target
from services.router.policy.scorer import score
from support.fleets import NOW_US, fleet, measured, model, worker

EVERY = pytest.mark.parametrize("filter_", [*HARD, *SOFT], ids=lambda f: f.__name__)
SOMETIMES = st.sampled_from((False, False, False, True))


@st.composite
def pairs(draw: st.DrawFn) -> list[Pair]:
    machines = [
        worker(
            f"w{n}",
            model(
                "m",
                digest=draw(st.sampled_from((None, "1", "2"))),
                context=draw(st.sampled_from((None, 2_048, 8_192))),
                capability=draw(st.sampled_from(("cpu_inference", "gpu_inference", "embedding"))),
                capabilities=draw(st.sampled_from(((), ("completion",), ("embedding",)))),
            ),
            supports=draw(st.sampled_from((("cpu_inference",), ("gpu_inference", "cpu_inference")))),
            alive=not draw(SOMETIMES),
            draining=draw(SOMETIMES),
            paused=draw(SOMETIMES),
        )
        for n in range(draw(st.integers(1, 6)))
    ]
    return pairs_of("m", fleet(*machines).holders("m"))


requests = st.builds(
    RouteRequest,
    prompt_tokens=st.integers(1, 20_000),
    max_tokens=st.sampled_from((None, 512)),
    kind=st.sampled_from(("chat", "embedding")),
    wants=st.builds(
        Wants,
        worker=st.sampled_from((None, None, "w1", "w9")),
        capability=st.sampled_from((None, "tools")),
        context=st.sampled_from((None, 4_096)),
    ),
    targets=st.sampled_from(((), (Target(model="m"),), (Target(model="m", worker="w0"),), (Target(model="x"),))),
)


@EVERY
@given(found=pairs(), request=requests)
def test_a_removal_says_why_in_a_code_and_words_the_same_each_time(
    filter_: Filter, found: list[Pair], request: RouteRequest
) -> None:
    for pair in found:
        reason = filter_(pair, request)
        assert reason == filter_(msgspec.structs.replace(pair), request)
        assert reason is None or re.fullmatch(r"[a-z]+: \S.*", reason)


@given(found=pairs(), request=requests, rng=st.randoms(use_true_random=False))
def test_who_stays_does_not_depend_on_the_order_and_everybody_else_has_a_reason(
    found: list[Pair], request: RouteRequest, rng: random.Random
) -> None:
    shuffled = list(found)
    rng.shuffle(shuffled)
    (kept, removed), (kept_too, removed_too) = keep(found, request), keep(shuffled, request)
    assert {p.worker.id for p in kept} == {p.worker.id for p in kept_too}
    assert {p.worker.id: r for p, r in removed} == {p.worker.id: r for p, r in removed_too}
    assert len(kept) + len(removed) == len(found)


@given(found=pairs(), request=requests)
def test_preferences_never_empty_the_set_that_the_hard_ones_left(found: list[Pair], request: RouteRequest) -> None:
    hard = [pair for pair in found if all(filter_(pair, request) is None for filter_ in HARD)]
    kept, _ = keep(found, request)
    assert bool(kept) == bool(hard)
    assert set(map(id, kept)) <= set(map(id, hard))


@given(found=pairs(), request=requests)
def test_who_tells_less_of_a_model_is_removed_by_no_more_filters(found: list[Pair], request: RouteRequest) -> None:
    """Unknown is never good, but it is no proof of the contrary: only a known context or digest removes."""
    for pair in found:
        silent = msgspec.structs.replace(pair, info=msgspec.structs.replace(pair.info, context=None, digest=None))
        for filter_ in (*HARD, *SOFT):
            assert filter_(pair, request) is not None or filter_(silent, request) is None


@given(found=pairs(), seed=st.integers(0, 2**32 - 1), rng=st.randoms(use_true_random=False))
def test_the_picker_orders_a_set(found: list[Pair], seed: int, rng: random.Random) -> None:
    asks, stats = RouteRequest(prompt_tokens=100), measured(())
    candidates = [score(pair, asks, stats, slider=1.0, now_us=NOW_US) for pair in found]
    shuffled = list(candidates)
    rng.shuffle(shuffled)
    assert order(candidates, seed) == order(shuffled, seed)
