from __future__ import annotations

import pytest

from schemas import subjects
from schemas.errors import InvalidToken

HOSTILE = ("qwen3:8b", "a.b", "*", ">", "日本語", "x y", "~", "=")


@pytest.mark.parametrize("name", HOSTILE)
def test_a_work_item_can_be_taken_apart_again(name: str) -> None:
    subject = subjects.item_subject(name, name, name, name, 12)
    assert subjects.parse_item_subject(subject) == (name, name, name, name, 12)
    assert len(subject.split(".")) == 7


@pytest.mark.parametrize(
    "subject",
    [
        "",
        "task.q.cpu.m.any.t",
        "task.q.cpu.m.any.t.1.2",
        "task.x.cpu.m.any.t.1",
        "task.q.cpu.m.any.t.²",
        "task.q.cpu.m.any.t.x",
        "task.q.cpu.m.any..1",
        "task.q.*.m.any.t.1",
    ],
)
def test_what_is_no_work_item_is_refused_with_the_form_it_should_have(subject: str) -> None:
    with pytest.raises(InvalidToken):
        subjects.parse_item_subject(subject)


def test_a_group_hears_its_items_and_nobody_elses() -> None:
    item = subjects.item_subject("cpu_inference", "qwen3:8b", subjects.ANY_LANE, "t1", 1)
    pinned = subjects.item_subject("cpu_inference", "qwen3:8b", "w1", "t1", 1)
    group = subjects.group_filter("cpu_inference", "qwen3:8b").removesuffix(">")
    assert item.startswith(group)
    assert not pinned.startswith(group)
    assert pinned.split(".")[4] == subjects.lane_filter("w1").split(".")[4]


@pytest.mark.parametrize(
    "make",
    [
        subjects.lane_filter,
        subjects.lane_durable,
        subjects.credit_subject,
        subjects.control_subject,
        subjects.heartbeat_subject,
        subjects.worker_token,
    ],
)
def test_a_worker_named_any_is_refused(make: object) -> None:
    assert callable(make)
    with pytest.raises(InvalidToken, match="cannot be called 'any'"):
        make(subjects.ANY_LANE)


def test_tokens_of_a_worker_named_any_are_refused() -> None:
    with pytest.raises(InvalidToken, match="cannot be called 'any'"):
        subjects.token_subject("any", "t1")


def test_every_worker_has_a_statistics_key_of_its_own_and_an_unknown_one_too() -> None:
    keys = {subjects.stats_key("qwen2.5:7b", "日本語", worker) for worker in (None, *HOSTILE)}
    assert len(keys) == 1 + len(set(HOSTILE))
    assert {len(key.split(".")) for key in keys} == {4}


@pytest.mark.parametrize("length", [1, 19, 20, 60, 99])
def test_a_durable_fits_the_server_and_stays_unique(length: int) -> None:
    """A kanji takes 9 bytes; the server refuses above 255."""
    names = [subjects.group_durable("cpu_inference", "長" * length + end) for end in "ab"]
    names += [subjects.group_durable("x" * 150 + end, "長" * length) for end in "ab"]
    names += [subjects.lane_durable("長" * length + end) for end in "ab"]
    assert len(set(names)) == len(names)
    assert max(map(len, names)) <= 200
    assert not set("".join(names)) & set(". *>/\\\x00")


def test_the_longest_subject_fits_a_control_line() -> None:
    longest = "x" * 900
    subject = subjects.item_subject("cpu_inference", longest, longest, longest, 20)
    assert len(f"HPUB {subject} _INBOX.router.{'x' * 40} 1000 8388608\r\n") < 4_096


def test_message_ids_are_those_of_the_protocol() -> None:
    made = [
        subjects.submit_id("t"),
        subjects.routed_id("t"),
        subjects.release_id("t", 2),
        subjects.item_id("t", 2),
        subjects.start_id("t", 2),
        subjects.fail_id("t", 2),
        subjects.fail_id("t", 2, 7),
        subjects.end_id("t"),
    ]
    assert made == ["t", "t.routed", "t.2.rel", "t.2", "t.2.start", "t.2.fail", "t.2.fail.7", "t.end"]


def test_fixed_subjects_are_those_of_the_protocol() -> None:
    assert subjects.event_subject("task.submitted", "router.1") == "ev.task.submitted.router=2E1"
    assert subjects.body_subject("me", "t") == "task.in.me.t"
    assert subjects.answer_subject("me", "t", 1) == "task.out.me.t.1"
    assert subjects.token_subject("w1", "t") == "tok.w1.t"
    assert subjects.pulse_subject("r") == "pulse.r"
