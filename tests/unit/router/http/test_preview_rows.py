from __future__ import annotations

import msgspec

from schemas.events import Candidate, Choice, Domain, TaskRouted
from schemas.subjects import lane_durable
from services.router.fleet import Fleet, WorkerView
from services.router.http.preview_rows import decided, preview_of
from services.router.port import Submitted
from support import builders
from support.router_port import DESKTOP

DECISION = builders.build(
    TaskRouted,
    candidates=(msgspec.structs.replace(builders.DESK_CANDIDATE, model="qwen3", worker="w-1"),),
    choice=Choice(model="qwen3", worker="w-1", reason="why"),
)

SEEN = Submitted(task="preview", domain=Domain(label="code", method="rules"), language="en")


def armed(worker: WorkerView) -> bool | None:
    preview = preview_of(SEEN, DECISION, Fleet(workers={"w-1": worker}), [])
    value: bool | None = preview.candidates[0]["queue"].armed
    return value


def test_a_candidate_shows_everything_the_decision_knew() -> None:
    (row,) = preview_of(SEEN, DECISION, Fleet(workers={"w-1": DESKTOP}), []).candidates
    assert set(row) == {*Candidate.__struct_fields__, "worker_name", "capability", "queue"}


def test_armed_means_this_model_s_group_or_the_worker_s_own_lane() -> None:
    assert armed(DESKTOP) is True
    assert armed(msgspec.structs.replace(DESKTOP, armed={lane_durable("w-1"): 0})) is True
    assert armed(msgspec.structs.replace(DESKTOP, armed={"g~cpu_inference~qwen3": 0})) is False
    assert armed(msgspec.structs.replace(DESKTOP, credit_age_s=None)) is None


def test_a_worker_that_left_is_still_shown_by_its_id() -> None:
    preview = preview_of(SEEN, DECISION, Fleet(), [])
    assert preview.candidates[0]["worker_name"] == "w-1"
    assert preview.candidates[0]["queue"].slots is None
    assert preview.choice is not None
    assert preview.choice.worker_name == "w-1"


def test_a_decision_in_one_line() -> None:
    line = decided(DECISION, Fleet(workers={"w-1": DESKTOP}))
    assert (line.model, line.worker_name, line.reason, line.expected_s) == ("qwen3", "desktop", "why", 4.0)
    assert (line.candidates, line.removed) == (1, 1)


def test_its_quality_says_from_how_many_judgements_of_what_it_comes() -> None:
    quality = builders.DESK_CANDIDATE.quality
    line = decided(DECISION, Fleet())
    assert (line.quality, line.quality_level, line.quality_n) == (quality.value, quality.level, quality.n)
    nobody = decided(builders.build(TaskRouted, candidates=(), choice=None), Fleet())
    assert (nobody.quality, nobody.quality_level, nobody.quality_n) == (None, None, None)


def test_it_says_what_the_prompt_was_taken_for() -> None:
    preview = preview_of(SEEN, DECISION, Fleet(), [])
    assert (preview.domain.label, preview.language) == ("code", "en")


def test_no_choice_is_no_choice() -> None:
    nobody = builders.build(TaskRouted, candidates=(), choice=None)
    assert preview_of(SEEN, nobody, Fleet(), []).choice is None
    assert decided(nobody, Fleet()).expected_s is None
