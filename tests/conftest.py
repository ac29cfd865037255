"""What all tests share: without torch, those that import it are left out, and the run says so."""

import random
import re
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings

from headwise.architecture import parameters
from headwise.bundle import Bundle
from headwise.config import RunConfig, TokenizerConfig, load_config
from headwise.text.tokenizer import Tokenizer

HERE = Path(__file__).parent

settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.load_profile("repeatable")

NEEDS_TORCH = re.compile(r"^(import torch|from torch|from headwise\.(model|search))", re.MULTILINE)
needing = [file for file in HERE.glob("*/**/*.py") if NEEDS_TORCH.search(file.read_text())]
left_out = [] if find_spec("torch") else needing
collect_ignore = [str(file.parent if file.name == "conftest.py" else file) for file in left_out]


def pytest_report_header() -> str:
    return f"torch is not installed: {len(left_out)} files of tests left out" if left_out else "torch is installed"


@pytest.fixture(scope="session", autouse=True)
def own_home(tmp_path_factory) -> Iterator[Path]:
    """What belongs to the user is not touched; commands that are started inherit this."""
    folder = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HEADWISE_HOME", str(folder))
        yield folder


@pytest.fixture(scope="session")
def babbler(tmp_path_factory) -> Path:
    """The folder of a model that has learned nothing, made without torch; its ends are likely enough."""
    lines = ["the quick brown fox jumps over the lazy dog", "Zwölf Boxkämpfer jagen Viktor über den Deich", "a b c d e"]
    tokenizer = Tokenizer.learn(lines, lines, TokenizerConfig(vocab_size=300), len(lines))
    sizes = ["d_model=16", "d_ff=24", "n_heads=2", "n_encoder_layers=1", "n_decoder_layers=2", "output_bias=true"]
    overrides = [*(f"model.{size}" for size in sizes), f"model.vocab_size={tokenizer.vocab_size}"]
    config = load_config("tiny", overrides=[*overrides, "search.extra_pieces=6"])
    random_numbers = np.random.default_rng(4)
    weights = {
        name: (1.2 * random_numbers.normal(size=shape) / shape[-1] ** 0.5).astype(np.float32)
        for name, shape in parameters(config.model).items()
    }
    for name, array in weights.items():
        if name.endswith("norm.weight"):
            array[:] = 1
    weights["output.bias"][:3] = [-30, -30, 1.5]
    folder = tmp_path_factory.mktemp("babbler") / "model"
    Bundle(config, weights, tokenizer.to_text()).write(folder)
    return folder


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
