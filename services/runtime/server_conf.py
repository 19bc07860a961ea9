"""The configuration of the nats-server that Headrace brings along, as text.

Answers "who may do what on it?". Alone on its machine it asks nobody for a password; one that other machines reach lets nobody in
without. For a server of your own see nats/server.conf; what a worker may do there is the same, and a test holds both equal.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

LOCAL = "local"
"""The parts on this machine: they may do everything, except what would take facts out of the log."""
WORKER = "worker"
"""A worker on another machine: its own facts, what it was given to do, and the statistics."""
WORKER_MAY_PUBLISH = (
    "ev.task.started.*", "ev.task.completed.*", "ev.attempt.failed.*", "ev.worker.reported.*", "ev.worker.left.*",
    "hb.*", "credit.*", "task.out.>", "tok.>", "pull.>", "_INBOX_worker.>",
    "$JS.API.INFO", "$JS.API.STREAM.INFO.*",
    "$JS.API.DIRECT.GET.TASKS", "$JS.API.DIRECT.GET.EVENTS", "$JS.API.DIRECT.GET.KV_stats",
    "$JS.API.CONSUMER.MSG.NEXT.TASKS.*", "$JS.ACK.TASKS.>",
    "$JS.API.CONSUMER.CREATE.EVENTS.>", "$JS.API.CONSUMER.DELETE.EVENTS.*", "$JS.API.CONSUMER.MSG.NEXT.EVENTS.*",
    "$JS.API.CONSUMER.CREATE.KV_stats.>", "$JS.API.CONSUMER.DELETE.KV_stats.*", "$JS.API.CONSUMER.MSG.NEXT.KV_stats.*",
)  # fmt: skip
WORKER_MAY_HEAR = ("_INBOX_worker.>", "ctl.*", "hb.*")

Rights = Mapping[str, Mapping[str, Sequence[str]]]
"""publish or subscribe -> allow or deny -> subjects."""

CONFIG = """\
# Written at every start of the embedded server; edits are lost. For a server of your own see nats/server.conf.
server_name: "headrace"
listen: {listen}
http: "127.0.0.1:-1"
ports_file_dir: {ports}
max_payload: 64MB
max_pending: 256MB
ping_interval: "10s"
ping_max: 2
lame_duck_duration: "30s"
jetstream {{
  store_dir: {store}
  max_mem: 1GB
  max_file: 1TB
  sync_interval: {sync}
  limits {{ default_max_consumers: -1 }}
}}
# What would take facts out of the log is the admin's.
{entrance}accounts {{
  HEADRACE {{
    jetstream: enabled
    users: [
{users}
    ]
  }}
}}
"""


class Passwords(NamedTuple):
    """``worker`` None: no other machine joins, and everybody on this one is ``local`` without a password."""

    admin: str
    local: str
    worker: str | None = None


def server_conf(listen: str, *, ports: Path, store: Path, sync: str, passwords: Passwords) -> str:
    """The whole file."""
    return CONFIG.format(
        listen=json.dumps(listen),
        ports=json.dumps(str(ports)),
        store=json.dumps(str(store)),
        sync=json.dumps(sync),
        entrance=""
        if passwords.worker
        else f"# Everybody on this machine may do everything else.\nno_auth_user: {LOCAL}\n",
        users="\n".join(f"      {user}" for user in _users(passwords)),
    )


def _users(passwords: Passwords) -> list[str]:
    log = ("$JS.API.STREAM.PURGE.EVENTS", "$JS.API.STREAM.DELETE.EVENTS")
    found = [_user("admin", passwords.admin), _user(LOCAL, passwords.local, {"publish": {"deny": log}})]
    if passwords.worker:
        rights: Rights = {"publish": {"allow": WORKER_MAY_PUBLISH}, "subscribe": {"allow": WORKER_MAY_HEAR}}
        found.append(_user(WORKER, passwords.worker, rights))
    return found


def _user(name: str, password: str, permissions: Rights | None = None) -> str:
    """One entry; JSON is nats-server's own form too."""
    return json.dumps({"user": name, "password": password} | ({"permissions": permissions} if permissions else {}))
