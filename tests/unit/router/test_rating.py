"""services.router.rating: from a click to a fact, once."""

from __future__ import annotations

from typing import Any

import pytest

from schemas.events import QualityJudged, TaskCancelled, TaskCompleted, TaskDead, TaskFailed, Terminal
from services.router.rating import (
    NotRated,
    Pick,
    Rating,
    Word,
    answered,
    end_in,
    latest,
    preference,
    preferences,
    thumb,
    withdrawal,
)
from support import builders

END = builders.build(TaskCompleted, task="t1")
PEER = builders.build(TaskCompleted, task="t2", model="llama3", digest="sha256:ll", worker="w-2")


def stamp(name: str) -> dict[str, Any]:
    return {"id": name, "at": 1.0, "by": "r1"}


def say(value: float, log: list[Any], client: str = "me", comment: str | None = None) -> Word:
    word = thumb(Rating(client=client, value=value, task="t1", comment=comment), END, log, stamp(f"e{len(log)}"))
    if not word.is_stored:
        log.append(word.event)
    return word


def test_the_same_word_twice_is_stored_once_and_another_one_supersedes() -> None:
    log: list[Any] = [END]
    up, again, down, back = (say(value, log) for value in (1.0, 1.0, 0.0, 1.0))
    assert [word.is_stored for word in (up, again, down, back)] == [False, True, False, False]
    assert again.event is up.event
    assert (down.supersedes, back.supersedes) == (up.event.id, down.event.id)
    assert len({up.msg_id, down.msg_id, back.msg_id}) == 3  # going back is a word of its own
    assert (latest(log, "t1", "me") or up.event).value == 1.0


def test_two_clients_and_a_new_comment_are_words_of_their_own() -> None:
    log: list[Any] = [END]
    words = [say(1.0, log), say(1.0, log, "you"), say(1.0, log, comment="because")]
    assert not any(word.is_stored for word in words)
    assert len({word.msg_id for word in words}) == 3


def test_a_click_that_is_sent_twice_at_once_has_one_id() -> None:
    assert say(1.0, [END]).msg_id == say(1.0, [END]).msg_id


def test_a_substituted_answer_is_the_other_models_of_no_known_file() -> None:
    end = builders.build(TaskCompleted, task="t1", outcome="substituted", backend_model="llama3:8b")
    event = thumb(Rating(client="me", value=1.0, task="t1"), end, [end], stamp("e")).event
    assert (event.model, event.digest, event.quantisation) == ("llama3:8b", None, None)


def test_a_preference_is_two_facts_of_one_pair_and_no_thumb_for_one_alone() -> None:
    pick = Pick(client="me", compare="c", chosen=1)
    own = preference(pick, END, PEER, 1.0, [END], stamp("a")).event
    peer = preference(pick, PEER, END, 0.0, [PEER], stamp("b")).event
    assert own.pair == peer.pair and own.pair is not None
    assert (own.peer, own.peer_digest, peer.peer) == ("llama3", "sha256:ll", END.model)
    assert (own.tasks, peer.tasks) == (("t1", "t2"), ("t2", "t1"))
    assert preference(pick, END, PEER, 1.0, [END, own], stamp("c")).is_stored
    assert not say(1.0, [END, own]).is_stored
    assert latest([END, own], "t1", "me") is None


def test_a_preference_that_is_taken_back_counts_nothing_and_can_be_said_again() -> None:
    pick = Pick(client="me", compare="c", chosen=1)
    said = preference(pick, END, PEER, 1.0, [END], stamp("a")).event
    back = withdrawal(said, [END, said], stamp("b"))
    assert (back.supersedes, back.event.value, back.event.weight, back.is_stored) == (said.id, 0.5, 0.0, False)
    assert (back.event.tasks, back.event.client, back.event.peer) == (said.tasks, said.client, said.peer)
    log = [END, said, back.event]
    assert preferences([END, said], "t1", "me") == [said] and preferences(log, "t1", "me") == []
    assert withdrawal(said, log, stamp("c")).is_stored
    again = preference(pick, END, PEER, 1.0, log, stamp("d"))
    assert not again.is_stored and again.msg_id not in {back.msg_id, ""}


def test_others_preferences_and_thumbs_are_no_preference_of_mine() -> None:
    mine = preference(Pick(client="me", compare="c", chosen=1), END, PEER, 1.0, [END], stamp("a")).event
    yours = preference(Pick(client="you", compare="c", chosen=1), END, PEER, 1.0, [END], stamp("b")).event
    alone = say(1.0, [END]).event
    assert preferences([END, yours, mine, alone], "t1", "me") == [mine]


@pytest.mark.parametrize(
    ("end", "words"),
    [
        (builders.build(TaskCancelled, reason="enough"), "was cancelled: enough"),
        (builders.build(TaskFailed, failure="stall", detail="it stood still"), "failed (stall): it stood still"),
        (builders.build(TaskDead, detail=""), "was given up; there is no answer to rate"),
    ],
)
def test_an_end_without_an_answer_says_so_and_there_is_nothing_to_wait_for(end: Terminal, words: str) -> None:
    with pytest.raises(NotRated, match="no answer to rate") as refused:
        answered(end)
    assert words in str(refused.value) and refused.value.retry_after_s is None


def test_the_first_end_in_the_log_counts() -> None:
    assert end_in([builders.build(QualityJudged), END, builders.build(TaskCancelled)]) is END
    assert end_in([]) is None
