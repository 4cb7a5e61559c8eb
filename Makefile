# Everything a person does here is a target; `make` alone prints them.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
LOCKED := $(VENV)/.locked
READY  := $(VENV)/.ready
UNIT   := not e2e and not bench and not karpenter and not karmada and not beside and not campaign
# A test that hangs says where, and fails; the others go on. One that cannot even be interrupted ends its process, and
# with it the run: a process in its place would be given the work that is done, and wait for ever (pytest-xdist 3.8).
ENDING := --timeout 600 --timeout-method signal --max-worker-restart 0 \
  -o faulthandler_timeout=900 -o faulthandler_exit_on_timeout=true
# One more than cores, since they wait a tenth of their time; who has nothing left takes from another's list.
SPREAD := -n 3 --dist worksteal
# Each has a control plane and a controller of its own, and some 1.3 GiB. More do not make two cores faster.
WORKERS ?= 8
E2E     := tests/e2e tests/sandbox tests/test_dockerfile.py

SHELL       := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.NOTPARALLEL:
MAKEFLAGS += --no-print-directory
# Images forbid Python to keep what it has compiled. Each process of the tests would then compile all of them.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help
help: ## Print this list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)


.PHONY: venv
venv: $(READY) ## Make .venv with everything pinned by requirements-dev.lock (again only when it changed)

# A changed lock makes a new environment: nothing stays behind that is not locked.
$(LOCKED): requirements-dev.lock
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	  echo "splitter needs Python >= 3.11, and '$(PYTHON)' is $$($(PYTHON) --version 2>/dev/null || echo 'not there')." >&2; \
	  echo "Install a newer one and name it: make PYTHON=python3.12 venv" >&2; exit 1; }
	@if $(PYTHON) -c 'import pip' 2>/dev/null; then $(call ask_index,$(PYTHON)); fi
	$(PYTHON) -m venv --clear $(VENV)
	@$(PYTHON) -c 'import pip' 2>/dev/null || { $(call ask_index,$(BIN)/python); }
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --only-binary :all: -r requirements-dev.lock
	@touch $@

# Without a network pip tries for minutes, so one small package is asked for first, once, and before the old
# environment goes. A silent host costs 5 s. An alarm ends other waiting, on a name server for instance; that is
# told only, since a slow network is no fault.
ASKED       := iniconfig
PIP_FOR_9_S := import runpy, signal; signal.alarm(9); runpy.run_module("pip", run_name="__main__")
define ask_index
	code=0; folder=$$(mktemp -d); pin=$$(sed -n 's/^\($(ASKED)==[^ ;]*\).*/\1/p' requirements-dev.lock); \
	said=$$($(1) -c '$(PIP_FOR_9_S)' download --quiet --disable-pip-version-check --retries 0 --timeout 5 \
	  --no-deps --only-binary :all: --dest "$$folder" "$$pin" 2>&1) || code=$$?; \
	rm -rf "$$folder"; \
	if [ $$code -eq 142 ]; then \
	  echo "pip has had no answer for 9 s: the network is slow, or there is none. It is tried on; Ctrl-C ends it." >&2; \
	elif [ $$code -ne 0 ]; then \
	  echo "pip cannot install what requirements-dev.lock names: $$pin, a small one of these packages, did not come" >&2; \
	  echo "($$(tail -n 1 <<<"$$said" | sed -E 's|://[^/ ]*|://(host)|g'))." >&2; \
	  echo "Connect this machine to the network, or tell pip of an index that answers (PIP_INDEX_URL), or of a" >&2; \
	  echo "folder with all these wheels (PIP_NO_INDEX=1 PIP_FIND_LINKS=FOLDER). Then try again." >&2; exit 1; \
	fi
endef

# No build isolation: the build backend is locked too, so nothing is fetched here.
$(READY): $(LOCKED) pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

.PHONY: lock
lock: $(READY) ## Pin the dependencies of pyproject.toml again (PACKAGES="a b": only upgrade these; ALL=1: all)
	$(BIN)/uv pip compile --quiet pyproject.toml --extra karmada --group dev $(LOCK_FLAGS) $(LOCK_UPGRADE) --output-file requirements-dev.lock
	$(BIN)/uv pip compile --quiet --group controller $(LOCK_FLAGS) --no-annotate --constraint requirements-dev.lock --upgrade --output-file requirements.lock
	$(BIN)/uv pip compile --quiet --group build $(LOCK_FLAGS) --no-annotate --constraint requirements-dev.lock --upgrade --output-file requirements-build.lock

# Works on any platform and any Python >= 3.11, names no registry; the other locks are parts of the dev lock. Nothing is
# built: that would run code of packages which nobody has looked at yet.
LOCK_FLAGS := --universal --python-version 3.11 --generate-hashes --no-header --no-emit-index-url --no-build
LOCK_UPGRADE := $(if $(ALL),--upgrade) $(foreach package,$(PACKAGES),--upgrade-package $(package))


