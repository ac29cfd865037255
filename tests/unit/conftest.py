"""A configuration with small primes, and weights that fit it, without torch."""

import numpy as np
import pytest

from headwise.architecture import parameters
from headwise.bundle import Bundle
from headwise.config import RunConfig, load_config


@pytest.fixture
def small_config() -> RunConfig:
    sizes = {"vocab_size": 31, "d_model": 14, "d_ff": 19, "n_heads": 7, "n_encoder_layers": 2, "n_decoder_layers": 1}
    return load_config("tiny", overrides=[f"model.{name}={size}" for name, size in sizes.items()])


@pytest.fixture
def bundle(small_config) -> Bundle:
    rng = np.random.default_rng(3)
    weights = {
        name: rng.normal(size=shape).astype(np.float32) for name, shape in parameters(small_config.model).items()
    }
    return Bundle(small_config, weights, tokenizer='{"pieces": ["ä"]}', card="# A model\n")
