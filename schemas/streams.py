"""What JetStream keeps, as plain data: streams, key-value buckets and consumers, exactly as the server's API takes them.

Answers "how is each stream and consumer configured, and why?". ``nats/*.json`` is rendered from here (``files``) and the
router provisions from here, so the two cannot differ. It talks to nobody. Durations are integers in nanoseconds.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from schemas.subjects import (
    EVENTS_ALL,
    HEARTBEATS_ALL,
    ROUTER_BUCKET,
    STATS_BUCKET,
    group_durable,
    group_filter,
    lane_durable,
    lane_filter,
)

Config = dict[str, Any]

SECOND_NS = 1_000_000_000
HOUR_NS = 3_600 * SECOND_NS
DAY_NS = 24 * HOUR_NS

PRIORITY_GROUP = "fleet"
"""The one priority group of every consumer: pulls name it and a priority from 0 (best) to 9."""
MAX_WAITING = 4_096
"""Standing pulls a consumer keeps. The server refuses to change it later, and more than this many are answered 409; twice
the slots of any fleet we know fits."""
ACK_WAIT_NS = 30 * SECOND_NS
MAX_DELIVER = 20
"""A backstop only: put-backs at a full pull count as deliveries too (9 % arrived with 2), so 1 would lose tasks."""


def _stream(name: str, description: str, subjects: list[str], **extra: Any) -> Config:
    return {
        "name": name,
        "description": description,
        "subjects": subjects,
        "retention": "limits",
        "storage": "file",
        "num_replicas": 1,
        "discard": "old",
        "max_msgs": -1,
        "max_bytes": -1,
        "max_age": 0,
        "max_msgs_per_subject": -1,
        "max_msg_size": -1,
        "allow_direct": True,
        **extra,
    }


# Purging stays possible, for the user `admin` alone (users.conf), so that old facts can be archived: a stream that once
# denied purges can never allow them again.
EVENTS: Config = _stream(
    "EVENTS",
    "All facts: immutable, append only, kept for ever",
    [EVENTS_ALL],
    max_consumers=500,
    duplicate_window=2 * HOUR_NS,
    compression="s2",
    deny_delete=True,
    deny_purge=False,
    republish={"src": EVENTS_ALL, "dest": "note.ev.>"},
)

# 5,000: one consumer per group and per worker; the server's own default of 1,000 is less than a large fleet needs.
TASKS: Config = _stream(
    "TASKS",
    "Request bodies, work items and answers; expires",
    ["task.in.*.*", "task.q.*.*.*.*.*", "task.out.*.*.*"],
    max_age=7 * DAY_NS,
    max_consumers=5_000,
    duplicate_window=2 * HOUR_NS,
    compression="s2",
)

HEARTBEATS: Config = _stream(
    "HEARTBEATS",
    "Raw load samples of the workers; short history",
    [HEARTBEATS_ALL],
    max_age=7 * DAY_NS,
    max_consumers=100,
    duplicate_window=120 * SECOND_NS,
    compression="s2",
    deny_delete=True,
)

# MSG_TERMINATED is left out on purpose: our own +TERM and deletes raise it.
ADVISORIES: Config = _stream(
    "ADVISORIES",
    "Work items that used up their deliveries; the router revokes their attempts",
    ["$JS.EVENT.ADVISORY.CONSUMER.MAX_DELIVERIES.TASKS.*"],
    max_age=30 * DAY_NS,
    max_consumers=20,
    duplicate_window=120 * SECOND_NS,
)


def bucket(name: str, description: str) -> Config:
    """A key-value bucket's stream, as every NATS client expects one: last value only."""
    return _stream(
        f"KV_{name}",
        description,
        [f"$KV.{name}.>"],
        discard="new",
        max_msgs_per_subject=1,
        max_consumers=500,
        duplicate_window=120 * SECOND_NS,
        allow_rollup_hdrs=True,
        deny_delete=True,
    )


STATS: Config = bucket(STATS_BUCKET, "Raw integer sums of each finest statistics cell")
ROUTER: Config = bucket(ROUTER_BUCKET, "The router's snapshot and the dispatcher's lease")

STREAMS: tuple[Config, ...] = (EVENTS, TASKS, HEARTBEATS, ADVISORIES, STATS, ROUTER)


def _consumer(durable: str, description: str, subjects: str, ack_pending: int, metadata: dict[str, str]) -> Config:
    return {
        "durable_name": durable,
        "name": durable,
        "description": description,
        "filter_subject": subjects,
        "deliver_policy": "new",
        "replay_policy": "instant",
        "ack_policy": "explicit",
        "ack_wait": ACK_WAIT_NS,
        "max_deliver": MAX_DELIVER,
        "max_ack_pending": ack_pending,
        "max_waiting": MAX_WAITING,
        "priority_groups": [PRIORITY_GROUP],
        "priority_policy": "prioritized",
        "num_replicas": 0,
        "metadata": metadata,
    }


def group_consumer(capability: str, model: str, *, cap: int | None, members: int) -> Config:
    """The durable of (capability, model) on TASKS. ``cap`` None is no limit; the router counts permits itself, so that
    ``cap + members`` is only a backstop that an item delivered into the void does not exhaust."""
    return _consumer(
        group_durable(capability, model),
        f"{capability} / {model}",
        group_filter(capability, model),
        -1 if cap is None else cap + members,
        {"capability": capability, "model": model},
    )


def lane_consumer(worker: str, *, slots: int) -> Config:
    """One worker's own durable on TASKS, for pinned work. Twice the slots: a full set may be lost in the void."""
    return _consumer(
        lane_durable(worker), f"lane of {worker}", lane_filter(worker), 2 * max(slots, 1), {"worker": worker}
    )


def files() -> dict[str, str]:
    """File name -> text of every JSON file in ``nats/``; the group and the lane are examples for the README's commands."""
    configs = {config["name"]: config for config in STREAMS}
    configs["group.example"] = group_consumer("cpu_inference", "smollm2:135m", cap=4, members=2)
    configs["lane.example"] = lane_consumer("w1", slots=2)
    return {f"{name}.json": json.dumps(config, indent=2) + "\n" for name, config in configs.items()}


def main() -> None:
    """``python -m schemas.streams`` in the repository's root rewrites ``nats/*.json``."""
    for name, text in files().items():
        Path("nats", name).write_text(text)


if __name__ == "__main__":
    main()