# One after the other, each with its seconds: what takes long is seen, here and in CI.
STAGES := preflight programs lint types contracts docs test-unit test-e2e

.PHONY: test
test: ## All checks and all tests: the one command (14 to 34 minutes on 2 cores, 11 more for the first run)
	+@$(call stages,$(STAGES))

.PHONY: test-quick
test-quick: ## For every save: all checks, unit tests but the slow ones, a life on a real control plane
	+@$(call stages,programs lint types contracts test-save)

.PHONY: test-all
test-all: ## Everything there is, campaigns too (hours)
	+@$(call stages,$(STAGES) test-campaigns test-karpenter test-neighbours explore bench)

define stages
	told=""; \
	for stage in $(1); do \
	  began=$$SECONDS; \
	  ended=0; $(MAKE) $$stage || ended=$$?; \
	  told+=$$(printf '\n%6d s  make %s' $$((SECONDS - began)) $$stage); \
	  [ $$ended -eq 0 ] || { echo "failed in the last of:$$told" >&2; exit $$ended; }; \
	done; \
	echo "all passed:$$told"
endef

.PHONY: preflight
preflight: $(READY) ## Say what the tests need and is missing: Go, network, disk, memory
	@$(BIN)/python -m lab sandbox check --helm --real-nodes --at-once $(WORKERS)

.PHONY: programs
programs: $(READY) ## Build what the tests run, once: Kubernetes, KWOK, Helm, real nodes (11 minutes on 2 cores)
	@$(BIN)/python -m lab sandbox build --real-nodes --helm >/dev/null

.PHONY: lint
lint: $(READY) ## Style: ruff, all rules
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

.PHONY: types
types: $(READY) ## Types: mypy --strict, tests too
	$(BIN)/mypy

.PHONY: contracts
contracts: $(READY) ## Walls between the rooms: import-linter
	$(BIN)/lint-imports

# Material prints a notice about the future of MkDocs, in red, at every build.
.PHONY: docs
docs: $(READY) ## The documentation as a site, in build/site; any broken link fails
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

.PHONY: test-unit
test-unit: $(READY) ## Unit, property, story and house tests (no cluster)
	$(BIN)/pytest -m "$(UNIT)" $(ENDING) $(SPREAD) --durations 10 $(PYTEST)

.PHONY: test-e2e
test-e2e: $(READY) ## End-to-end tests on real control planes (built on the first run: about 6 minutes on 2 cores)
	$(BIN)/pytest -m e2e $(ENDING) $(if $(filter tests/%,$(PYTEST)),,$(E2E)) -n $(WORKERS) --dist loadscope \
	  --no-loadscope-reorder --durations 10 $(PYTEST)

# The life waits while others work, so both are in the same run.
.PHONY: test-save
test-save: $(READY) ## The tests of `make test-quick`: unit tests that are not slow, and a workload's life
	$(BIN)/pytest -m "($(UNIT) and not slow) or life" $(ENDING) $(SPREAD) --durations 10 $(PYTEST)

.PHONY: fuzz
fuzz: $(READY) ## Play 100,000 objects of an attacker's against a recording API server (half an hour)
	FUZZ_EXAMPLES=$${FUZZ_EXAMPLES:-800} $(BIN)/pytest --assert=plain tests/fuzz/test_requests.py -n 2 $(PYTEST)

.PHONY: test-campaigns
test-campaigns: $(READY) ## Short runs of chaos, soak and scale, and a real application: that they still work
	$(BIN)/pytest -m campaign -n 2 $(PYTEST)

.PHONY: explore
explore: $(READY) ## Every order of events around a hand-over that a quarter of an hour allows
	SPLITTER_EXPLORE=full $(BIN)/pytest -s tests/model $(PYTEST)

.PHONY: lives
lives: $(READY) ## 2,000 random lives of a Deployment in the world that plays Kubernetes, and those of a StatefulSet (an hour)
	SPLITTER_WORLD_LIVES=$${SPLITTER_WORLD_LIVES:-0:2000} $(BIN)/pytest tests/stories/test_random_lives.py tests/stories/test_quorum.py \
	  -k the_promises_hold -n 2 $(PYTEST)

.PHONY: chart
chart: $(READY) ## Lint the Helm chart and package it into dist/ (Helm is built on the first run: 3 minutes)
	@helm=$$($(BIN)/python -m lab sandbox build --helm | tail -1)/helm; \
	$$helm lint --strict manifests/helm/splitter && $$helm package --destination dist manifests/helm/splitter

