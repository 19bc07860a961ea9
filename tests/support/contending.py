"""Contenders for policy plugins, in one line each, and strategies that draw any."""

from __future__ import annotations

from hypothesis import strategies as st

from schemas.events import Verdict
from services.router.policy.plugin import Case, LastServed, Pairing
from services.router.policy.session_affinity import rank

MODELS = ("small", "large")


def contenders(*in_flight: int, model: str = "m", **fields: object) -> list[Pairing]:
    """One worker for each number, named w00, w01, ...; alike but for what runs there."""
    return [
        Pairing(model=model, worker=f"w{n:02}", in_flight=running, **fields)  # type: ignore[arg-type]
        for n, running in enumerate(in_flight)
    ]


def owner_of(session: str, pairings: list[Pairing]) -> int:
    """The index of the session's owner by rendezvous hashing, as the plugin ranks it."""
    return min(range(len(pairings)), key=lambda n: rank(session, pairings[n].model, pairings[n].worker))


SECONDS = st.floats(0.0, 3_600.0)


@st.composite
def pairings(draw: st.DrawFn) -> list[Pairing]:
    """From none to a dozen, no two of one name; anything a planner or a fleet could say of them."""
    keys = draw(st.lists(st.tuples(st.sampled_from(MODELS), st.integers(0, 9)), unique=True, max_size=12))
    return [
        Pairing(
            model=model,
            worker=f"w{n}",
            wait_s=draw(st.one_of(st.none(), SECONDS)),
            load_s=draw(st.sampled_from((0.0, 3.0))),
            prefill_s=draw(SECONDS),
            decode_s=draw(SECONDS),
            sharing_s=draw(st.sampled_from((0.0, 1.0))),
            quality=draw(st.floats(0.0, 1.0)),
            cost_s=draw(st.floats(-100.0, 7_200.0)),
            fresh=draw(st.booleans()),
            in_flight=draw(st.integers(0, 8)),
            slots=draw(st.integers(1, 4)),
        )
        for model, n in keys
    ]


SHARES = st.floats(0.0, 1.0)

verdicts = st.builds(
    Verdict,
    by=st.just("service"),
    probabilities=st.dictionaries(st.sampled_from((*MODELS, "elsewhere")), SHARES, max_size=3),
    confidence=st.one_of(st.none(), SHARES),
    reason=st.one_of(st.none(), st.just("no answer within 3 s")),
)

cases = st.builds(
    Case,
    session=st.one_of(st.none(), st.sampled_from(("a", "b", "chat-7"))),
    prompt_tokens=st.integers(0, 5_000),
    verdict=st.one_of(st.none(), verdicts),
    last=st.one_of(
        st.none(),
        st.builds(
            LastServed,
            model=st.sampled_from(MODELS),
            worker=st.sampled_from([f"w{n}" for n in range(10)]),
            tokens=st.integers(0, 5_000),
        ),
    ),
)
