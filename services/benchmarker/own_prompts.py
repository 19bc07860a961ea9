"""Which of the users' own prompts could be compared on? A fold over completed real tasks.

Answers "what was asked in this domain lately, and who answered?", by names alone: where the texts lie, never a text. Used where
``[benchmarker] own_prompts`` is on, nowhere else. A prompt is one message that was answered whole: of a longer talk a judge
would see a part, and judge that.
"""

from __future__ import annotations

import msgspec

from schemas.events import Options, TaskCompleted, TaskSubmitted

KEPT = 20
"""A domain: enough for three meetings of each two models of a household."""
CHARS_MAX = 2_000
"""As much of a request as a judge is shown."""


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """A prompt and its answer: the tasks' names, where their texts lie, and whose the answer is."""

    task: str
    language: str | None
    options: Options
    body: str
    answer: str
    model: str
    worker: str
    digest: str | None = None
    quantisation: str | None = None


class OwnPrompts(msgspec.Struct, kw_only=True):
    """By domain, the latest last."""

    asked: dict[str, tuple[Asked, ...]] = {}

    def ran(self, submitted: TaskSubmitted, completed: TaskCompleted) -> None:
        """A real task was completed."""
        sizes = submitted.sizes
        is_one_text = sizes.messages <= 1 and not sizes.images and not sizes.tools and sizes.chars <= CHARS_MAX
        if submitted.kind == "embedding" or not is_one_text or completed.outcome != "ok" or completed.answer is None:
            return
        found = Asked(
            task=submitted.task,
            language=submitted.language,
            options=submitted.options,
            body=submitted.payload.subject,
            answer=completed.answer.subject,
            model=completed.model,
            worker=completed.worker,
            digest=completed.digest,
            quantisation=completed.quantisation,
        )
        self.asked[completed.domain] = (*self.asked.get(completed.domain, ()), found)[-KEPT:]

    def of(self, domain: str) -> tuple[Asked, ...]:
        return self.asked.get(domain, ())
