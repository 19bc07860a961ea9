"""services.runtime.provision: which settings differ; the server itself is in the integration tests."""

from __future__ import annotations

from services.runtime.provision import differing


def test_what_the_server_leaves_out_is_not_a_difference() -> None:
    assert differing({"max_age": 0, "deny_purge": False, "subjects": ["a"]}, {"subjects": ["a"]}) == {}


def test_a_changed_or_missing_setting_is_named_with_both_values() -> None:
    assert differing({"max_age": 5, "cap": 1}, {"max_age": 4}) == {"max_age": (4, 5), "cap": (None, 1)}


def test_a_setting_that_must_go_is_a_difference() -> None:
    assert differing({"max_age": 0}, {"max_age": 4}) == {"max_age": (4, 0)}


def test_the_servers_own_metadata_and_settings_are_left_alone() -> None:
    present = {"metadata": {"_nats.ver": "2.15.1", "model": "m"}, "sealed": True}
    assert differing({"metadata": {"model": "m"}}, present) == {}
    assert differing({"metadata": {"model": "n"}}, present) != {}
