"""A small model with a different prime for every size, so that no two can be confused."""

import pytest
import torch

from headwise.config import ModelConfig
from headwise.model.transformer import Transformer

SIZES = {
    "vocab_size": 31,
    "d_model": 14,
    "d_ff": 19,
    "n_heads": 3,
    "n_encoder_layers": 2,
    "n_decoder_layers": 3,
    "d_k": 10,
    "d_v": 7,
}


@pytest.fixture
def make_model():
    """A model in eval mode whose every parameter is random: biases and norms too, which start at 0 and 1."""

    def make(**changes) -> Transformer:
        torch.manual_seed(11)
        model = Transformer(ModelConfig(**{**SIZES, **changes}))
        with torch.no_grad():
            for parameter in model.parameters():
                if parameter.dim() == 1:
                    parameter += 0.3 * torch.randn_like(parameter)
        return model.eval()

    return make


@pytest.fixture
def batch():
    """src (5, 7) and tgt_in (5, 6) of unequal lengths, padded on the right with 0."""
    torch.manual_seed(13)
    src, tgt_in = torch.randint(3, 31, (5, 7)), torch.randint(3, 31, (5, 6))
    for row, (n_src, n_tgt) in enumerate([(7, 6), (4, 3), (1, 6), (6, 1), (2, 2)]):
        src[row, n_src:], tgt_in[row, n_tgt:] = 0, 0
    return src, tgt_in
