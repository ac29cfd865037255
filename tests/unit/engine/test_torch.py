"""The engine finds what search finds sentence by sentence, whatever stands beside it."""

import pytest
import torch

from headwise.config import SearchConfig, load_config
from headwise.engine import torch as module
from headwise.engine.torch import TorchEngine
from headwise.model.transformer import Transformer

SIZES = ["vocab_size=31", "d_model=16", "d_ff=19", "n_heads=2", "n_encoder_layers=2", "n_decoder_layers=1"]


@pytest.mark.parametrize("beam_size", [1, 3])
def test_together_or_alone(beam_size, monkeypatch):
    monkeypatch.setattr(module, "BATCH_TOKENS", 40)
    torch.manual_seed(5)
    engine = TorchEngine(Transformer(load_config("tiny", overrides=[f"model.{size}" for size in SIZES]).model))
    sources = [[7, 9, 2], [5, 2], [4] * 30 + [2], [8, 8, 8, 2], [2], [6, 2]]
    search = SearchConfig(beam_size=beam_size, extra_pieces=5)
    together = engine.generate(sources, search)
    for source, found in zip(sources, together, strict=True):
        [alone] = engine.generate([source], search)
        assert [h.ids for h in alone] == [h.ids for h in found]
        assert all(len(h.ids) <= len(source) + 5 for h in found)
    assert engine.generate([], search) == []
