PYTHON ?= .venv/bin/python

.PHONY: check test bench

check:
	$(PYTHON) -m ruff format --check .
	$(PYTHON) -m ruff check .
	$(PYTHON) -m mypy

test:
	$(PYTHON) -m pytest

bench:
	for script in benchmarks/*_speed.py benchmarks/data_memory.py benchmarks/startup.py; do $(PYTHON) $$script || exit 1; done
