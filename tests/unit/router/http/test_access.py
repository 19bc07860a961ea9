"""Who is calling, and whose word about others counts?"""

from __future__ import annotations

import base64
import hashlib

import pytest
from starlette.datastructures import Headers

from services.router.http.access import Access, Caller, WrongKey, is_local
from services.router.http.identity import client_of, message_of, session_of, task_kind_of
from services.router.http.reading import Refused
from services.runtime.settings import Http, Key


def key(text: str, **rights: bool) -> Key:
    return Key(sha256=hashlib.sha256(text.encode()).hexdigest(), **rights)


KEYS = {
    "webui": key("w", may_speak_for_users=True),
    "me": key("m", admin=True),
    "guest": key("g"),
}
CLOSED = Access(keys=KEYS)


def settled(access: Access, caller: Caller, user: str | None = None, **headers: str) -> Headers:
    sent = Headers({name.replace("_", "-"): value for name, value in headers.items()})
    return Headers(raw=access.settle(sent.raw, sent, caller, user))


@pytest.mark.parametrize(
    "sent",
    [
        {"authorization": "Bearer m"},
        {"x-api-key": "m"},
        {"authorization": "Basic " + base64.b64encode(b"anybody:m").decode()},
    ],
)
def test_a_key_is_known_however_it_is_sent(sent: dict[str, str]) -> None:
    by_browser = sent.get("authorization", "").startswith(
        "Basic"
    )  # it sends a password by itself, once it was told one
    assert CLOSED.caller(sent, "/route", is_local=False) == Caller(name="me", admin=True, by_browser=by_browser)


@pytest.mark.parametrize("sent", [{}, {"authorization": "Bearer x"}, {"authorization": "Basic %%"}])
def test_an_unknown_key_and_none_from_elsewhere_are_refused(sent: dict[str, str]) -> None:
    with pytest.raises(Refused) as refused:
        CLOSED.caller(sent, "/route", is_local=False)
    assert refused.value.status == 401


def test_a_wrong_key_is_told_from_none_in_a_header_as_in_a_cookie() -> None:
    for sent in ({"x-api-key": "x"}, {"cookie": "headrace_key=x"}):
        with pytest.raises(WrongKey):
            CLOSED.caller(sent, "/route", is_local=False)
    with pytest.raises(Refused) as refused:
        CLOSED.caller({"cookie": "headrace_lang=ja"}, "/route", is_local=False)
    assert not isinstance(refused.value, WrongKey)


def test_keys_come_and_go_and_without_the_last_one_nobody_gets_in_from_elsewhere() -> None:
    access, elsewhere = Access(), {"authorization": "Bearer m"}
    assert access.caller(elsewhere, "/route", is_local=False) == Caller()
    access.change({"me": key("m", admin=True)})
    assert access.caller(elsewhere, "/route", is_local=False).name == "me"
    access.change({})
    for sent in (elsewhere, {}):
        with pytest.raises(Refused):
            access.caller(sent, "/route", is_local=False)
    assert access.caller({}, "/route", is_local=True).admin


def test_this_machine_may_do_everything_and_a_wrong_key_is_wrong_here_too() -> None:
    assert CLOSED.caller({}, "/route", is_local=True) == Caller(speaks=True, admin=True)
    with pytest.raises(Refused):
        CLOSED.caller({"authorization": "Bearer x"}, "/route", is_local=True)


def test_supervisors_need_no_key() -> None:
    assert not CLOSED.caller({}, "/healthz", is_local=False).admin


def test_without_keys_everybody_may_ask_and_nobody_from_elsewhere_may_more() -> None:
    assert Access().caller({"authorization": "Bearer x"}, "/route", is_local=False) == Caller()


def test_what_a_proxy_passes_on_is_not_from_here() -> None:
    assert is_local("127.0.0.1", {})
    assert not is_local("127.0.0.1", {"x-forwarded-for": "10.0.0.7"})
    assert not is_local("10.0.0.7", {})


def test_a_name_for_a_user_counts_only_where_the_key_may_speak_for_users() -> None:
    speaks, silent = Caller(name="webui", speaks=True), Caller(name="guest")
    assert client_of(settled(CLOSED, speaks, x_openwebui_user_id="u1")) == "u1"
    assert client_of(settled(CLOSED, speaks, x_headrace_client="u2", x_openwebui_user_id="u1")) == "u2"
    assert client_of(settled(CLOSED, speaks)) == "webui"
    assert client_of(settled(CLOSED, speaks), "named") == "named"
    assert client_of(settled(CLOSED, silent, x_headrace_client="u2", x_openwebui_user_id="u1"), "named") == "guest"
    assert client_of(settled(Access(), Caller(), x_headrace_client="u2"), "named") == "local"
    assert client_of(settled(Access(), Caller(), authorization="Bearer secret")) == "key-2bb80d537b1d"


def test_a_signed_user_counts_whoever_passes_it_on_but_not_before_the_word_of_who_may_speak() -> None:
    speaks, silent = Caller(name="webui", speaks=True), Caller(name="guest")
    assert client_of(settled(CLOSED, silent, "u1", x_headrace_client="u2", x_openwebui_user_id="u3"), "named") == "u1"
    assert client_of(settled(CLOSED, speaks, "u1", x_openwebui_user_id="u3")) == "u1"
    assert client_of(settled(CLOSED, speaks, "u1", x_headrace_client="u2")) == "u2"
    assert client_of(settled(Access(), Caller(), "u1")) == "u1"


def test_nobody_settles_for_himself() -> None:
    assert client_of(settled(CLOSED, Caller(name="guest"), x_headrace_settled_client="me")) == "guest"
    assert client_of(settled(Access(), Caller(speaks=True), x_headrace_settled_client="me")) == "local"


def test_further_headers_name_session_message_and_task_kind() -> None:
    http = Http(session_headers=("x-conv",), message_headers=("x-msg",), task_headers=("x-openwebui-task", "x-kind"))
    access, caller = Access(http=http), Caller(speaks=True)
    headers = settled(access, caller, x_conv="c1", x_msg="m1")
    assert (session_of(headers), message_of(headers), task_kind_of(headers)) == ("c1", "m1", None)
    headers = settled(access, caller, x_conv="c1", x_openwebui_task="{{TASK}}", x_kind="title_generation")
    assert (session_of(headers), task_kind_of(headers)) == (None, "title_generation")
    assert session_of(settled(access, caller, x_headrace_session="own", x_conv="c1")) == "own"