.PHONY: release
release: $(READY) ## Commit, tag and build a version, with nothing pushed: make release VERSION=0.2.0
	@PYTHONPATH=.:tests $(BIN)/python -m release cut "$(VERSION)" --image "$(IMAGE)"

.PHONY: dist
dist: $(READY) ## Build what a release consists of into dist/, from the last commit (IMAGE=registry/name)
	@PYTHONPATH=.:tests $(BIN)/python -m release build --image "$(IMAGE)"

# Where the image will be pulled from, without a tag: the built manifests and the built chart name it.
IMAGE ?= splitter

.PHONY: test-karpenter
test-karpenter: $(READY) ## End-to-end tests with Karpenter, the descheduler and metrics-server (first run: 10 minutes more)
	$(BIN)/pytest -m karpenter $(PYTEST)

.PHONY: test-karmada
test-karmada: $(READY) ## End-to-end tests with a real Karmada, two members (KARMADA_ASSETS=FOLDER of its programs; skipped without)
	$(BIN)/pytest -m karmada -rs $(PYTEST)

.PHONY: test-neighbours
test-neighbours: $(READY) ## End-to-end tests with KEDA and the VerticalPodAutoscaler (first run: 25 minutes more)
	$(BIN)/pytest -m beside $(PYTEST)

.PHONY: bench
bench: $(READY) ## Measure reaction time, CPU and memory on the sandbox
	$(BIN)/pytest -m bench -s $(PYTEST)

.PHONY: scale
scale: $(READY) ## 100, 300 and 1,000 workloads beside a client that decides nothing; takes long (SCALE="--help")
	PYTHONPATH=.:tests $(BIN)/python -m bench.scale $(SCALE)

.PHONY: chaos
chaos: $(READY) ## Faults between splitter and the API server, in a world that does not keep still (CHAOS="--help")
	$(BIN)/python -m lab chaos $(CHAOS)

.PHONY: soak
soak: $(READY) ## A day of deploys, scaling, policies and a real spot trace in 20 minutes; nothing may grow (SOAK="--help")
	$(BIN)/python -m lab soak $(SOAK)

.PHONY: compatibility
compatibility: $(READY) ## Tests with each Kubernetes and each Python that are promised (an hour; ALL=1: hours)
	$(BIN)/python -m lab compatibility $(if $(ALL),--all) $(COMPATIBILITY)

.PHONY: upgrade
upgrade: $(READY) ## From another version to this one and back, with its own code (FROM=CHECKOUT)
	$(BIN)/python -m lab upgrade "$(FROM)"

.PHONY: replay
replay: $(READY) ## Drive real nodes by a public spot trace, beside the simulator's prediction (REPLAY="--help")
	PYTHONPATH=tests $(BIN)/python -m bench.replay $(REPLAY)

.PHONY: compare
compare: $(READY) ## Let splitter and plain Deployments lose their spot nodes side by side (COMPARE="--help" for options)
	$(BIN)/python -m lab compare $(COMPARE)

.PHONY: traffic
traffic: $(READY) ## Count failed requests on real nodes, beside a plain Deployment; 8 minutes (TRAFFIC="--help" for options)
	$(BIN)/python -m lab traffic $(TRAFFIC)

.PHONY: pictures
pictures: $(READY) ## Write the pictures of the page anew, into docs/assets (needs chromium and chromedriver)
	PYTHONPATH=.:tests $(BIN)/python -m dashboard.pictures docs/assets

.PHONY: admission
admission: $(READY) ## Write manifests/admission anew, where it is made of splitter's tables
	for what in annotations notices placement; do $(BIN)/splitter admission $$what > manifests/admission/$$what.yaml; done

.PHONY: generated
generated: admission ## Write anew what is made of tables in the code: pages, parts of the CRD, admission policies
	SPLITTER_REGENERATE=1 $(BIN)/pytest -q tests/test_architecture.py tests/test_reference.py \
	  tests/test_rbac_reference.py tests/settings/test_settings.py tests/chart/test_values.py

.PHONY: format
format: $(READY) ## Let ruff mend what it can
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .


.PHONY: sandbox
sandbox: $(READY) ## Run the control plane of demo and tests until Ctrl-C (SANDBOX="--help" for options)
	$(BIN)/python -m lab sandbox $(SANDBOX)

.PHONY: demo
demo: $(READY) ## A split application survives the loss of all spot nodes, in 2 minutes (DEMO="--help" for options)
	$(BIN)/python -m lab demo $(DEMO)

.PHONY: recording
recording: $(READY) ## Run the demo and draw it for the README (docs/assets/demo.svg), in 2 minutes
	$(BIN)/python -m lab demo --recording docs/assets/demo.svg

.PHONY: clean
clean: ## Remove what can be made again, but not the sandbox's cache
	rm -rf $(VENV) build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
