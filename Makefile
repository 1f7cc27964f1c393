# Two commands do all the set-up on a fresh machine with Python >= 3.11:
#   make start   runs mcm: against the kubeconfigs given, else on the embedded sandbox cluster
#   make test    passes the tests
# The rest: make check (style, types, layers, generated files), make format, make generate, make lock.

PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
export CONTROL_KUBECONFIG TARGET_KUBECONFIG

.DEFAULT_GOAL := help
.PHONY: help start test envtest check format lock generate clean

help:
	@sed -n '1,4s/^# \{0,1\}//p' Makefile

start: $(VENV)/.runtime
	@exec $(BIN)/mcm start $(ARGS)

# Whole files to a process, and in their order: the slow folders come first, so that no core is idle at the end.
test: $(VENV)/.development
	$(BIN)/pytest -n auto --dist loadfile --no-loadscope-reorder $(ARGS)

# A real kube-apiserver and etcd, built once by Go into ~/.cache.
envtest: $(VENV)/.development
	KUBEBUILDER_ASSETS="$$(tests/envtest/servers/ensure)" $(MAKE) test ARGS="tests/envtest $(ARGS)"

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

lock: $(VENV)/.development
	{ echo "# Exact versions that the tests pass with; renewed by 'make lock'."; \
	  $(BIN)/pip freeze --exclude-editable; } > constraints.txt

clean:
	rm -rf $(VENV) dev .mypy_cache .ruff_cache .pytest_cache .coverage

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
