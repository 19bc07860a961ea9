from __future__ import annotations

import re
import zipfile
from collections import Counter
from pathlib import Path

import pytest
from hatchling.builders.wheel import WheelBuilder

from services.benchmarker.graders import grade
from services.benchmarker.suites import FOLDER, Prompt, SuiteFault, load, read, suites
from services.router.domain_words import BUILT_IN

PROMPT = '[[prompts]]\nid = "one"\nlevel = 1\nlanguage = "en"\ntext = "What?"\n'
ALL = [(suite.name, prompt) for suite in suites().values() for prompt in suite.prompts]


def test_every_domain_has_its_suite() -> None:
    assert set(suites()) == set(BUILT_IN)


@pytest.mark.parametrize("domain", BUILT_IN)
def test_a_suite_is_short_bilingual_and_for_models_of_every_size(domain: str) -> None:
    suite = suites()[domain]
    assert 10 <= len(suite.prompts) <= 20
    assert {prompt.language for prompt in suite.prompts} == {"en", "ja"}
    levels = Counter(prompt.level for prompt in suite.prompts)
    assert levels[1] >= 4 and levels[2] >= 4 and levels[3] >= 2
    assert len(suite.checked) >= 10  # fewer than six that differ can decide nothing


@pytest.mark.parametrize("domain", BUILT_IN)
def test_enough_prompts_are_left_to_judges_for_three_verdicts_of_two_models_on_different_answers(domain: str) -> None:
    judged = suites()[domain].judged
    assert len(judged) >= 5
    assert {prompt.language for prompt in judged} == {"en", "ja"}


@pytest.mark.parametrize(("suite", "prompt"), ALL, ids=[f"{name}/{prompt.id}" for name, prompt in ALL])
def test_no_prompt_is_met_by_saying_nothing_or_repeating_it(suite: str, prompt: Prompt) -> None:
    if prompt.check is None:
        return
    echoes = (prompt.text, f"{prompt.text}\n{prompt.text}", f"{prompt.text} I do not know.")
    for answer in ("", "I do not know.", "わかりません。", *(echoes if prompt.id != "aisatsu" else ())):
        assert grade(prompt.check, answer, prompt.text).value == 0.0, answer


def test_a_prompt_becomes_a_question_that_is_asked_the_same_way_each_time() -> None:
    prompt = suites()["maths"].prompts[0]
    assert prompt.body.messages == ({"role": "user", "content": prompt.text},)
    assert (prompt.options.temperature, prompt.options.seed) == (0.0, 1)
    assert prompt.options.max_tokens == prompt.max_tokens


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("domain = ", "x.toml is no TOML"),
        ('domain = "x"\n', "at least one"),
        (f"{PROMPT}", 'expected domain = "..."'),
        (f'domain = "x"\nother = 1\n{PROMPT}', "nothing else"),
        (f'domain = "x"\n{PROMPT}{PROMPT}', "x.toml: the id 'one' stands 2 times"),
        (f'domain = "x"\n{PROMPT}colour = 1\n', "x.toml, prompt one: Object contains unknown field `colour`"),
        ('domain = "x"\n[[prompts]]\nid = "two"\n', "x.toml, prompt two: Object missing required field"),
        ('domain = "x"\n[[prompts]]\ntext = "a"\n', "x.toml, prompt 1: "),
        (f'domain = "x"\n{PROMPT}check = {{ kind = "magic" }}\n', "x.toml, prompt one: Invalid value 'magic'"),
        (f'domain = "x"\n{PROMPT}check = {{ kind = "word", any = [] }}\n', "x.toml, prompt one: any must name"),
        (f'domain = "x"\n{PROMPT}max_tokens = 9999\n', "x.toml, prompt one: Expected `int` <= 512"),
    ],
)
def test_a_fault_names_the_file_and_the_prompt(text: str, fault: str) -> None:
    with pytest.raises(SuiteFault, match=re.escape(fault)):
        read("x", text.encode())


def test_all_faults_are_told_at_once(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text('domain = "x"\n' + PROMPT)
    (tmp_path / "b.toml").write_text('domain = "x"\n' + PROMPT)
    (tmp_path / "c.toml").write_text("nonsense")
    with pytest.raises(SuiteFault) as fault:
        load(tmp_path)
    assert str(fault.value).splitlines()[0] == "b.toml: a.toml is already about x"
    assert len(str(fault.value).splitlines()) == 2


def test_the_suites_are_in_the_wheel(tmp_path: Path) -> None:
    """Built as it is released."""
    wheel = next(WheelBuilder(str(FOLDER.parents[2])).build(directory=str(tmp_path), versions=["standard"]))
    inside = zipfile.ZipFile(wheel).namelist()
    assert {f"services/benchmarker/suites/{file.name}" for file in FOLDER.glob("*.toml")} <= set(inside)
