"""What of a changed settings file comes into force at once, and what waits for a restart."""

from __future__ import annotations

from pathlib import Path

import pytest

from services.router.dispatch.permits import Limit
from services.router.tuning import needing_restart, tuning_of, watch_tuning
from services.runtime.settings import load

FILE = (
    "[limits.model]\ndefault = 2\ntotal = 5\nnames = { big = 1 }\n[limits]\nqueue_client = 7\n[router]\nslider = 2.0\n"
)


def settings_file(tmp_path: Path, text: str = FILE) -> Path:
    path = tmp_path / "headrace.toml"
    path.write_text(text)
    return path


def test_limits_are_a_default_names_of_their_own_and_a_total(tmp_path: Path) -> None:
    tuning = tuning_of(load(settings_file(tmp_path), {}))
    assert tuning.limits.model == Limit(2, {"big": 1}, 5)
    assert (tuning.limits.client, tuning.places.client, tuning.slider) == (Limit(), 7, 2.0)


def test_a_changed_limit_comes_into_force_and_the_environment_still_stands_over_it(tmp_path: Path) -> None:
    path, environ = settings_file(tmp_path), {"HEADRACE_LIMITS_MODEL_TOTAL": "3"}
    watched = watch_tuning(path, load(path, environ), environ)
    path.write_text(FILE.replace("default = 2", "default = 4"))
    assert watched.look()
    assert watched.value.limits.model == Limit(4, {"big": 1}, 3)


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("[limits.model]\ndefault = 0\n", "limits.model.default"),
        ("[limits.model]\ntotl = 3\n", "did you mean total"),
        ("[limits.model]\ndefault =\n", "line 2"),
        ("[limits]\nqueue_client = 'many'\n", "limits.queue_client"),
        (None, "is gone"),
    ],
)
def test_a_file_that_cannot_be_is_refused_by_key_or_line_and_the_former_limits_stay(
    tmp_path: Path, text: str | None, named: str
) -> None:
    path = settings_file(tmp_path)
    watched = watch_tuning(path, load(path, {}), {})
    if text is None:
        path.unlink()
    else:
        path.write_text(text)
    assert not watched.look()
    assert watched.problem is not None and named in watched.problem
    assert watched.value.limits.model.default == 2
    path.write_text(FILE)
    watched.look()
    assert watched.problem is None


def test_keys_come_into_force_at_once_and_a_wrong_one_is_refused_whole(tmp_path: Path) -> None:
    keys = f"[keys]\nme = {{ sha256 = '{'0' * 64}', admin = true }}\n"
    path = settings_file(tmp_path)
    before = load(path, {})
    watched = watch_tuning(path, before, {})
    path.write_text(FILE + keys)
    assert watched.look() and watched.value.keys["me"].admin
    assert needing_restart(before, load(path, {})) == []
    path.write_text(FILE + keys + "you = { sha256 = 'my password' }\n")
    assert not watched.look() and list(watched.value.keys) == ["me"]
    assert watched.problem is not None and "keys.you.sha256" in watched.problem and "password" not in watched.problem
    path.write_text(FILE)
    assert watched.look() and not watched.value.keys


def test_whose_pages_may_ask_comes_into_force_at_once_and_what_is_no_origin_is_refused_whole(tmp_path: Path) -> None:
    path = settings_file(tmp_path)
    before = load(path, {})
    watched = watch_tuning(path, before, {})
    path.write_text(FILE + "[http]\norigins = ['https://chat.example.org']\n")
    assert watched.look() and watched.value.http.origins == ("https://chat.example.org",)
    assert needing_restart(before, load(path, {})) == []
    path.write_text(FILE + "[http]\norigins = ['chat.example.org/']\n")
    assert not watched.look() and watched.value.http.origins == ("https://chat.example.org",)
    assert watched.problem is not None and "http" in watched.problem and "chat.example.org/" in watched.problem


def test_what_needs_a_restart_is_named_and_other_parts_settings_are_theirs(tmp_path: Path) -> None:
    before = load(settings_file(tmp_path), {})
    changed = "[router]\nslider = 3.0\nport = 9000\n[worker]\nslots = 4\n[domains]\nlaw = { words_en = ['court'] }\n"
    assert needing_restart(before, load(settings_file(tmp_path, changed), {})) == ["router.port", "domains"]
