"""routes.toml: what it may say, and each fault with its line and the way out."""

from __future__ import annotations

import pytest

from schemas.errors import SettingsError
from services.router.policy.routes import DecisionService, Route, Target
from services.router.policy.routes_file import line_of, parse_routes
from support.source import ROOT

WHOLE = """\
[chat]
route_by = ["session_affinity", "least_in_flight"]
slider = 0.5

[[chat.targets]]
model = "qwen3:8b"

[[chat.targets]]
model = "llama3.2:3b"
worker = "desk"

[[chat.fallback]]
model = "smollm2"

["gpt-4"]
targets = [
  { model = "big", weight = 95 },
  { model = "small", weight = 5 },
]

[smart.route_by]
decision_service = 10
least_completion = 2

[smart.decision_service]
url = "http://127.0.0.1:9/decide"

[[smart.targets]]
model = "big"
criterion = "proofs"
[[smart.targets]]
model = "small"
"""


TAKES_TURNS = '[a]\ntargets = [{model = "x", weight = 1}]\nroute_by = "round_robin"'
NO_TIME = '[a]\nroute_by = "decision_service"\ndecision_service = {timeout_s = 0}'


def refused(text: str) -> str:
    with pytest.raises(SettingsError) as caught:
        parse_routes(text, "r.toml")
    return str(caught.value)


def test_a_file_with_one_of_everything() -> None:
    routes = parse_routes(WHOLE).routes
    assert routes["chat"] == Route(
        name="chat",
        by="policy",
        targets=(Target(model="qwen3:8b"), Target(model="llama3.2:3b", worker="desk")),
        fallback=(Target(model="smollm2"),),
        plugins={"session_affinity": 1.0, "least_in_flight": 1.0},
        slider=0.5,
    )
    assert routes["gpt-4"].by == "target_weight"
    assert [t.weight for t in routes["gpt-4"].targets] == [95, 5]
    assert routes["smart"].plugins == {"decision_service": 10.0, "least_completion": 2.0}
    assert routes["smart"].decision == DecisionService(url="http://127.0.0.1:9/decide")
    assert parse_routes(WHOLE).names == ("auto", "chat", "gpt-4", "smart")


def test_the_address_of_a_decision_service_is_shown_without_its_secrets() -> None:
    service = DecisionService(url="https://me:hunter2@judge.lan:8443/decide?key=hunter2#hunter2")
    assert service.public_url == "https://judge.lan:8443/decide"
    assert DecisionService(url="http://me:p@ss@[::1]:80").public_url == "http://[::1]:80"
    assert DecisionService(url="http://judge?key=hunter2").public_url == "http://judge"
    assert DecisionService().public_url is None


def test_no_file_and_an_empty_one_know_auto_alone() -> None:
    assert parse_routes("").names == ("auto",)
    assert parse_routes("").knows("auto")
    assert parse_routes('[auto]\nroute_by = "least_completion"').names == ("auto",)


def test_a_route_without_targets_is_the_whole_fleet_by_its_plugins() -> None:
    route = parse_routes("[sticky]\nroute_by = {saved_prefill = 1, least_completion = 2, legacy_mended = 0}").routes[
        "sticky"
    ]
    assert (route.by, route.targets, route.plugins) == ("policy", (), {"saved_prefill": 1.0, "least_completion": 2.0})


def test_a_decision_service_without_a_table_is_a_model_of_the_fleet() -> None:
    assert parse_routes('[a]\nroute_by = "decision_service"').routes["a"].decision == DecisionService()


def test_targets_without_weights_or_plugins_take_turns_and_may_say_so() -> None:
    listed = '[a]\ntargets = [{model = "x"}, {model = "y"}]\n'
    assert parse_routes(listed).routes["a"].by == "round_robin"
    assert parse_routes(listed + 'route_by = "round_robin"').routes["a"].by == "round_robin"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[a\n", "line 1: not TOML: expected"),
        ('[a]\nslider = 1\nslider = 2\n', "line 3: not TOML: cannot overwrite"),
        ("a = 3", "line 1: a: expected a table"),
        (WHOLE.replace('criterion = "proofs"', "weigth = 3"), "line 30: smart.targets[0].weigth: is not a setting"),
        (WHOLE.replace("slider = 0.5", 'slider = "low"'), "line 3: chat.slider: expected `float | null`, got `str`"),
        (WHOLE.replace("slider = 0.5", "slyder = 0.5"), "line 3: chat.slyder: is not a setting; nearest: slider"),
        (WHOLE.replace("weight = 5 ", 'weight = "5" '), "line 16: gpt-4.targets[1].weight: expected `float`"),
        (WHOLE.replace("least_completion = 2", "least_busy = 2"), "line 23: smart.route_by.least_busy: 'least_busy' is no"),
        (WHOLE.replace(', weight = 5 ', " "), "line 16: gpt-4.targets[1]: some targets have a weight (big)"),
        (WHOLE.replace("weight = 5 ", "weight = 0 "), "line 16: gpt-4.targets[1].weight: 0 beside weights of other targets"),
        (WHOLE.replace('worker = "desk"', "weight = 1").replace('"qwen3:8b"', '"q"\nweight = 0'),
         "line 7: chat.targets[0].weight: 0 beside weights"),
        (WHOLE.replace('worker = "desk"', "weight = 1"), "line 5: chat.targets[0]: some targets have a weight (llama3.2:3b)"),
        (WHOLE.replace('model = "smollm2"', 'model = "qwen3:8b"'), "line 12: chat.fallback[0]: qwen3:8b is a target already"),
        (WHOLE + 'model = "big"\n', "line 33: not TOML: cannot overwrite"),
        (WHOLE + '[[smart.targets]]\nmodel = "big"\n', "line 33: smart.targets[2]: big is a target twice"),
        ('[a]\nroute_by = "round_robin"', "line 1: a: has no targets"),
        (TAKES_TURNS, "line 3: a.route_by: the targets' weights say target_weight"),
        (NO_TIME, "line 3: a.decision_service.timeout_s: expected `float`"),
        (WHOLE.replace("least_completion = 2", "least_completion = -2"), "line 21: smart.route_by: expected `float` >= 0.0"),
        ("[a]\nx = " + "[" * 5_000, "line 2: not TOML: maximum recursion depth"),
        (WHOLE.replace("http://127.0.0.1:9/decide", "127.0.0.1:9/decide"), "line 26: smart.decision_service.url: is no address"),
        (WHOLE.replace("http://127.0.0.1:9/decide", "http://[::1/"), "line 26: smart.decision_service.url: is no address"),
    ],
)  # fmt: skip
def test_each_fault_is_told_with_its_line(text: str, message: str) -> None:
    assert refused(text).startswith(f"r.toml, {message}"), refused(text)


def test_the_line_of_a_key_is_found_among_arrays_and_quoted_names() -> None:
    assert line_of(WHOLE, ("chat", "targets", 1, "worker")) == 10
    assert line_of(WHOLE, ("gpt-4", "targets")) == 16
    assert line_of(WHOLE, ("smart", "route_by", "least_completion")) == 23
    assert line_of(WHOLE, ("smart", "targets", 1, "weight")) == 31


def test_the_example_is_true() -> None:
    """routes.toml.example as it stands: it parses, and has each way of routing by."""
    routes = parse_routes((ROOT / "routes.toml.example").read_text(encoding="utf-8")).routes
    assert {route.by for route in routes.values()} == {"policy", "target_weight", "round_robin"}
