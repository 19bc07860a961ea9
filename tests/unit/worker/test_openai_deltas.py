"""However a server writes tool calls and probabilities, they come out in one form."""

from __future__ import annotations

from services.worker.backends.openai_deltas import Calls, logprobs_of


def test_case_35_deltas_without_an_index_belong_to_the_call_before() -> None:
    calls = Calls()
    first, second, third, fourth = (
        calls.numbered([delta])[0]
        for delta in (
            {"id": "a", "function": {"name": "f", "arguments": ""}},
            {"function": {"arguments": "{}"}},
            {"function": {"name": "g", "arguments": {"x": 1}}},
            {"id": "a", "function": {"arguments": " "}},
        )
    )
    assert (first["index"], first["id"], first["type"]) == (0, "a", "function")
    assert second == {"index": 0, "function": {"arguments": "{}"}}
    assert (third["index"], third["function"]["arguments"]) == (1, '{"x":1}')
    assert third["id"].startswith("call_"), "a call without an id cannot be answered"
    assert fourth["index"] == 0


def test_the_older_form_of_probabilities_becomes_the_newer() -> None:
    old = {"tokens": ["Hi"], "token_logprobs": [-0.5], "top_logprobs": [{"Yo": -1.0}], "text_offset": [0]}
    entry = {
        "token": "Hi", "logprob": -0.5, "bytes": [72, 105], "top_logprobs": [{"token": "Yo", "logprob": -1.0}],
    }  # fmt: skip
    assert logprobs_of(old) == logprobs_of({"content": [entry]}) == (entry,)
    assert logprobs_of(None) == logprobs_of({"content": None}) == ()
