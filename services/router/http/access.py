"""Who is calling, and what may they say about others? Keys to callers, and a request's headers to the router's own.

Answers "which client is this, may it name another, is it an admin?" from the headers alone. A key is known by its hash only and
is never kept. Surfaces read the router's own headers afterwards and know no settings.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence

import msgspec

from services.router.http.identity import KEY_COOKIE, SETTLED, cookie_of, is_dialogue, shown_key
from services.router.http.reading import Refused
from services.router.http.same_site import is_foreign, is_named, is_ours
from services.router.http.user_token import HEADER as USER_TOKEN, NotSigned, user_of_token
from services.runtime.settings import Http, Key

OPEN_PATHS = frozenset({"/healthz", "/readyz"})
"""Supervisors ask these without a key."""
OPEN_FOLDERS = ("/page/static/", "/page/sign-in")
"""Somebody who has yet to sign in sees how."""
FORWARDED = ("forwarded", "x-forwarded-for", "x-real-ip")
OWN = ("x-headrace-session", "x-headrace-message", "x-headrace-task-kind")
USER_HEADERS = ("x-headrace-client", "x-openwebui-user-id")

Headers = list[tuple[bytes, bytes]]


class WrongKey(Refused):
    """A key was shown, in a header or a cookie, and is none of ours: 401."""


class Caller(msgspec.Struct, frozen=True, kw_only=True):
    """``name`` is the key's; None where there are no keys, or on the router's own machine without one. ``speaks``: for users.
    ``by_browser``: it may have shown the key by itself, from a cookie or its dialogue, whoever's page made it ask."""

    name: str | None = None
    speaks: bool = False
    admin: bool = False
    by_browser: bool = False


class Access(msgspec.Struct, kw_only=True):
    """The settings that decide. Without keys everybody may ask, and the router's own machine may do everything.

    All of it may change at any time (``change``); ``guarded``: there were keys since the start."""

    keys: Mapping[str, Key] = {}
    http: Http = Http()
    guarded: bool = False

    def __post_init__(self) -> None:
        self.guarded = self.guarded or bool(self.keys)

    def change(self, keys: Mapping[str, Key], http: Http | None = None) -> None:
        """From the next request on. Who takes the last key away meant to shut somebody out, not to let everybody in. ``http``
        None stays as it is."""
        self.keys, self.http = keys, self.http if http is None else http
        self.guarded = self.guarded or bool(keys)

    def caller(self, headers: Mapping[str, str], path: str, *, is_local: bool) -> Caller:
        """Raises WrongKey for an unknown key, and Refused for none where one is needed."""
        shown = shown_key(headers)
        if shown is not None and (found := self.named(shown)) is not None:
            return msgspec.structs.replace(found, by_browser=is_dialogue(headers))
        kept = cookie_of(headers, KEY_COOKIE) if shown is None else None
        if kept is not None and (found := self.named(kept)) is not None:
            return msgspec.structs.replace(found, by_browser=True)
        if not self.guarded or (is_local and shown is None) or is_open(path):
            return Caller(speaks=is_local, admin=is_local)
        how = "send one of the router's [keys] as Authorization: Bearer ..., x-api-key, or a password"
        if shown is None and kept is None:
            raise Refused(f"no key was sent; {how}", 401)
        raise WrongKey(f"the key is not known here; {how}", 401)

    def user(self, headers: Mapping[str, str], now: float) -> str | None:
        """Whom Open WebUI names with its signature; None where it signs nothing, or no secret is set. Raises Refused (401)."""
        secret, token = self.http.user_jwt_secret, headers.get(USER_TOKEN)
        if not secret or token is None:
            return None
        try:
            return user_of_token(token, secret, now)
        except NotSigned as error:
            raise Refused(f"{USER_TOKEN}: {error}", 401) from error

    def turn_strangers_away(self, caller: Caller, method: str, headers: Mapping[str, str], path: str) -> None:
        """Raises Refused for what another site's page made a browser send. A token in a header is no browser's doing; a page
        that ``[http] origins`` names may ask, but not with what the browser keeps."""
        if caller.name is not None and not caller.by_browser:
            return
        is_welcome = not caller.by_browser and is_named(headers.get("origin"), self.http.origins)
        if is_foreign(method, headers) and not is_welcome:
            origin, host = headers.get("origin", "")[:128], headers.get("host", "")[:128]
            raise Refused(
                f"a web page of {origin} may change nothing here ({host}); send a key as Authorization, or name the page's "
                "origin in [http] origins",
                403,
            )
        host = headers.get("host", "")
        if caller.name is None and not is_open(path) and not is_ours(host, self.http.hosts):
            raise Refused(
                f"this router is not known to be called {host[:128]!r}, and a name that leads here may be anybody's: ask by "
                "its address, send a key, or add the name to [http] hosts",
                403,
            )

    def settle(
        self,
        raw: Sequence[tuple[bytes, bytes]],
        headers: Mapping[str, str],
        caller: Caller,
        user: str | None = None,
    ) -> Headers:
        """The request's headers with the router's own settled: nobody sends those that only the router may set. A signed
        ``user`` counts whoever asks: it needs no trust in the caller."""
        result = [(name, value) for name, value in raw if name.lower() != SETTLED.encode()]
        own = zip(OWN, (self.http.session_headers, self.http.message_headers, self.http.task_headers), strict=True)
        for name, others in own:
            if not headers.get(name) and (found := _first(headers, others)) is not None:
                result.append((name.encode(), found.encode("latin-1")))
        name = SETTLED
        if caller.speaks:
            name = USER_HEADERS[0]
            others = (*USER_HEADERS[1:], *self.http.client_headers)
            client = None if headers.get(name) else user or _first(headers, others) or caller.name
        else:
            result = [(each, value) for each, value in result if each.lower() != USER_HEADERS[0].encode()]
            client = user or caller.name or ""
        if client is not None:
            result.append((name.encode(), client.encode("latin-1", "replace")))
        return result

    def named(self, shown: str) -> Caller | None:
        """Whose key this is."""
        digest = hashlib.sha256(shown.encode()).hexdigest()
        for name, key in self.keys.items():
            if key.sha256.lower() == digest:
                return Caller(name=name, speaks=key.may_speak_for_users, admin=key.admin)
        return None


def is_open(path: str) -> bool:
    return path in OPEN_PATHS or path.startswith(OPEN_FOLDERS)


def is_local(host: str | None, headers: Mapping[str, str]) -> bool:
    """From this machine itself; what a proxy passes on comes from elsewhere."""
    here = host is None or host == "::1" or host.startswith("127.")
    return here and not any(name in headers for name in FORWARDED)


def _first(headers: Mapping[str, str], names: Sequence[str]) -> str | None:
    """An unfilled placeholder of Open WebUI's (``{{TASK}}``) is no value."""
    for name in names:
        value = headers.get(name, "").strip()
        if value and not value.startswith("{{"):
            return value
    return None
