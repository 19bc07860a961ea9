"""What a worker on another machine may do is the same on our server as on one that somebody runs by nats/users.conf."""

from __future__ import annotations

import re
from pathlib import Path

from services.runtime.server_conf import WORKER_MAY_HEAR, WORKER_MAY_PUBLISH, Passwords, server_conf
from services.runtime.settings import load

USERS = Path(__file__).parents[3] / "nats" / "users.conf"


def test_a_worker_has_the_rights_that_users_conf_gives_one() -> None:
    entry = USERS.read_text().partition('user: "worker"')[2].partition("subscribe:")
    assert re.findall(r'"([^"]+)"', entry[0]) == list(WORKER_MAY_PUBLISH)
    assert re.findall(r'"([^"]+)"', entry[2].partition("}")[0]) == list(WORKER_MAY_HEAR)


def test_the_passwords_of_users_conf_are_no_misspelt_settings_to_a_service_in_the_same_shell() -> None:
    variables = re.findall(r"\$([A-Z_]*PASSWORD[A-Z_]*)", USERS.read_text())
    assert len(variables) == 6
    assert load(None, dict.fromkeys(variables, "secret")) == load(None, {})


def test_without_a_secret_nobody_is_asked_and_no_worker_has_a_user() -> None:
    text = server_conf("127.0.0.1:-1", ports=Path("p"), store=Path("s"), sync="10s", passwords=Passwords("a", "local"))
    assert "no_auth_user: local" in text and '"worker"' not in text


def test_with_a_secret_everybody_is_asked() -> None:
    passwords = Passwords("a", "b", "secret")
    text = server_conf("0.0.0.0:4222", ports=Path("p"), store=Path("s"), sync="10s", passwords=passwords)
    assert "no_auth_user" not in text and '"user": "worker", "password": "secret"' in text
