"""Paying a debt of quality: which answer is better, by a check where there is one, by a judge where there is not.

Answers "who runs what, in which order, and what is said about it?". All work is bench work through ``Asking``, one task at a
time, so that real work never waits for more than one of them; whoever cancels ``pay`` takes it all back, and nothing is said that
was not seen. A judge's word counts once it has found known truths (``schemas.bias``); until then it is tested, a few at a time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from schemas.bias import Records, by_key, weigh
from schemas.events import BenchCompleted, Event, Pick, QualityJudged
from schemas.judgements import KNOWN
from schemas.judging import combine, pair_events
from schemas.subjects import bench_id, check_id
from services.benchmarker.asking import CLIENT, Asks
from services.benchmarker.debts import Debt
from services.benchmarker.errand import Errand, GivenUp, Material, Told, material_of
from services.benchmarker.graders import grade, name_of
from services.benchmarker.known_pairs import KNOWN_PAIRS, KnownPair
from services.benchmarker.pairs import Pairing, Topic, met_key, ranked
from services.benchmarker.panel import Chair, NoJudge, Panel, Seat
from services.benchmarker.suites import Prompt, Suite, suites

TESTED_AT_ONCE = 2
"""Known pairs for one debt: four questions of 400 tokens, up to half a minute on a slow machine [SmolLM2 on one busy core: 7 s
each]. The rest waits for the next idle moment."""
SILENT_S = 600.0
"""A judge that gave no answer in either order is left alone for so long."""
RECENT_MOST = 500
"""Answers kept for another comparison: suite answers of at most some thousand characters."""

Say = Callable[[Event], Awaitable[None]]
Own = Callable[[str], Awaitable[Sequence[tuple[Material, Told]]]]
"""A domain's prompts that users sent, with the answers that they got."""


class Outcome(NamedTuple):
    """Whether anything was asked, and what came of it, in words. Without work the debt is not payable now."""

    worked: bool
    why: str


