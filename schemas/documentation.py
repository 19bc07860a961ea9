"""The public description of every event: a JSON Schema each, and the table that leads to them.

Answers "what may I find in EVENTS and HEARTBEATS, and who said it?". Rendered from the structs, never written by hand: a test
keeps ``docs/events/`` equal, ``python -m schemas.documentation`` writes it.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from schemas import events
from schemas.events import Event

HOME = "docs/events"


class Saying(NamedTuple):
    """Who says an event, when, and under which message id it is stored once."""

    by: str
    when: str
    message_id: str


SAYINGS: dict[type[Event], Saying] = {
    events.TaskSubmitted: Saying("router", "the body is stored and the task is accepted", "`<task>`"),
    events.TaskRouted: Saying(
        "router", "the model is chosen, provisionally where the caller left it open", "`<task>.routed`"
    ),
    events.TaskReleased: Saying(
        "dispatching router", "an attempt takes its permits; its work item follows", "`<task>.<n>.rel`"
    ),
    events.TaskStarted: Saying("worker", "it claims the attempt, before it runs", "`<task>.<n>.start`"),
    events.AttemptFailed: Saying(
        "worker or dispatching router",
        "an attempt is over without an answer; a revoked or refused one takes the claim's id, so that it can never start",
        "`<task>.<n>.fail`, `<task>.<n>.fail.<epoch>`, `<task>.<n>.start`",
    ),
    events.TaskCompleted: Saying("worker", "the answer is stored. Terminal", "`<task>.end`"),
    events.TaskFailed: Saying("dispatching router", "no further attempt can help. Terminal", "`<task>.end`"),
    events.TaskCancelled: Saying(
        "router", "the client took it back, or its last reader left. Terminal", "`<task>.end`"
    ),
    events.TaskDead: Saying(
        "dispatching router", "the allowed number of started attempts failed. Terminal", "`<task>.end`"
    ),
    events.DispatcherElected: Saying("router", "it took the dispatcher's lease; its first fact", "the event's own id"),
    events.WorkerReported: Saying("worker", "it starts, or its models or abilities changed", "the event's own id"),
    events.WorkerPaused: Saying("router", "somebody took a machine out", "the event's own id"),
    events.WorkerResumed: Saying("router", "it was put back, or its time was over", "the event's own id"),
    events.WorkerLeft: Saying("worker or router", "it drained, or was given up", "the event's own id"),
    events.WorkerLoad: Saying("worker", "each heartbeat, 5 s; in HEARTBEATS, kept 7 days", "the event's own id"),
    events.BenchCompleted: Saying("benchmarker", "a suite prompt's answer was checked", "the event's own id"),
    events.QualityJudged: Saying(
        "benchmarker or router", "a judge, a check, a thumb or a signal weighed an answer", "the event's own id"
    ),
    events.KeysAdopted: Saying("operator", "statistics are keyed differently from here on", "the event's own id"),
}
"""One row for each event, in the order of a task's life."""


def schema(kind: type[Event]) -> dict[str, Any]:
    """The JSON Schema of one event with everything it is made of. Fields that are absent have their default."""
    (reference,), parts = msgspec.json.schema_components([kind])
    name = str(reference["$ref"]).rpartition("/")[2]
    own = {**parts.pop(name), "title": str(kind.__struct_config__.tag)}
    for fields in (own, *parts.values()):
        fields["description"] = " ".join(str(fields.get("description", "")).split()).replace("``", "`")
    tag = own["properties"]["type"]
    own["properties"]["type"] = {"const": tag["enum"][0]}
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **own, **({"$defs": parts} if parts else {})}


def files() -> dict[str, str]:
    """File name -> text of everything in ``docs/events/``."""
    schemas = {f"{kind.__struct_config__.tag}.json": schema(kind) for kind in SAYINGS}
    texts = {name: json.dumps(each, indent=2, ensure_ascii=False) + "\n" for name, each in schemas.items()}
    return texts | {"README.md": _table()}


def _table() -> str:
    rows = [
        f"| [`{kind.__struct_config__.tag}`]({kind.__struct_config__.tag}.json) | {by} | {when} | {message_id} |"
        for kind, (by, when, message_id) in SAYINGS.items()
    ]
    return "\n".join([_HEAD, *rows, "", _RULES])


_HEAD = """# Events

What Headrace knows is what these events say; everything else is a fold over them. This folder is rendered from
`schemas/events.py` by `python -m schemas.documentation`; change it there.

Every event is one JSON object on `ev.<type>.<by>` in the stream EVENTS (`worker.load`: on `hb.<worker>` in HEARTBEATS),
with this envelope:

| field | says |
|---|---|
| `type` | what happened: noun and past participle |
| `v` | version of the type; a reader parks what is newer than it knows |
| `id` | the event's own id, ordered by time |
| `at` | the producer's clock in Unix seconds, for display only; order is the stream's sequence, age the server's time |
| `by` | who says it |
| `cause` | the id of the event that led to this one, or null |

| type | said by | when | stored once under |
|---|---|---|---|"""

_RULES = """Exactly one terminal fact per task counts: the first under `<task>.end` in stream order. A failed attempt ends no
task.

- No prompt and no answer is ever in an event, only their sizes and where they lie (`payload`, `answer`: subjects of TASKS,
  which expire).
- `null` is *unknown*, never 0. `unreadable` says why, field by field.
- Units are in the names: `_s` seconds on one machine's monotonic clock, `_bytes`, `_tokens`. `decode` and `prefill` are
  tokens per second, `load` is seconds, `quality` and every `use` are in [0, 1].
- Fields are only ever added, each with a default; none is renamed, and none changes its meaning. A new value in a closed
  list (`enum`) is a new version of the type, because an older reader could not read it. Skip fields that you do not know.
- `exact` in a decision says that its statistics were precisely the fold of the log up to `position`; then it can be computed
  again to the last bit from the log up to `folded` (`headrace explain TASK --verify`).
- A decision's choice can be recomputed from `task.submitted` and `task.routed` alone, and any key of a statistic from
  `task.completed` alone: `tests/story/test_event_contents.py` does both.
- An event that was exported and imported elsewhere carries its original time in the header `Headrace-At` (microseconds)
  and its original sequence in `Headrace-Seq`. Ages come from the first, `position` in a decision counts in the second;
  order is always the stream's own sequence.
"""


def main() -> None:
    home = Path(__file__).parents[1] / HOME
    home.mkdir(parents=True, exist_ok=True)
    for name, text in files().items():
        (home / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
