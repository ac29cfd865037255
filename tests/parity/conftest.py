"""A small task that trains in a second: digit strings, reversed."""

import random
from pathlib import Path

import pytest

SMALL = [
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


def digits(n: int, seed: int) -> list[str]:
    random.seed(seed)
    return ["".join(random.choices("0123456789", k=random.randint(1, 9))) for _ in range(n)]


@pytest.fixture
def corpus(tmp_path) -> Path:
    for name, n in (("train", 150), ("dev", 20)):
        texts = digits(n, seed=n)
        (tmp_path / f"{name}.src").write_text("".join(f"{text}\n" for text in texts))
        (tmp_path / f"{name}.tgt").write_text("".join(f"{text[::-1]}\n" for text in texts))
    return tmp_path
