"""Who is calling, and what may they say about others? Keys to callers, and a request's headers to the router's own.

Answers "which client is this, may it name another, is it an admin?" from the headers alone. A key is known by its hash only and
is never kept. Surfaces read the router's own headers afterwards and know no settings.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence

import msgspec

from services.router.http.identity import KEY_COOKIE, SETTLED, cookie_of, shown_key
from services.router.http.reading import Refused
from services.router.http.same_site import is_foreign, is_ours
from services.runtime.settings import Http, Key

OPEN_PATHS = frozenset({"/healthz", "/readyz"})
"""Supervisors ask these without a key."""
OPEN_FOLDERS = ("/page/static/", "/page/sign-in")
"""Somebody who has yet to sign in sees how."""
FORWARDED = ("forwarded", "x-forwarded-for", "x-real-ip")
OWN = ("x-headrace-session", "x-headrace-message", "x-headrace-task-kind")
USER_HEADERS = ("x-headrace-client", "x-openwebui-user-id")

Headers = list[tuple[bytes, bytes]]


class Caller(msgspec.Struct, frozen=True, kw_only=True):
    """``name`` is the key's; None where there are no keys, or on the router's own machine without one. ``speaks``: for users.
    ``by_cookie``: a browser showed the key by itself, whoever's page made it ask."""

    name: str | None = None
    speaks: bool = False
    admin: bool = False
    by_cookie: bool = False


class Access(msgspec.Struct, frozen=True, kw_only=True):
    """The settings that decide. Without keys everybody may ask, and the router's own machine may do everything."""

    keys: Mapping[str, Key] = {}
    http: Http = Http()

    def caller(self, headers: Mapping[str, str], path: str, *, is_local: bool) -> Caller:
        """Raises Refused for an unknown key, and for none where one is needed."""
        shown = shown_key(headers)
        if shown is not None and (found := self.named(shown)) is not None:
            return found
        kept = cookie_of(headers, KEY_COOKIE) if shown is None else None
        if kept is not None and (found := self.named(kept)) is not None:
            return msgspec.structs.replace(found, by_cookie=True)
        if not self.keys or (is_local and shown is None) or is_open(path):
            return Caller(speaks=is_local, admin=is_local)
        what = "no key was sent" if shown is None else "the key is not known here"
        raise Refused(
            f"{what}; send one of the router's [keys] as Authorization: Bearer ..., x-api-key, or a password", 401
        )

    def turn_strangers_away(self, caller: Caller, method: str, headers: Mapping[str, str], path: str) -> None:
        """Raises Refused for what another site's page made a browser send. A key in a header is no browser's doing."""
        if caller.name is not None and not caller.by_cookie:
            return
        if is_foreign(method, headers):
            origin, host = headers.get("origin", "")[:128], headers.get("host", "")[:128]
            raise Refused(f"a web page of {origin} may change nothing here ({host}); send a key as Authorization", 403)
        host = headers.get("host", "")
        if caller.name is None and not is_open(path) and not is_ours(host, self.http.hosts):
            raise Refused(
                f"this router is not known to be called {host[:128]!r}, and a name that leads here may be anybody's: ask by "
                "its address, send a key, or add the name to [http] hosts",
                403,
            )

    def settle(self, raw: Sequence[tuple[bytes, bytes]], headers: Mapping[str, str], caller: Caller) -> Headers:
        """The request's headers with the router's own settled: nobody sends those that only the router may set."""
        result = [(name, value) for name, value in raw if name.lower() != SETTLED.encode()]
        own = zip(OWN, (self.http.session_headers, self.http.message_headers, self.http.task_headers), strict=True)
        for name, others in own:
            if not headers.get(name) and (found := _first(headers, others)) is not None:
                result.append((name.encode(), found.encode("latin-1")))
        client = _first(headers, (*USER_HEADERS, *self.http.client_headers)) if caller.speaks else None
        if client is not None and not headers.get(USER_HEADERS[0]):
            result.append((USER_HEADERS[0].encode(), client.encode("latin-1")))
        if not caller.speaks:
            result = [(name, value) for name, value in result if name.lower() != USER_HEADERS[0].encode()]
        if caller.name is not None and client is None:
            name = SETTLED if not caller.speaks else USER_HEADERS[0]
            result.append((name.encode(), caller.name.encode("latin-1", "replace")))
        elif not caller.speaks:
            result.append((SETTLED.encode(), b""))
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
