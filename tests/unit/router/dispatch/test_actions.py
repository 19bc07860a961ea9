"""Keys of actions: unique while on their way."""

from __future__ import annotations

from schemas.work import Control
from services.router.dispatch.actions import DeleteItem, DropConsumer, EnsureConsumer, Tell


def test_dropping_and_making_a_consumer_cannot_overtake_each_other() -> None:
    assert DropConsumer("g").key == EnsureConsumer("g", 1, {}).key


def test_attempts_of_one_task_have_keys_of_their_own() -> None:
    assert DeleteItem(("t", 1), 7).key != DeleteItem(("t", 2), 7).key
    tells = {Tell("w", Control(command="cancel", task="t", attempt=n)).key for n in (1, 2)}
    assert len(tells) == 2
