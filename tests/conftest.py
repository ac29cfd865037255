"""What all tests share: without torch, those that import it are left out, and the run says so."""

import random
import re
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import pytest
from hypothesis import settings

from headwise.config import RunConfig, load_config

HERE = Path(__file__).parent

settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.load_profile("repeatable")

NEEDS_TORCH = re.compile(r"^(import torch|from torch|from headwise\.(model|search))", re.MULTILINE)
needing = [file for file in HERE.glob("*/**/*.py") if NEEDS_TORCH.search(file.read_text())]
left_out = [] if find_spec("torch") else needing
collect_ignore = [str(file.parent if file.name == "conftest.py" else file) for file in left_out]


def pytest_report_header() -> str:
    return f"torch is not installed: {len(left_out)} files of tests left out" if left_out else "torch is installed"


DIGITS = [
    "model.d_model=16",
    "model.d_ff=19",
    "model.n_heads=2",
    "model.n_encoder_layers=1",
    "model.n_decoder_layers=2",
    "tokenizer.kind=characters",
    "data.batch_tokens=120",
    "train.warmup_steps=10",
    "train.log_every=1",
    "train.decode_dev=4",
    "train.validate_every=7",
    "train.save_every=5",
]


@pytest.fixture(scope="session")
def digit_settings() -> list[str]:
    """A model that learns to reverse digits a little, in a second."""
    return list(DIGITS)


@pytest.fixture(scope="session")
def digit_corpus(tmp_path_factory) -> Path:
    """train.src, train.tgt, dev.src, dev.tgt: digit strings, and the same reversed."""
    folder = tmp_path_factory.mktemp("digits")
    for name, n in (("train", 150), ("dev", 20)):
        draw = random.Random(n)
        texts = ["".join(draw.choices("0123456789", k=draw.randint(1, 9))) for _ in range(n)]
        (folder / f"{name}.src").write_text("".join(f"{text}\n" for text in texts))
        (folder / f"{name}.tgt").write_text("".join(f"{text[::-1]}\n" for text in texts))
    return folder


@pytest.fixture(scope="session")
def digit_config(digit_corpus) -> Callable[..., RunConfig]:
    """The settings of such a run, with changes as --set takes them."""
    files = {kind: [{side: f"{digit_corpus}/{kind}.{side}" for side in ("src", "tgt")}] for kind in ("train", "dev")}
    return lambda *changes: load_config("tiny", flags={"data": files}, overrides=[*DIGITS, *changes])
