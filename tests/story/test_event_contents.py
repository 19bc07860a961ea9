"""The events say enough: what a decision was made of, what a statistic may be keyed by, and how a log moves house.

The decisions are the router's own; all that is computed from them is computed from events alone: no heartbeat, no clock, and no
code of the services, so that a field that is missing shows up here and not in a year's log.
"""

from __future__ import annotations

import hashlib
import itertools
import random
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from schemas import codec, events, exchange
from schemas.events import Candidate, TaskCompleted, TaskRouted, TaskSubmitted
from schemas.statistics import CellKey, Sample, fold, key_of, sample_of
from services.runtime.bus import Bus
from services.runtime.feed import Feed
from services.runtime.provision import provision
from services.runtime.server import EmbeddedServer
from services.runtime.stored import StoredMessage
from support.builders import DESK, DESK_CANDIDATE, LAPTOP, build, measure
from support.decisions import Decision, real_decision, told_decision
from support.history import Raw, encoded, history
from support.machines import WEIGHTS

# -- A decision ---------------------------------------------------------------------------------------------------------------


def cost_again(submitted: TaskSubmitted, routed: TaskRouted, pair: Candidate) -> tuple[float, float]:
    """(total, cost) in seconds by the rule of docs/scoring.md; unknown counts as its worst case."""
    weights = routed.policy.weights
    most, weight = (
        1.0 - weights["others_factor_least"],
        1.0 if pair.others_weight is None else known(pair.others_weight),
    )
    told = 1.0 if pair.use_known is None else known(pair.use_known)
    share = 1.0 - told * (most if pair.others_use is None else min(weight * pair.others_use, most))
    wait = weights["unknown_wait_s"] if pair.predicted.wait_s is None else pair.predicted.wait_s
    load = 0.0 if pair.resident else known(pair.load)
    prompt, output = pair.prompt_tokens, known(pair.output_tokens)
    assert prompt is not None
    if submitted.options.max_tokens is not None:
        output = min(output, submitted.options.max_tokens)
    total = wait + load + prompt / (known(pair.prefill) * share) + output / (known(pair.decode) * share)
    total += pair.predicted.sharing_s or 0.0
    return total, total - weights["slider"] * 100.0 * known(pair.quality)


def known(measured: events.Measure | None) -> float:
    """Effective values end in a prior, so a decision without one was not recorded whole."""
    assert measured is not None
    assert measured.value is not None
    return measured.value


def decide_again(submitted: TaskSubmitted, routed: TaskRouted) -> list[Candidate]:
    """The candidates as they must have been: fresh ones first, then by cost, equals by the recorded seed."""
    pairs = []
    for pair in routed.candidates:
        total, cost = cost_again(submitted, routed, pair)
        predicted = msgspec.structs.replace(pair.predicted, total_s=total)
        pairs.append(msgspec.structs.replace(pair, cost_s=cost, predicted=predicted))

    def rank(pair: Candidate) -> tuple[bool, float, bytes]:
        lot = f"{routed.seed}\n{pair.model}\n{pair.worker}".encode()
        return not pair.fresh, pair.cost_s, hashlib.blake2b(lot, digest_size=8).digest()

    return sorted(pairs, key=rank)


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("made_by", [real_decision, told_decision])
def test_a_decision_is_recomputed_bit_for_bit(made_by: Callable[[int], Decision], seed: int) -> None:
    submitted, routed = made_by(seed)
    shuffled = random.Random(seed).sample(routed.candidates, len(routed.candidates))
    again = decide_again(submitted, msgspec.structs.replace(routed, candidates=tuple(shuffled)))
    assert tuple(again) == routed.candidates
    assert routed.choice is not None
    assert (again[0].model, again[0].worker) == (routed.choice.model, routed.choice.worker)


def test_equal_machines_are_ordered_by_nothing_but_the_seed() -> None:
    twins = tuple(msgspec.structs.replace(SLOW, worker=f"w{number}") for number in range(3))
    orders = {
        tuple(
            pair.worker
            for pair in decide_again(submitted, msgspec.structs.replace(routed, candidates=twins, seed=seed))
        )
        for seed in range(60)
        for submitted, routed in [altered()]
    }
    assert len(orders) == 6


SLOW = msgspec.structs.replace(
    DESK_CANDIDATE,
    decode=measure(50.0),
    resident=False,
    others_use=0.2,
    cost_s=-61.25,
    predicted=events.Prediction(
        wait_s=1.0, load_s=3.5, prefill_s=200 / 640, decode_s=7.5, sharing_s=0.0, total_s=12.3125
    ),
)


