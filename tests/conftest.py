"""What all tests share: without torch, those that import it are left out, and the run says so."""

import re
from importlib.util import find_spec
from pathlib import Path

from hypothesis import settings

HERE = Path(__file__).parent

settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.load_profile("repeatable")

NEEDS_TORCH = re.compile(r"^(import torch|from torch|from headwise\.(model|search))", re.MULTILINE)
needing = [file for file in HERE.glob("*/**/*.py") if NEEDS_TORCH.search(file.read_text())]
left_out = [] if find_spec("torch") else needing
collect_ignore = [str(file.parent if file.name == "conftest.py" else file) for file in left_out]


def pytest_report_header() -> str:
    return f"torch is not installed: {len(left_out)} files of tests left out" if left_out else "torch is installed"
