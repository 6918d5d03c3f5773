# rankbridge. `make` alone lists what there is.
.DEFAULT_GOAL := help
.PHONY: help setup demo example test contract conformance chaos fuzz recovery soak diagnose score bench sizes lint proto proto-check lock sbom audit site clean
# Each recipe is one plain command: make starts it without a shell between, and passes signals on to it.

help: ## List the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' Makefile | expand -t 22

setup: ## Install all that is needed: .venv with pinned packages, Elixir from the system's packages
	@scripts/setup

demo: setup ## Start a gang of 4 ranks on Gloo; drive it from Elixir, then from Python; check every value
	@.venv/bin/python scripts/demo.py

STEPS ?= 200

example: setup ## Train on 4 ranks, a small way and a real transformer, for STEPS=200 steps, serve one, as ranks are killed; look into a job of torchrun's
	@scripts/example $(STEPS) $(SEED)

WHOLE ?=

test: setup ## Run the tests of every commit, in both languages; WHOLE=1: all, with every case of large matrices (hours)
	@WHOLE=$(WHOLE) scripts/test

contract: setup ## Run every contract case through both clients, on each backend and way
	@.venv/bin/python -m pytest -q --whole tests/contract
	@env -C elixir_client LC_ALL=C.UTF-8 ELIXIR_ERL_OPTIONS=+fnu MIX_ENV=test RANK_BRIDGE_WHOLE=1 mix test test/contract

CASES ?=
CLIENT ?= both

conformance: setup ## Replay every recorded case of other systems, in CASES=folder; CLIENT=python, elixir or both
	@.venv/bin/python -m tests.conformance $(if $(CASES),--cases $(CASES)) --client $(CLIENT)

ROUNDS ?= 100
SEED ?=

chaos: setup ## Random operations under ROUNDS=100 random faults, checked; SEED=n repeats a run, RECORD=FOLDER keeps failures
	@.venv/bin/python -m tests.chaos --rounds $(ROUNDS) $(if $(SEED),--seed $(SEED)) $(if $(RECORD),--record $(RECORD))

fuzz: setup ## Random calls, frames and lines, ROUNDS=100 times as many as the tests of every day; SEED=n repeats a run
	@.venv/bin/python -m pytest tests/fuzz --rounds $(ROUNDS) $(if $(SEED),--seed $(SEED))

KILLS ?= 30

recovery: setup ## Kill KILLS=30 ranks of a gang in an Elixir supervision tree; time each until it is whole
	@env -C elixir_client LC_ALL=C.UTF-8 ELIXIR_ERL_OPTIONS=+fnu RANKBRIDGE_COMMAND=$(CURDIR)/.venv/bin/rankbridge \
	  mix run scripts/recovery.exs $(KILLS)

soak: setup ## Time 30 kills, quiet and under load; form a gang 200 times, and find what grows
	@.venv/bin/python -m tests.chaos.soak

SEEDS ?= 10

diagnose: setup ## Faults of jobs and gangs as programs, SEEDS=10 runs of each: how right `rankbridge doctor` is, to docs/doctor.md
	@.venv/bin/python -m tests.diagnose --seeds $(SEEDS) --write docs/doctor.md
	@.venv/bin/python -m tests.diagnose --rivals --seeds $(SEEDS) --write docs/doctor.md

score: setup ## Labelled faulty and correct cases on real gangs, by SEED: how right errors are, to docs/score.md
	@.venv/bin/python -m tests.score $(if $(SEED),--seed $(SEED)) --write docs/score.md

QUICK ?=

bench: setup ## Measure ours beside the peers that are installed, and what ours adds; QUICK=1: a part of it, in a few minutes
	@.venv/bin/python -m bench $(if $(QUICK),--quick)
	@.venv/bin/python -m bench.overheads $(if $(QUICK),--quick)

sizes: setup ## A tensor of 4 GiB, 100,000 refs, 256 ranks: time and memory of each (with 20 GiB)
	@.venv/bin/python -m bench.sizes

lint: setup ## Run every linter and type checker, in both languages, and check the proto files
	@scripts/lint

proto: setup ## Write the Python and Elixir stubs anew from proto/
	@scripts/proto
	@PATH="$(CURDIR)/.venv/bin:$$PATH"; for it in methods unasync operations_doc scenarios; do python scripts/$$it.py || exit 1; done

proto-check: setup ## Fail if the committed stubs are not those of proto/
	@scripts/proto --check

lock: setup ## Write locks/ anew: the hashes of every file of what constraints*.txt pin
	@scripts/tools .venv/bin/python scripts/lock.py

sbom: setup ## Write rankbridge.cdx.json: what .venv has, with licences, as a CycloneDX bill of materials
	@scripts/tools .venv-tools/bin/python scripts/sbom.py

audit: setup ## Ask a database for known vulnerabilities of every pin (status 1: there are; 3: it cannot be asked)
	@scripts/tools .venv/bin/python scripts/audit.py

site: setup ## Write the documentation as a site, to site/; fails at a link that leads nowhere
	@NO_MKDOCS_2_WARNING=1 scripts/tools mkdocs build --strict

clean: ## Remove everything that was built or installed here
	@rm -rf .venv .venv-gen .venv-tools site .cache .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache \
	  elixir_client/_build elixir_client/deps elixir_client/compat/_build $(wildcard elixir_client/examples/*/_build)
