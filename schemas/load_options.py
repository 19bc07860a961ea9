"""Which options of Ollama decide how a model is loaded?

Another value of one of these than the loaded model's makes Ollama load it anew, for everybody: no client's may reach it
(case 27).
"""

from __future__ import annotations

LOAD_OPTIONS = frozenset(
    "num_ctx num_batch num_gpu main_gpu low_vram f16_kv logits_all vocab_only use_mmap use_mlock num_thread numa "
    "embedding_only rope_frequency_base rope_frequency_scale".split()
)
