"""Parameters, FLOPs and bytes from the settings alone."""

import pytest

from headwise.architecture import describe, parameters
from headwise.config import ModelConfig, load_config

# What differs from base in Table 3, and the million parameters that the paper states.
TABLE_3 = {
    "base": ([], 65),
    "(B) d_k 16": (["d_k=16"], 58),
    "(B) d_k 32": (["d_k=32"], 60),
    "(C) N 2": (["n_encoder_layers=2", "n_decoder_layers=2"], 36),
    "(C) N 4": (["n_encoder_layers=4", "n_decoder_layers=4"], 50),
    "(C) N 8": (["n_encoder_layers=8", "n_decoder_layers=8"], 80),
    "(C) d_model 256": (["d_model=256"], 28),
    "(C) d_model 1024": (["d_model=1024"], 168),
    "(C) d_ff 1024": (["d_ff=1024"], 53),
    "(C) d_ff 4096": (["d_ff=4096"], 90),
}


def test_base_and_big_to_the_parameter():
    assert describe(load_config("base").model).parameters.total == 63_082_496
    assert describe(load_config("big").model).parameters.total == 214_245_376


@pytest.mark.parametrize("row", TABLE_3)
def test_table_3_at_the_vocabulary_that_gives_base_its_65_million(row):
    """Every row of the table, (B) with d_k alone changed, within the rounding of two rounded numbers."""
    changes, millions = TABLE_3[row]
    config = load_config("base", overrides=["model.vocab_size=40745", *(f"model.{change}" for change in changes)])
    assert describe(config.model).parameters.total / 1e6 == pytest.approx(millions, abs=0.65)


def test_no_one_vocabulary_gives_both_of_the_papers_sizes():
    def vocabularies(preset: str, millions: float) -> set[int]:
        config = load_config(preset).model
        rest = describe(config).parameters.total - config.vocab_size * config.d_model
        return {v for v in range(10_000, 60_000) if round((rest + v * config.d_model) / 1e6) == millions}

    base, big = vocabularies("base", 65), vocabularies("big", 213)
    assert (min(base), max(base)) == (39_769, 41_721)
    assert (min(big), max(big)) == (35_296, 36_272)


def test_by_hand():
    """One layer a side, d_model 3, d_ff 5, one head of d_k 2 and d_v 4, seven pieces shared three ways."""
    config = ModelConfig(
        vocab_size=7, d_model=3, d_ff=5, n_heads=1, n_encoder_layers=1, n_decoder_layers=1, d_k=2, d_v=4
    )
    attention = (3 * 2 + 2) + (3 * 2 + 2) + (3 * 4 + 4) + (4 * 3 + 3)
    feed_forward, norm = (3 * 5 + 5) + (5 * 3 + 3), 3 + 3
    count = describe(config).parameters
    assert count.encoder == attention + feed_forward + 2 * norm
    assert count.decoder == 2 * attention + feed_forward + 3 * norm
    assert (count.embeddings, count.output) == (7 * 3, 0)

    flops = describe(config, length=11).flops
    projections = 2 * (3 * 2 + 3 * 2 + 3 * 4 + 4 * 3)
    keys_values = 2 * (3 * 2 + 3 * 4)
    look = 2 * (2 + 4)
    inner = 2 * (3 * 5 + 5 * 3)
    assert flops.encoding_per_token == projections + inner + 11 * look + keys_values
    assert flops.decoding_per_token == 2 * projections - keys_values + inner + (6 + 11) * look + 2 * 3 * 7

    memory = describe(config).memory
    matrices = [shape for shape in parameters(config).values() if len(shape) == 2]
    entries = sum(rows * columns for rows, columns in matrices)
    assert memory.weights_float32 == 4 * count.total
    assert memory.weights_int8 == entries + 4 * sum(rows for rows, _ in matrices) + 4 * (count.total - entries)
    assert memory.cache_per_token == 4 * (2 + 4)
