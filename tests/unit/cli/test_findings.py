from __future__ import annotations

from services.cli import findings
from support.http_examples import example

READINESS = example("`GET /healthz`, `GET /readyz`")


def test_a_ready_router_is_all_right() -> None:
    assert [finding.level for finding in findings.router("http://r", READINESS)] == ["ok"]


def test_a_router_that_is_not_ready_is_a_problem_with_its_reason() -> None:
    found = findings.router("http://r", READINESS | {"ready": False, "reason": "12 of 99 events"})
    assert found[0].level == "problem"
    assert "12 of 99 events" in found[0].words


def test_the_doctor_says_what_an_acknowledgement_survives() -> None:
    assert "survives a power cut" in findings.nats(READINESS).words
    assert "not a power cut" in findings.nats(READINESS | {"sync": "10s"}).words
    assert findings.nats(READINESS | {"sync": None}).level == "note"


def test_a_projector_far_behind_is_a_warning_and_a_little_lag_is_not() -> None:
    assert findings.projector(100, 150).level == "ok"
    late = findings.projector(100, 5000)
    assert late.level == "warning"
    assert "4900 before the log's end" in late.words


def test_each_null_of_a_worker_comes_with_its_reason() -> None:
    desktop, laptop = findings.workers(example("`GET /workers`"))
    assert desktop.level == "ok"
    assert laptop.level == "warning"
    assert "others_use unknown: no_agent" in laptop.words


def test_a_silent_worker_and_an_empty_fleet_are_problems() -> None:
    silent = example("`GET /workers`")["workers"][0] | {"state": "silent"}
    assert findings.workers({"workers": [silent]})[0].level == "problem"
    nobody = findings.workers({"workers": []})[0]
    assert nobody.level == "problem"
    assert "headrace up --backend URL" in str(nobody.action)


def test_a_worker_without_its_model_server_is_a_problem_with_its_reason() -> None:
    reason = "backend down: connection refused"
    down = example("`GET /workers`")["workers"][0] | {"state": "backend down", "unknown": {"wait_s": reason}}
    (found,) = findings.workers({"workers": [down]})
    assert (found.level, found.words) == ("problem", reason)
    assert found.action and f"start its model server ({down['backend']}) again" in found.action


def test_unequal_files_under_one_name_are_a_warning() -> None:
    body = example("`GET /models`")
    assert [finding.level for finding in findings.models(body)] == ["ok"]
    body["models"][0]["one_digest"] = False
    assert [finding.level for finding in findings.models(body)] == ["ok", "warning"]


def test_a_backend_without_a_worker_comes_with_the_commands_that_give_it_one() -> None:
    served, unused = findings.backends(
        [("ollama", "http://127.0.0.1:11434"), ("vllm", "http://127.0.0.1:8000")], ["ollama"]
    )
    assert served.level == "ok"
    assert "http://127.0.0.1:8000" in unused.words
    assert "`headrace up`" in str(unused.action) and "`headrace join CODE`" in str(unused.action)


def test_a_full_disk_is_a_problem() -> None:
    assert findings.failed([findings.disk("d", 10**6)])
    assert not findings.failed([findings.disk("d", 10**12)])


def test_settings_that_were_refused_are_a_problem_with_their_words() -> None:
    found = findings.router("http://r", READINESS | {"settings": "headrace.toml, line 2: no such option 'slots'"})
    assert (found[-1].part, found[-1].level) == ("settings", "problem")
    assert "line 2" in found[-1].words and "former settings" in str(found[-1].action)


def test_a_route_to_a_model_or_a_machine_that_nobody_has_or_is_is_a_problem_that_names_it() -> None:
    wrong = "canary.targets[0]: no worker is called 'fats' (nearest: fast)"
    (found,) = findings.targets({"routes": [], "warnings": [wrong]})
    assert (found.part, found.level, found.words) == ("routes", "problem", wrong)
    assert findings.targets({"routes": []}) == []


def test_a_fleet_of_paused_machines_is_a_problem_once_somebody_waits() -> None:
    desktop, laptop = example("`GET /workers`")["workers"]
    paused = {"state": "paused", "paused": "until it is resumed"}
    body = {"workers": [desktop | paused, laptop | {"state": "silent"}]}
    (found,) = findings.nobody_takes_work(body, 1)
    assert (found.level, found.words) == ("problem", "1 task waits: desktop is paused, and no other takes work")
    assert "`headrace resume desktop`" in str(found.action)
    assert findings.nobody_takes_work(body, 0)[0].level == "warning"
    assert findings.nobody_takes_work({"workers": [desktop | paused, laptop]}, 1) == []


def test_a_paused_machine_is_noted_with_the_way_back() -> None:
    desktop = example("`GET /workers`")["workers"][0] | {"state": "paused", "paused": "until it is resumed"}
    (found,) = findings.workers({"workers": [desktop]})
    assert (found.level, found.action) == ("note", "`headrace resume desktop`")
    assert "paused until it is resumed" in found.words


def test_a_data_folder_that_nobody_named_is_said_to_be_the_usual_place_only() -> None:
    assert "the usual place" in findings.disk("/d", 10**12, named=False).words
    assert "the usual place" not in findings.disk("/d", 10**12).words


def test_routes_that_were_refused_are_a_problem_with_their_line() -> None:
    found = findings.router("http://r", READINESS | {"routes": "routes.toml, line 3: chat.slider: expected a number"})
    assert (found[-1].part, found[-1].level) == ("routes", "problem")
    assert "line 3" in found[-1].words


def test_the_benchmarker_says_what_it_measures_and_what_keeps_the_rest_back() -> None:
    told = findings.benchmarker(example("`GET /bench`"))
    assert told.level == "ok"
    assert told.words == (
        "measures qwen3 on desktop (joined); 1 to be measured; first smollm2:135m on laptop: others use 37 % of it"
    )
    assert "nothing is left" in findings.benchmarker({"on": True, "total": 0, "owed": []}).words
    assert findings.benchmarker({"on": False, "total": 0, "owed": []}).level == "note"
    assert findings.no_benchmarker("no benchmarker answers (503); start one").words == "no benchmarker answers (503)"
