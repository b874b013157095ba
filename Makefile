# `make quickstart` and `make test` do everything on a fresh machine; a second run reuses .venv.
VENV ?= .venv
WORKERS ?= 2
ARGS ?=
python := $(VENV)/bin/python
installed := $(VENV)/.installed

.PHONY: help quickstart evaluate test lint clean

help:
	@echo "make quickstart   train a context policy and compare it (ARGS='seed=1' changes a setting)"
	@echo "make evaluate     compare the baselines (ARGS='sources=[tools]' changes a setting)"
	@echo "make test         run the tests (ARGS='tests/edits -k stub' selects some)"
	@echo "make lint         ruff, formatting, mypy"
	@echo "make clean        remove the virtual environment"

quickstart: $(installed)
	OMP_NUM_THREADS=1 $(python) scripts/train.py experiment=quickstart $(ARGS)

evaluate: $(installed)
	$(python) scripts/evaluate.py $(ARGS)

test: $(installed)
	OMP_NUM_THREADS=1 $(python) -m pytest -n $(WORKERS) --dist worksteal $(ARGS)

lint: $(installed)
	$(python) -m ruff check .
	$(python) -m ruff format --check .
	$(python) -m mypy

$(installed): pyproject.toml requirements.txt scripts/install.sh
	scripts/install.sh $(VENV)
	@touch $@

clean:
	rm -rf $(VENV)