class Shadow:
    """``await shadow.pay(debt, asking, panel, say)``. ``records`` fetches the judges' records, ``seed`` settles equal choices."""

    def __init__(
        self,
        records: Callable[[], Awaitable[Records]],
        *,
        unix: Callable[[], float],
        new_id: Callable[[], str],
        seed: Callable[[], int],
        by: str = CLIENT,
        domains: Mapping[str, Suite] | None = None,
        own: Own | None = None,
    ) -> None:
        self._records, self._unix, self._new_id, self._seed, self._by = records, unix, new_id, seed, by
        self._suites = suites() if domains is None else domains
        self._own = own
        self._recent: dict[tuple[str, str | None, str, str], Told] = {}
        self._met: dict[tuple[str, str, str], int] = {}
        self._met_as: dict[tuple[str, str, str], frozenset[tuple[str, str | None]]] = {}
        self._checked: dict[tuple[str, str | None, str], int] = {}
        self._tested: dict[tuple[str, str | None], set[str]] = {}
        self._silent_until: dict[str, float] = {}

    async def pay(self, debt: Debt, asking: Asks, panel: Panel, say: Say) -> Outcome:
        """One more sample of the debt's quality, or a step towards a judge that can give it."""
        records = await self._records()
        now = self._unix()
        seats = tuple(seat for seat in panel.seats if self._silent_until.get(seat.model, 0.0) <= now)
        try:
            return await self._pay(
                debt, Errand(debt, asking), Panel(seats=seats, judges=by_key(records.judges)), records, say
            )
        except GivenUp as error:
            return Outcome(True, str(error))

    async def _pay(self, debt: Debt, ask: Errand, panel: Panel, records: Records, say: Say) -> Outcome:
        suite = self._suites.get(debt.domain)
        asked = await self._materials(debt.domain, suite)
        if suite is None and not asked:
            return Outcome(False, f"no suite asks about {debt.domain}")
        found = self._paired(debt, panel, asked)
        if isinstance(found, tuple):
            pairing, chair = found
            if not chair.tested:
                return await self._test(chair.seat, ask, records, say)
            return await self._compare(pairing, chair, asked[pairing.topic], ask, say)
        own = next((seat for seat in panel.seats_of(debt.model) if seat.worker == debt.worker), None)
        if own is not None and suite is not None and (prompt := self._next_check(own, suite)) is not None:
            return await self._check(own, prompt, suite, ask, say)
        return Outcome(False, found)

    async def _materials(self, domain: str, suite: Suite | None) -> dict[Topic, Material]:
        """What only a judge can weigh: of the suite, and of the users where that is switched on."""
        found = [material_of(suite, prompt) for prompt in suite.judged] if suite is not None else []
        for material, told in await self._own(domain) if self._own is not None else ():
            found.append(material)
            self._keep((told.side.model, told.side.digest, material.suite, material.name), told)
        return {Topic(suite=material.suite, name=material.name): material for material in found}

    def _paired(self, debt: Debt, panel: Panel, asked: Iterable[Topic]) -> tuple[Pairing, Chair] | str:
        """The pair worth most among those with the best judge: a tested stranger, then one to be tested, then a relative. Another
        judge is tested where the only one would leave two models unmet that met everybody else: it cannot judge itself, and two
        that both lost to it are not told apart."""
        pairings = ranked(debt.model, debt.worker, panel, list(asked), self._still_met(panel), self._seed())
        if isinstance(pairings, str):
            return pairings
        chairs = [panel.choose(pairing.own, pairing.peer) for pairing in pairings]
        able = [(pairing, chair) for pairing, chair in zip(pairings, chairs, strict=True) if isinstance(chair, Chair)]
        if not able:
            return next(chair.why for chair in chairs if isinstance(chair, NoJudge))
        best = min(able, key=lambda found: (found[1].kin, not found[1].tested))
        unmet = (found for found in able if not found[1].kin and found[0].met < best[0].met)
        return next(unmet, best)

    def _still_met(self, panel: Panel) -> dict[tuple[str, str, str], int]:
        """Without the meetings of files that are no longer there: a model that was exchanged is judged anew."""
        now: dict[str, set[str | None]] = {}
        for seat in panel.seats:
            now.setdefault(seat.model, set()).add(seat.digest)
        return {
            key: times
            for key, times in self._met.items()
            if all(digest in now.get(model, {digest}) for model, digest in self._met_as[key])
        }

    # -- a pair ------------------------------------------------------------------------------------------------------------

    async def _compare(self, pairing: Pairing, chair: Chair, asked: Material, ask: Errand, say: Say) -> Outcome:
        one = await self._answer(pairing.own, asked, ask)
        other = await self._answer(pairing.peer, asked, ask)
        tasks = (one.side.task, other.side.task)
        picks = await ask.judge(chair.seat, asked.text, asked.language, one.text, other.text, tasks)
        self._note_silence(chair.seat, picks)
        value, words = combine(*picks)
        sides = [(told.side.model, told.side.chars) for told in (one, other)]
        weight, kin, doubt = weigh(chair.judge, sides[0], sides[1], value)
        for event in pair_events(
            one.side,
            other.side,
            picks,
            pair=self._new_id(),
            domain=ask.debt.domain,
            judge=chair.seat.model,
            judge_digest=chair.seat.digest,
            weight=weight,
            kin=kin,
            at=self._unix(),
            by=self._by,
            suite=asked.suite,
            prompt=asked.name,
            note=f"; drawn with seed {pairing.seed}",
        ):
            await say(event)
        key = met_key(pairing.own.model, pairing.peer.model, asked.name)
        files = frozenset((seat.model, seat.digest) for seat in (pairing.own, pairing.peer))
        self._met[key] = self._met.get(key, 0) + 1 if files == self._met_as.get(key) else 1
        self._met_as[key] = files
        return Outcome(True, f"{one.side.model} against {other.side.model}: {words}" + (f" ({doubt})" if doubt else ""))

    async def _answer(self, seat: Seat, asked: Material, ask: Errand) -> Told:
        """Asked now, unless the same model has answered it lately."""
        key = (seat.model, seat.digest, asked.suite, asked.name)
        if key not in self._recent:
            self._keep(key, await ask.answer(seat, asked))
        return self._recent[key]

    def _keep(self, key: tuple[str, str | None, str, str], told: Told) -> None:
        self._recent[key] = told
        while len(self._recent) > RECENT_MOST:
            del self._recent[next(iter(self._recent))]

    # -- a judge's test ----------------------------------------------------------------------------------------------------

    async def _test(self, judge: Seat, ask: Errand, records: Records, say: Say) -> Outcome:
        tested = self._tested.setdefault((judge.model, judge.digest), set())
        for seen in records.seen:
            if (seen.judge, seen.digest) == (judge.model, judge.digest):
                tested.update(seen.known)
        todo = [known for known in KNOWN_PAIRS if known.name not in tested][:TESTED_AT_ONCE]
        for known in todo:
            picks = await ask.judge(judge, known.prompt, known.language, known.right, known.wrong)
            self._note_silence(judge, picks)
            await say(self._known(judge, known, picks, ask))
            if "missing" in picks:
                return Outcome(True, f"{judge.model} gave no answer to a known pair")
            tested.add(known.name)
        return Outcome(bool(todo), f"{judge.model} was tested on {len(tested)} of {len(KNOWN_PAIRS)} known pairs")

    def _note_silence(self, judge: Seat, picks: tuple[Pick, Pick]) -> None:
        if picks == ("missing", "missing"):
            self._silent_until[judge.model] = self._unix() + SILENT_S

    def _known(self, judge: Seat, known: KnownPair, picks: tuple[Pick, Pick], ask: Errand) -> BenchCompleted:
        value, words = combine(*picks)
        return BenchCompleted(
            id=bench_id(ask.last),
            at=self._unix(),
            by=self._by,
            task=ask.last,
            suite=KNOWN,
            prompt=known.name,
            model=judge.model,
            worker=judge.worker,
            digest=judge.digest,
            domain=ask.debt.domain,
            grade=value,
            detail=words.replace("own", "the right one").replace("peer", "the wrong one"),
            quantisation=judge.quantisation,
            check="known",
            picks=picks,
            chars=(len(known.right), len(known.wrong)),
        )

    # -- a check -----------------------------------------------------------------------------------------------------------

    def _next_check(self, own: Seat, suite: Suite) -> Prompt | None:
        """The one that the model was asked least lately; each once."""
        fresh = [prompt for prompt in suite.checked if not self._checked.get((own.model, own.digest, prompt.id))]
        return fresh[self._seed() % len(fresh)] if fresh else None

    async def _check(self, own: Seat, prompt: Prompt, suite: Suite, ask: Errand, say: Say) -> Outcome:
        told = await self._answer(own, material_of(suite, prompt), ask)
        self._checked[own.model, own.digest, prompt.id] = 1
        assert prompt.check is not None
        found = await asyncio.to_thread(grade, prompt.check, told.text, prompt.text)
        said = BenchCompleted(
            id=bench_id(told.side.task),
            at=self._unix(),
            by=self._by,
            task=told.side.task,
            suite=suite.name,
            prompt=prompt.id,
            model=own.model,
            worker=told.side.worker or own.worker,
            digest=told.side.digest,
            domain=suite.domain,
            grade=found.value,
            detail=found.why,
            quantisation=told.side.quantisation,
            check=name_of(prompt.check),
        )
        await say(said)
        if found.value is not None:
            await say(_judged(said, found.value))
        return Outcome(True, f"{own.model} on {prompt.id}: {found.why}")


def _judged(said: BenchCompleted, value: float) -> QualityJudged:
    return QualityJudged(
        id=check_id(said.task),
        at=said.at,
        by=said.by,
        cause=said.id,
        model=said.model,
        digest=said.digest,
        quantisation=said.quantisation,
        domain=said.domain,
        worker=said.worker,
        source="check",
        value=value,
        judge=said.check,
        tasks=(said.task,),
        suite=said.suite,
        prompt=said.prompt,
    )