def altered(**changes: Any) -> Decision:
    """A decision on ``SLOW``, with some of what was recorded changed."""
    weights = WEIGHTS | {name: changes.pop(name) for name in WEIGHTS if name in changes}
    submitted = build(TaskSubmitted, options=events.Options(max_tokens=changes.pop("max_tokens", None)))
    if "wait_s" in changes:
        changes["predicted"] = msgspec.structs.replace(SLOW.predicted, wait_s=changes.pop("wait_s"))
    pair = msgspec.structs.replace(SLOW, **changes)
    return submitted, build(TaskRouted, candidates=(pair,), policy=events.Policy(name="p", weights=weights))


@pytest.mark.parametrize(
    ("change", "by"),
    [
        ({"decode": measure(25.0)}, 7.5),
        ({"prefill": measure(400.0)}, 0.3125),
        ({"load": measure(4.5, "prior")}, 1.0),
        ({"quality": measure(0.68)}, 10.0),
        ({"prompt_tokens": 400}, 0.3125),
        ({"output_tokens": measure(600.0)}, 7.5),
        ({"max_tokens": 150}, -3.75),
        ({"wait_s": 3.0}, 2.0),
        ({"wait_s": None}, 3_599.0),
        ({"others_use": 0.6}, 7.8125),
        ({"others_weight": measure(3.0)}, 7.8125),
        ({"others_use": None}, (7.5 + 0.3125) * 2.2),
        ({"resident": True}, -3.5),
        ({"resident": None}, 0.0),
        ({"slider": 2.0}, -78.0),
    ],
    ids=lambda change: "+".join(change) if isinstance(change, dict) else "",
)
def test_each_recorded_input_moves_the_cost_by_what_it_says(change: dict[str, Any], by: float) -> None:
    before, after = (cost_again(*decision, decision[1].candidates[0])[1] for decision in (altered(), altered(**change)))
    assert after - before == pytest.approx(by, abs=1e-9)


def test_an_altered_input_shows_that_the_decision_was_altered() -> None:
    submitted, routed = altered(wait_s=2.0)
    assert tuple(decide_again(submitted, routed)) != routed.candidates


def test_a_silent_machine_comes_after_every_fresh_one_at_any_cost() -> None:
    fast = msgspec.structs.replace(SLOW, worker=LAPTOP, fresh=False, decode=measure(5_000.0))
    submitted, routed = altered()
    both = msgspec.structs.replace(routed, candidates=(fast, SLOW))
    assert [pair.worker for pair in decide_again(submitted, both)] == [DESK, LAPTOP]


# -- A statistic's key --------------------------------------------------------------------------------------------------------

OF_ONE_TASK = {"id", "v", "at", "by", "cause", "task", "attempt", "tokens", "times", "answer"}
ATTRIBUTES = tuple(name for name in TaskCompleted.__struct_fields__ if name not in OF_ONE_TASK)
"""Every field that is not one task's own business may be a key; a new one is tried here without being named."""

Totals = tuple[int, int, int]


def keyed(completed: Iterable[TaskCompleted], attributes: Sequence[str]) -> dict[tuple[Any, ...], Totals]:
    """(runs, output tokens, decode microseconds) for each combination of attributes."""
    totals: defaultdict[tuple[Any, ...], Totals] = defaultdict(lambda: (0, 0, 0))
    for event in completed:
        key = tuple(getattr(event, name) for name in attributes)
        n, tokens, decode_us = totals[key]
        seconds = event.times.decode_s
        more_us = round(seconds * 1e6) if seconds is not None else 0
        totals[key] = (n + 1, tokens + (event.tokens.output or 0), decode_us + more_us)
    return dict(totals)


COMPLETED = [entry.event for entry in history(11, 400) if isinstance(entry.event, TaskCompleted)]


@pytest.mark.parametrize("finer", list(itertools.combinations(ATTRIBUTES, 2)), ids="-".join)
def test_any_key_adds_up_to_any_coarser_one(finer: tuple[str, ...]) -> None:
    for coarser in finer:
        added: defaultdict[tuple[Any, ...], list[Totals]] = defaultdict(list)
        for key, totals in keyed(COMPLETED, finer).items():
            added[(key[finer.index(coarser)],)].append(totals)
        again = {key: tuple(map(sum, zip(*parts, strict=True))) for key, parts in added.items()}
        assert again == keyed(COMPLETED, (coarser,))


