"""Families by name: the same model under every backend's name, and nobody related by accident."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from schemas.families import FAMILIES, FAMILY_OF_WORD, families_of, family_of, kin

KNOWN = {
    "qwen": "qwen3:8b qwen3 Qwen/Qwen3-8B-GGUF Qwen2.5-Coder-7B-Instruct-Q4_K_M.gguf qwq:32b qwen2.5vl:7b Qwen_Qwen3-8B-GGUF "
    "hf.co/bartowski/Qwen2.5-0.5B-Instruct-GGUF:Q4_K_M qwen3-coder:30b qwen2.5-7b-instruct@q4_k_m codeqwen:7b",
    "llama": "llama3.2:3b llama3.1:8b-instruct-q4_K_M meta-llama/Llama-3.3-70B-Instruct codellama:7b Llama-4-Scout-17B "
    "Hermes-3-Llama-3.1-8B nvidia_Llama-3.1-Nemotron-70B vicuna:13b ELYZA-japanese-Llama-2-7b Llama-3-Swallow-8B llama",
    "mistral": "mistral:7b mistral-nemo mixtral:8x7b nous-hermes2-mixtral:8x7b mistralai/Mistral-Small-24B ministral-8b "
    "devstral:24b magistral codestral zephyr:7b dolphin-mistral:7b mistralai_Mistral-Small-3.2 pixtral-12b",
    "gemma": "gemma-3-270m gemma2:2b gemma3:27b-it-qat google/gemma-3-1b-it google_gemma-3-270m-it-Q8_0.gguf gemma3n:e4b "
    "codegemma medgemma-4b-it embeddinggemma:300m",
    "smollm": "smollm2-135m-instruct smollm2:1.7b HuggingFaceTB/SmolLM3-3B SmolLM2-135M-Instruct SmolVLM-256M-Instruct",
    "deepseek": "deepseek-r1:8b deepseek-v3 deepseek-coder-v2:16b DeepSeek-R1-Distill-Qwen-7B deepseek-r1-distill-llama-8b",
    "phi": "phi3:mini phi4 phi-4-mini microsoft/Phi-3.5-mini-instruct microsoft_Phi-4-reasoning",
    "gpt": "gpt-oss:20b openai/gpt-oss-120b openai_gpt-oss-20b-GGUF gpt-4o chatgpt-4o-latest",
    "granite": "granite3.1-dense:8b ibm-granite/granite-4.0-h-tiny",
    "glm": "glm4:9b THUDM/GLM-4-9B-0414 chatglm3-6b",
    "command": "command-r:35b command-r-plus aya:8b c4ai-command-r7b",
    "yi": "yi:34b Yi-1.5-9B-Chat",
    "olmo": "olmo2:7b allenai/OLMo-2-1124-7B-Instruct",
    "lfm": "LiquidAI/LFM2-1.2B lfm2:350m",
    "starcoder": "starcoder2:3b",
    "internlm": "internlm2.5-7b-chat",
}
OWN = {
    "nomic-embed-text:latest": "nomic-embed-text",
    "mxbai-embed-large": "mxbai-embed",
    "solar:10.7b": "solar",
    "solar-pro:22b": "solar-pro",
    "dolphin3:8b": "dolphin",
    "tinyllama:1.1b": "tinyllama",
    "my-model-7b-instruct.Q4_K_M.gguf": "my-model",
    "models--sbintuitions--sarashina2.2-3b-instruct-v0.1": "sarashina",
    "/home/me/models/plamo-13b.gguf": "plamo",
    r"C:\models\rwkv-7b.gguf": "rwkv",
    "m1": "m1",
    "good": "good",
    "7b": "7b",
    "philosophy-7b": "philosophy",
}


@pytest.mark.parametrize(("family", "model"), [(f, m) for f, names in KNOWN.items() for m in names.split()])
def test_a_name_of_any_backend_tells_its_family(family: str, model: str) -> None:
    assert family_of(model) == family


@pytest.mark.parametrize("model", OWN)
def test_a_name_that_no_rule_knows_is_a_family_of_its_own(model: str) -> None:
    assert families_of(model) == (OWN[model],)


def test_a_distilled_model_is_kin_to_its_teacher_and_to_whose_weights_it_has() -> None:
    distilled = "DeepSeek-R1-Distill-Qwen-7B"
    assert families_of(distilled) == ("deepseek", "qwen")
    assert kin(distilled, "deepseek-v3") and kin("qwen3:8b", distilled)
    assert not kin(distilled, "llama3.2:3b")


def test_sizes_quantisations_and_tunings_of_a_model_are_kin() -> None:
    assert kin("solar:10.7b", "SOLAR-10.7B-Instruct-v1.0.Q4_K_M.gguf")
    assert not kin("model-a", "model-b") and not kin("m1", "m2")


def test_no_word_names_two_families() -> None:
    assert len(FAMILY_OF_WORD) == sum(len(words.split()) for words in FAMILIES.values())


@given(model=st.text(min_size=1).filter(lambda name: name.strip()))
def test_any_name_has_a_family_and_is_kin_to_itself(model: str) -> None:
    assert family_of(model) and kin(model, model)
