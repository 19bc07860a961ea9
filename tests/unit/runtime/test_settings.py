"""services.runtime.settings: what is set is what holds, and what cannot be set is refused by name."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from schemas.errors import SettingsError
from services.runtime.settings import ModelName, Settings, load

EXAMPLE = Path(__file__).parents[3] / "headrace.toml.example"


def from_text(folder: Path, text: str, **environ: str) -> Settings:
    file = folder / "headrace.toml"
    file.write_text(text)
    return load(file, environ)


def refusal(folder: Path, text: str = "", **environ: str) -> str:
    with pytest.raises(SettingsError) as refused:
        from_text(folder, text, **environ)
    return str(refused.value)


def test_without_anything_the_defaults_hold() -> None:
    settings = load(None, {})
    assert settings.nats.sync is None, "of a server that somebody else started nothing is known"
    assert (settings.router.host, settings.router.port) == ("127.0.0.1", 8420)
    assert settings.worker.timeouts.stall_s == 60
    assert settings.privacy.keep_s == 7 * 86_400
    assert settings.limits.queue_total == 1000
    assert settings.data_dir.name == "headrace"


def test_the_environment_stands_over_the_file_and_the_file_over_the_defaults(tmp_path: Path) -> None:
    text = '[worker]\nslots = 2\nname = "file"\n[worker.timeouts]\nstall_s = 9\n'
    settings = from_text(tmp_path, text, HEADRACE_WORKER_NAME="desk", HEADRACE_WORKER_TIMEOUTS_TOTAL_S="12.5")
    assert (settings.worker.name, settings.worker.slots) == ("desk", 2)
    assert (settings.worker.timeouts.stall_s, settings.worker.timeouts.total_s) == (9, 12.5)


@pytest.mark.parametrize(
    ("variable", "text", "dotted", "expected"),
    [
        ("HEADRACE_WORKER_LOCAL", "false", "worker.local", False),
        ("HEADRACE_WORKER_SUPPORTS", "gpu_inference, rag", "worker.supports", ("gpu_inference", "rag")),
        ("HEADRACE_WORKER_SUPPORTS", "", "worker.supports", ()),
        ("HEADRACE_ROUTER_SLIDER", "0.5", "router.slider", 0.5),
        ("HEADRACE_NATS_USER", "", "nats.user", None),
        ("HEADRACE_NATS_PASSWORD", "12345", "nats.password", "12345"),
        ("HEADRACE_LIMITS_MODEL_DEFAULT", "4", "limits.model.default", 4),
        ("HEADRACE_DATA_DIR", "/var/lib/headrace", "data_dir", Path("/var/lib/headrace")),
    ],
)
def test_a_variable_becomes_its_settings_type(variable: str, text: str, dotted: str, expected: object) -> None:
    value: object = load(None, {variable: text})
    for key in dotted.split("."):
        value = getattr(value, key)
    assert value == expected


def test_variables_of_others_are_none_of_our_business() -> None:
    environ = {"HEADRACE_LOG": "json", "HEADRACE_ROUTER": "http://router:8420", "PATH": "/bin", "HEADRACE_TORTURE": "1"}
    assert load(None, environ) == load(None, {})


@pytest.mark.parametrize(
    ("text", "key", "hint"),
    [
        ("[router]\nprot = 1", "router.prot", "did you mean port?"),
        ("[worker.timeouts]\nstal_s = 1", "worker.timeouts.stal_s", "did you mean stall_s?"),
        ("[wroker]\nslots = 1", "wroker", "did you mean worker?"),
        ("[router]\nport = 'x'", "router.port", "expected `int`, got 'x'"),
        ("[router]\nport = 99999", "router.port", "expected `int` <= 65535, got 99999"),
        ("[router]\nport = '8420'", "router.port", "expected `int`"),
        ("[worker]\nslots = 0", "worker.slots", ">= 1"),
        ("[router]\nslider = nan", "router.slider", ">= 0"),
        ("[router]\nslider = -1", "router.slider", ">= 0"),
        ("[router]\nsliders = {ok = 1, me = inf}", "router.sliders.me", "<= 1"),
        ("[nats]\nsync = 'never'", "nats.sync: expected 'always' or '10s'", "got 'never'"),
        ("[nats]\npassword = 3", "nats.password: expected `str | null`, got `int`", ""),
        ("data_dir = 3", "data_dir", "path"),
        ("nats = 3", "nats", "expected `object`"),
        ("[models]\n'a' = 'ok'\n'qwen3:8b' = {nme = 'x'}", "models.qwen3:8b.nme", "did you mean name?"),
        ("[limits.model]\nnames = {ok = 1, 'big' = 0}", "limits.model.names.big", ">= 1"),
        ("[domains.code]\nwords = ['def']", "domains.code.words", "did you mean words_"),
        ("[worker]\nname = 'any'", "worker.name", "choose another"),
        (
            "[http]\norigins = ['https://a.example/']",
            "http: origins has 'https://a.example/'",
            "https://chat.example.org",
        ),
        ("[keys]\nme = 'hush'", 'keys.me: is written { sha256 = "…" }', "headrace key add"),
        ("[keys]\nme = { sha256 = 'abc' }", "keys.me.sha256: is no SHA-256", "printf %s KEY | sha256sum"),
    ],
)
def test_a_wrong_key_of_the_file_is_named(tmp_path: Path, text: str, key: str, hint: str) -> None:
    message = refusal(tmp_path, text)
    assert message.startswith(key)
    assert hint in message and "hush" not in message


@pytest.mark.parametrize(
    ("variable", "text", "hint"),
    [
        ("HEADRACE_WORKER_SLOT", "2", "HEADRACE_WORKER_SLOTS"),
        ("HEADRACE_WORKER_TIMEOUTS_STALL", "2", "HEADRACE_WORKER_TIMEOUTS_STALL_S"),
        ("HEADRACE_WORKER_SLOTS", "two", "expected `int`"),
        ("HEADRACE_WORKER_SLOTS", "0", ">= 1"),
        ("HEADRACE_NATS_SYNC", "never", "never"),
    ],
)
def test_a_wrong_variable_is_named(tmp_path: Path, variable: str, text: str, hint: str) -> None:
    message = refusal(tmp_path, **{variable: text})
    assert message.startswith(variable)
    assert hint.lower() in message.lower()


def test_a_file_that_is_wrong_is_told_even_where_a_variable_writes_into_it(tmp_path: Path) -> None:
    assert refusal(tmp_path, "nats = 3", HEADRACE_NATS_URL="nats://x").startswith("nats:")


def test_a_file_that_was_asked_for_must_be_there_and_be_toml(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"missing\.toml"):
        load(tmp_path / "missing.toml", {})
    assert "not TOML" in refusal(tmp_path, "[router")


def test_models_may_be_named_in_short_or_with_their_capability(tmp_path: Path) -> None:
    text = "[models]\n'qwen3.gguf' = 'qwen3:8b'\n'big' = {name = 'llama3:70b', capability = 'gpu_inference'}"
    assert from_text(tmp_path, text).model_names() == {
        "qwen3.gguf": ModelName(name="qwen3:8b", capability="cpu_inference"),
        "big": ModelName(name="llama3:70b", capability="gpu_inference"),
    }


def test_a_limit_is_its_own_number_else_the_default(tmp_path: Path) -> None:
    limits = from_text(tmp_path, "[limits.model]\ndefault = 4\nnames = {'qwen3:8b' = 2}").limits
    assert (limits.model.of("qwen3:8b"), limits.model.of("other"), limits.client.of("me")) == (2, 4, None)


def test_the_example_file_is_accepted() -> None:
    load(EXAMPLE, {})
    assert tomllib.loads(EXAMPLE.read_text()) is not None
