"""The FLOPs that `headwise info` states are those that torch counts."""

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from headwise.architecture import describe
from headwise.config import ModelConfig
from headwise.model.transformer import Transformer

REFERENCE = {"encoder": "reference", "decoder": "reference", "cross": "reference"}
CONFIG = ModelConfig(
    vocab_size=61, d_model=22, d_ff=37, n_heads=3, d_k=7, d_v=5, n_encoder_layers=3, n_decoder_layers=2,
    attention=REFERENCE,
)  # fmt: skip
LENGTH = 13


def counted(work) -> int:
    with FlopCounterMode(display=False) as counter:
        work()
    return counter.get_total_flops()


def test_training_and_encoding():
    model, ids = Transformer(CONFIG), torch.randint(3, 61, (1, LENGTH))
    flops = describe(CONFIG, LENGTH).flops
    assert counted(lambda: model.start(ids)) == flops.encoding_per_token * LENGTH
    # the gradient with respect to the embeddings' ids does not exist, so backward is exactly twice forward
    assert counted(lambda: model(ids, ids).sum().backward()) == flops.training_per_token * LENGTH


def test_decoding():
    model, ids = Transformer(CONFIG), torch.randint(3, 61, (1, LENGTH))

    def decode() -> None:
        state = model.start(ids)
        for t in range(LENGTH):
            _, state = model.step(ids[:, t], state)

    flops = describe(CONFIG, LENGTH).flops  # an odd length, so the mean prefix is a whole number
    assert counted(decode) == (flops.encoding_per_token + flops.decoding_per_token) * LENGTH


@pytest.mark.parametrize("share", ["three-way", "two-way", "none"])
def test_parameters_by_part(share):
    model = Transformer(CONFIG.model_copy(update={"share_embeddings": share, "output_bias": True, "norm": "pre"}))
    count = describe(model.config).parameters
    assert count.encoder == sum(p.numel() for p in model.encoder.parameters())
    assert count.decoder == sum(p.numel() for p in model.decoder.parameters())
    assert count.output == sum(p.numel() for p in model.output.parameters())
    assert count.total == sum(p.numel() for p in model.parameters())
    assert count.total == count.embeddings + count.encoder + count.decoder + count.output
