PYTHON ?= .venv/bin/python

.PHONY: check test docs bench

check:
	$(PYTHON) -m ruff format --check .
	$(PYTHON) -m ruff check .
	$(PYTHON) -m mypy

test:
	$(PYTHON) -m pytest

docs:
	$(PYTHON) -m sphinx -q -E -W --keep-going -d docs/_build/doctrees docs docs/_build/html

bench:
	for name in attend_speed data_memory startup train_speed; do $(PYTHON) benchmarks/$$name.py || exit 1; done
