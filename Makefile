# Two commands do all the set-up on a fresh machine with Python >= 3.11:
#   make start   runs mcm: against the kubeconfigs given, else on the embedded sandbox cluster
#   make test    passes the tests
# The rest: make bench (measures, ten minutes), make check (style, types, layers, generated files),
# make format, make generate, make budgets, make lock.

PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
export CONTROL_KUBECONFIG TARGET_KUBECONFIG

.DEFAULT_GOAL := help
.PHONY: help start test envtest bench check format lock generate budgets clean

help:
	@sed -n '1,5s/^# \{0,1\}//p' Makefile

start: $(VENV)/.runtime
	@exec $(BIN)/mcm start $(ARGS)

# Whole files to a process, and in their order: the slow folders come first, so that no core is idle at the end.
test: $(VENV)/.development
	$(BIN)/pytest -n auto --dist loadfile --no-loadscope-reorder $(ARGS)

# A real kube-apiserver and etcd, built once by Go into ~/.cache.
envtest: $(VENV)/.development
	KUBEBUILDER_ASSETS="$$(tests/envtest/servers/ensure)" $(MAKE) test ARGS="tests/envtest $(ARGS)"

# Short forms of all benches; ARGS=--help says what else there is. Results go to bench/results.
# The clients that ours is compared with have an environment of their own, and may be missing.
bench: $(VENV)-bench/.complete
	@$(VENV)-bench/bin/python -m bench.report $(ARGS)

check: $(VENV)/.development
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports
	$(BIN)/mypy
	MYPYPATH=examples/provider-directory $(BIN)/mypy -p mcm_provider_directory
	$(BIN)/python -m tests.generated_files

format: $(VENV)/.development
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

generate: $(VENV)/.development
	$(BIN)/python -m tests.generated_files --write

# What guarded paths may cost (tests/guard) becomes what they cost now.
budgets: $(VENV)/.development
	$(BIN)/python -m tests.guard --write

lock: $(VENV)/.development
	{ echo "# Exact versions that the tests pass with; renewed by 'make lock'."; \
	  $(BIN)/pip freeze --exclude-editable; } > constraints.txt

clean:
	rm -rf $(VENV) $(VENV)-bench dev .mypy_cache .ruff_cache .pytest_cache .coverage

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "mcm needs Python 3.11 or newer; try: make PYTHON=python3.12 $(MAKECMDGOALS)" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV) \
	  || { echo "the venv module is missing; on Debian: apt-get install python3-venv" >&2; exit 1; }

$(VENV)/.runtime: $(VENV)/bin/python pyproject.toml constraints.txt
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[sandbox]'
	@touch $@

$(VENV)/.development: $(VENV)/bin/python pyproject.toml constraints.txt
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[test,dev]'
	@touch $@ $(VENV)/.runtime

$(VENV)-bench/.complete: $(VENV)/bin/python pyproject.toml constraints.txt
	$(BIN)/python -m venv $(VENV)-bench
	$(VENV)-bench/bin/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[bench]'
	$(VENV)-bench/bin/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[contestants]' \
	  || echo "the other clients cannot be installed: measured without them" >&2
	@touch $@
