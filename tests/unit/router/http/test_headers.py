from __future__ import annotations

from urllib.parse import unquote

from hypothesis import given, strategies as st

from schemas.events import Choice, Domain
from services.router.http.headers import VALUE_CHARS_MAX, header_value, task_headers
from services.router.port import Submitted, TaskStatus
from support.router_port import MemoryRouter

SUBMITTED = Submitted(task="t", domain=Domain(label="code", method="rules"), language="en")


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=VALUE_CHARS_MAX))
def test_any_name_survives_a_header(name: str) -> None:
    value = header_value(name)
    assert value.isascii()
    assert value == "" or value.isprintable()
    assert unquote(value) == name.strip()


def test_before_the_start_the_worker_is_only_expected() -> None:
    status = TaskStatus(task="t", state="waiting", expected_worker="w-2", choice=Choice(model="qwen3", reason="why"))
    assert task_headers(MemoryRouter(), SUBMITTED, status) == {
        "x-headrace-task": "t",
        "x-headrace-domain": "code",
        "x-headrace-model": "qwen3",
        "x-headrace-reason": "why",
        "x-headrace-expected-worker": "laptop",
    }


def test_after_the_start_it_is_named_even_if_the_fleet_forgot_it() -> None:
    status = TaskStatus(task="t", state="running", domain="maths", model="qwen3", worker="w-9", expected_worker="w-2")
    headers = task_headers(MemoryRouter(), SUBMITTED, status)
    assert (headers["x-headrace-worker"], headers["x-headrace-domain"]) == ("w-9", "maths")
    assert "x-headrace-expected-worker" not in headers


def test_what_is_unknown_has_no_header() -> None:
    assert set(task_headers(MemoryRouter(), SUBMITTED, None)) == {"x-headrace-task", "x-headrace-domain"}
