PYTHON ?= .venv/bin/python

.PHONY: check test bench

check:
	$(PYTHON) -m ruff format --check .
	$(PYTHON) -m ruff check .
	$(PYTHON) -m mypy

test:
	$(PYTHON) -m pytest

bench:
	for name in attend_speed data_memory startup train_speed; do $(PYTHON) benchmarks/$$name.py || exit 1; done
