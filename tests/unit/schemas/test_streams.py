"""schemas.streams: what the server is asked to keep, and that nats/*.json says the same."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from schemas.streams import (
    ADVISORIES,
    EVENTS,
    HEARTBEATS,
    HOUR_NS,
    STREAMS,
    TASKS,
    files,
    group_consumer,
    lane_consumer,
)
from schemas.subjects import item_id, item_subject, lane_filter, parse_item_subject

NATS = Path(__file__).parents[3] / "nats"


def test_the_files_in_nats_are_the_definitions() -> None:
    committed = {file.name: file.read_text() for file in NATS.glob("*.json")}
    assert committed == files(), "run `make docs` and commit nats/"


def test_every_stream_has_its_file() -> None:
    assert {f"{config['name']}.json" for config in STREAMS} <= set(files())


def test_facts_are_kept_for_ever_and_never_deleted_one_by_one() -> None:
    assert (EVENTS["max_age"], EVENTS["max_msgs"], EVENTS["max_bytes"]) == (0, -1, -1)
    assert EVENTS["deny_delete"] is True
    assert EVENTS["republish"] == {"src": "ev.>", "dest": "note.ev.>"}


@pytest.mark.parametrize("config", [EVENTS, TASKS])
def test_a_message_id_is_remembered_longer_than_an_attempt_may_last(config: dict[str, object]) -> None:
    assert config["duplicate_window"] == 2 * HOUR_NS


def test_texts_and_samples_expire() -> None:
    assert TASKS["max_age"] == HEARTBEATS["max_age"] == 7 * 24 * HOUR_NS
    assert ADVISORIES["max_age"] == 30 * 24 * HOUR_NS


def test_only_used_up_deliveries_are_advised_not_our_own_terminations() -> None:
    assert ADVISORIES["subjects"] == ["$JS.EVENT.ADVISORY.CONSUMER.MAX_DELIVERIES.TASKS.*"]


def test_the_ack_backstop_is_the_cap_plus_a_place_for_each_member() -> None:
    assert group_consumer("chat", "qwen3:8b", cap=4, members=3)["max_ack_pending"] == 7
    assert group_consumer("chat", "qwen3:8b", cap=None, members=3)["max_ack_pending"] == -1


def test_the_metadata_keep_the_real_name_of_a_model_whose_durable_is_a_hash() -> None:
    model = "日本語" * 20
    config = group_consumer("chat", model, cap=1, members=1)
    assert len(config["durable_name"]) <= 255
    assert config["metadata"] == {"capability": "chat", "model": model}


def test_every_consumer_knows_the_priority_group_and_room_for_a_fleets_pulls() -> None:
    for config in (group_consumer("chat", "m", cap=1, members=1), lane_consumer("w", slots=2)):
        assert config["priority_groups"] == ["fleet"]
        assert config["priority_policy"] == "prioritized"
        assert config["max_waiting"] >= 512
        assert config["deliver_policy"] == "new"
        assert config["max_deliver"] == 20


def test_a_lane_has_room_after_a_full_set_was_lost() -> None:
    assert lane_consumer("w", slots=2)["max_ack_pending"] == 4
    assert lane_consumer("w", slots=0)["max_ack_pending"] == 2


@given(
    capability=st.text(min_size=1, max_size=20),
    model=st.text(min_size=1, max_size=40),
    other=st.text(min_size=1, max_size=40),
    worker=st.text(min_size=1, max_size=20).filter(lambda name: name != "any"),
)
def test_a_group_and_a_lane_never_see_each_others_items(capability: str, model: str, other: str, worker: str) -> None:
    group = group_consumer(capability, model, cap=1, members=1)["filter_subject"]
    lane = lane_consumer(worker, slots=1)["filter_subject"]
    shared = item_subject(capability, model, "any", "t", 1)
    pinned = item_subject(capability, model, worker, "t", 1)
    assert (_matches(group, shared), _matches(lane, shared)) == (True, False)
    assert (_matches(group, pinned), _matches(lane, pinned)) == (False, True)
    assert _matches(group, item_subject(capability, other, "any", "t", 1)) is (other == model)


def test_a_work_item_fits_the_subjects_of_tasks() -> None:
    subject = item_subject("chat", "qwen3:8b", "any", item_id("t", 1), 1)
    assert any(_matches(pattern, subject) for pattern in TASKS["subjects"])
    assert parse_item_subject(subject).task == "t.1"
    assert not _matches(lane_filter("any-1"), subject)


def test_the_definitions_are_plain_json() -> None:
    for text in files().values():
        assert json.dumps(json.loads(text), indent=2) + "\n" == text


def _matches(pattern: str, subject: str) -> bool:
    wanted, given_ = pattern.split("."), subject.split(".")
    for index, token in enumerate(wanted):
        if token == ">":
            return len(given_) > index
        if index >= len(given_) or token not in ("*", given_[index]):
            return False
    return len(wanted) == len(given_)