def test_a_new_key_tells_apart_what_the_old_one_mixed() -> None:
    by_model = keyed(COMPLETED, ("model",))
    by_four = keyed(COMPLETED, ("model", "quantisation", "worker", "context"))
    assert {key[:2] for key in by_four} == {("qwen3:8b", "Q4_K_M"), ("llama3.2:3b", "Q8_0")}
    assert len(by_four) == 2 * len(by_model)
    desk, laptop = (
        tokens / decode_us * 1e6
        for worker in ("w-desk", "w-lap")
        for _, tokens, decode_us in [by_four["qwen3:8b", "Q4_K_M", worker, 8_192]]
    )
    assert desk / laptop == pytest.approx(440 / 60, rel=0.15)


def test_the_default_key_gives_the_product_s_own_cells() -> None:
    samples: defaultdict[CellKey, list[Sample]] = defaultdict(list)
    for seq, event in enumerate(COMPLETED, 1):
        sample = sample_of(event, seq, seq)
        assert sample is not None
        samples[key_of(sample)].append(sample)
    cells = {key: fold(members) for key, members in samples.items()}
    measured = [event for event in COMPLETED if event.times.decode_s is not None]
    assert {key: cell.total.n for key, cell in cells.items()} == {
        key: n for key, (n, _, _) in keyed(COMPLETED, ("model", "domain", "worker")).items()
    }
    assert {key: cell.decode.n for key, cell in cells.items()} == {
        key: n for key, (n, _, _) in keyed(measured, ("model", "domain", "worker")).items()
    }


# -- A log that moves house ---------------------------------------------------------------------------------------------------

Folded = tuple[dict[CellKey, Any], dict[str, str], list[str]]


def folded(log: Iterable[tuple[int, int, bytes]]) -> Folded:
    """(statistics, each task's end, types in order) of (sequence, time, bytes)."""
    samples: defaultdict[CellKey, list[Sample]] = defaultdict(list)
    ends: dict[str, str] = {}
    types = []
    for seq, at_us, data in log:
        event = codec.decode(data)
        assert isinstance(event, events.Event)
        types.append(events.type_of(event))
        if isinstance(event, events.Terminal):
            ends.setdefault(event.task, events.type_of(event))
        if sample := sample_of(event, seq, at_us):
            samples[key_of(sample)].append(sample)
    return {key: fold(members) for key, members in samples.items()}, ends, types


async def read(bus: Bus) -> list[StoredMessage]:
    stored: list[StoredMessage] = []

    async def collect(batch: list[StoredMessage]) -> None:
        stored.extend(batch)

    async with Feed(bus, "EVENTS", on_batch=collect) as feed:
        await feed.caught_up.wait()
    return stored


async def import_lines(bus: Bus, lines: Iterable[bytes]) -> Counter[bool]:
    """Counts what was new (False) and what was there (True)."""
    seen: Counter[bool] = Counter()
    for line in lines:
        one = exchange.parse_line(line)
        assert one.msg_id is not None
        seen[(await bus.publish_stored(one.subject, one.data, one.msg_id, one.headers())).duplicate] += 1
    return seen


def export_lines(stored: Iterable[StoredMessage | Raw]) -> list[bytes]:
    return [
        exchange.export_line(
            each.seq,
            each.at_us,
            each.subject,
            each.data,
            each.headers if isinstance(each, StoredMessage) else {exchange.ID_HEADER: each.msg_id},
        )
        for each in stored
    ]


def original(stored: Iterable[StoredMessage]) -> list[tuple[int, int, bytes]]:
    return [(each.seq, exchange.origin(each.seq, each.at_us, each.headers)[1], each.data) for each in stored]


async def test_a_log_folds_the_same_after_two_moves_between_real_streams(tmp_path: Path) -> None:
    """120 tasks over weeks, so that weights hang on the original times; what a server calls now would change them."""
    log = list(encoded(history(5, 120, gap_s=20_000.0)))
    expected = folded((each.seq, each.at_us, each.data) for each in log)
    lines = export_lines(log)
    for name in ("first", "second"):
        async with (
            EmbeddedServer(tmp_path / name, sync="10s") as server,
            await Bus.connect(server.url, name="t") as bus,
        ):
            await provision(bus)
            assert await import_lines(bus, lines) == {False: len(log)}
            stored = await read(bus)
            assert folded(original(stored)) == expected
            assert folded((each.seq, each.at_us, each.data) for each in stored) != expected
            assert await import_lines(bus, lines[-50:]) == {True: 50}
            (tmp_path / f"{name}.ndjson").write_bytes(b"".join(export_lines(stored)))
            lines = (tmp_path / f"{name}.ndjson").read_bytes().splitlines(keepends=True)
    assert lines == export_lines(log)
    assert len(expected[1]) == 120
