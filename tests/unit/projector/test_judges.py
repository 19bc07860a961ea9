"""A judge's record as the projection answers it: the same as the pure fold of the same facts, also after a restart."""

from __future__ import annotations

from pathlib import Path

from schemas import codec
from schemas.bias import Judges
from schemas.events import BenchCompleted, Event, QualityJudged
from schemas.judgements import KNOWN, judgement_of
from schemas.judging import Side, pair_events
from services.projector.judges import judges
from services.projector.rows import JudgementRow
from services.projector.store import Store
from services.projector.tables import JUDGEMENTS
from services.runtime.stored import StoredMessage
from support.builders import AT, build

JUDGE = "phi4:14b"


def told() -> list[Event]:
    facts: list[Event] = [
        build(
            BenchCompleted,
            id=f"known{n}",
            suite=KNOWN,
            prompt=f"k{n}",
            model=JUDGE,
            digest=None,
            grade=1.0,
            picks=("own", "own"),
            chars=(10, 60) if n % 2 else (60, 10),
        )
        for n in range(15)
    ]
    facts += pair_events(
        Side(model="qwen3:8b", task="t1", chars=120),
        Side(model="llama3.2:3b", task="t2", chars=80),
        ("own", "missing"),
        pair="p1",
        domain="code",
        judge=JUDGE,
        judge_digest=None,
        weight=1.0,
        kin=False,
        at=AT,
        by="b",
    )
    thumbs = (("t1", 1.0), ("t2", 0.0), ("t9", 1.0))
    facts += [
        build(QualityJudged, id=f"{task}.thumb", source="thumb", peer=None, tasks=(task,), value=value, client="me")
        for task, value in thumbs
    ]
    return facts


def stored(facts: list[Event]) -> list[StoredMessage]:
    return [StoredMessage(n, "ev.x", codec.encode(fact), None, n * 1_000_000) for n, fact in enumerate(facts, 1)]


def test_the_row_and_the_table_have_the_same_columns() -> None:
    assert set(JudgementRow.__struct_fields__) == set(JUDGEMENTS)


def test_the_record_is_the_fold_of_the_facts_also_after_a_restart(tmp_path: Path) -> None:
    facts = told()
    rows = [row for fact in facts if (row := judgement_of(fact)) is not None]  # type: ignore[arg-type]
    assert len(rows) == 19
    store = Store(tmp_path / "projector").open()
    try:
        store.apply(stored(facts)[:9])
        store.close()
        store.open()
        store.apply(stored(facts))
        answer = judges(store)
    finally:
        store.close()
    assert answer.judges == Judges(rows).records()
    assert answer.seen[0].known == tuple(sorted(f"k{n}" for n in range(15)))
    (record,) = answer.judges
    assert (record.shorter.n, record.longer.n, record.pairs, record.missing.k) == (7, 8, 1, 1)


def test_people_s_words_about_other_answers_are_not_read(tmp_path: Path) -> None:
    store = Store(tmp_path / "projector").open()
    try:
        store.apply(stored(told()))
        assert store.ask("SELECT count(*) AS n FROM judgements WHERE kind = 'human'") == [{"n": 3}]
        assert judges(store).judges[0].human.n == 0  # the verdict was not read in one order: nothing to agree with
    finally:
        store.close()
