"""Bus, feed, take and provisioning go through a NATS in a container too (conftest.py); this says so, or why they did not."""

from __future__ import annotations


def test_a_server_that_we_did_not_start_took_part(container_url: str) -> None:
    assert container_url.startswith("nats://")
