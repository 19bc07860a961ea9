"""What people use fades, and what a client invents cannot grow without end."""

from __future__ import annotations

import pytest

from services.benchmarker.suites import FOLDER
from services.benchmarker.use import ANY_DOMAIN, DOMAINS, PAIRS_MOST, Use

DAY_US = 86_400_000_000


def test_shares_follow_what_is_asked_lately() -> None:
    use = Use()
    for _ in range(8):
        use.ran("m", "code", 100, 0)
    use.ran("n", "maths", 40, 14 * DAY_US)
    use.ran("n", "maths", 80, 14 * DAY_US)
    assert use.in_use(14 * DAY_US) == pytest.approx({("m", "code"): 0.5, ("n", "maths"): 0.5})
    assert use.prompt_of("n", "maths") == 60
    assert use.domains("m", 14 * DAY_US) == ("code",)


def test_a_single_task_of_long_ago_is_no_use_any_more() -> None:
    use = Use()
    use.ran("m", "code", None, 0)
    assert use.in_use(25 * DAY_US) and not use.in_use(35 * DAY_US)
    assert use.prompt_of("m", "code") is None


def test_a_misspelt_domain_is_measured_as_general_until_it_is_asked_for_again_and_again() -> None:
    use = Use()
    use.ran("m", "maths", 100, 0)
    for _ in range(2):
        use.ran("m", "maht", 100, 0)
    assert use.in_use(0) == pytest.approx({("m", ANY_DOMAIN): 2 / 3, ("m", "maths"): 1 / 3})
    use.ran("n", "maht", 100, 0)
    assert set(use.in_use(0)) == {("m", "maht"), ("n", "maht"), ("m", "maths")}, "whichever model answered"


def test_the_domains_that_are_measured_at_once_are_those_with_a_suite() -> None:
    assert {path.stem for path in FOLDER.glob("*.toml")} | {"unknown"} == DOMAINS


def test_domains_that_a_client_makes_up_replace_each_other_and_not_what_is_used() -> None:
    use = Use()
    for _ in range(5):
        use.ran("m", "code", 100, 0)
    for n in range(2 * PAIRS_MOST):
        use.ran("m", f"made up {n}", 100, n)
    assert len(use.pairs) == PAIRS_MOST
    assert ("m", "code") in use.pairs
