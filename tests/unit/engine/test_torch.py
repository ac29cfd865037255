"""The engine finds what search finds sentence by sentence, whatever stands beside it."""

import pytest
import torch

from headwise.config import SearchConfig, load_config
from headwise.engine import torch as module
from headwise.engine.contract import in_order
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
    together = in_order(engine.generate(sources, search))
    for source, found in zip(sources, together, strict=True):
        [alone] = in_order(engine.generate([source], search))
        assert [h.ids for h in alone] == [h.ids for h in found]
        assert all(len(h.ids) <= len(source) + 5 for h in found)
    assert in_order(engine.generate([], search)) == []


SOURCES = [[7, 9, 2], [5, 2], [4] * 30 + [2], [8, 8, 8, 2], [2], [6, 2]]


@pytest.fixture
def engine(monkeypatch):
    monkeypatch.setattr(module, "BATCH_TOKENS", 40)
    torch.manual_seed(5)
    return TorchEngine(Transformer(load_config("tiny", overrides=[f"model.{size}" for size in SIZES]).model))


def test_scores_of_pieces_add_up_to_what_search_says(engine):
    found = [
        hypotheses[0] for hypotheses in in_order(engine.generate(SOURCES, SearchConfig(beam_size=3, extra_pieces=5)))
    ]
    targets = [[*h.ids, 2] if h.complete else list(h.ids) for h in found]
    for h, target, scores in zip(found, targets, engine.score(SOURCES, targets), strict=True):
        assert len(scores) == len(target)
        assert sum(scores) == pytest.approx(h.log_prob, rel=1e-4)


def test_attention_is_a_share_for_each_source_piece(engine):
    targets = [[9, 9, 2], [2], [5, 2], [6] * 7, [7, 2], [3]]
    for source, target, weights in zip(SOURCES, targets, engine.attention(SOURCES, targets), strict=True):
        assert weights.shape == (len(target), len(source))
        assert weights.sum(axis=1) == pytest.approx(1.0, rel=1e-5)


def test_sampling_goes_by_numbers(engine):
    search = SearchConfig(temperature=1.5, extra_pieces=5)
    together = in_order(engine.generate(SOURCES, search, numbers=[3, 1, 4, 1, 5, 9]))
    for source, number, found in zip(SOURCES, [3, 1, 4, 1, 5, 9], together, strict=True):
        assert in_order(engine.generate([source], search, numbers=[number]))[0][0].ids == found[0].ids
    assert together != in_order(engine.generate(SOURCES, search, numbers=[2, 7, 1, 8, 2, 8]))


def test_prefixes_are_begun_with(engine):
    prefixes = [[5, 6], [], [7], [8, 8, 8], [9], []]
    for beam_size in (1, 3):
        found = in_order(engine.generate(SOURCES, SearchConfig(beam_size=beam_size, extra_pieces=5), prefixes))
        for prefix, hypotheses in zip(prefixes, found, strict=True):
            assert all(h.ids[: len(prefix)] == tuple(prefix) for h in hypotheses)


def test_it_follows_the_weights(engine):
    """What was packed before the model learned something is not used after it."""
    search = SearchConfig(extra_pieces=5)
    in_order(engine.generate(SOURCES, search))
    with torch.no_grad():
        for parameter in engine.model.parameters():
            parameter.mul_(-1.5)
    assert in_order(engine.generate(SOURCES, search)) == in_order(TorchEngine(engine.model).generate(SOURCES, search))


def test_threads_are_as_before(engine):
    before = torch.get_num_threads()
    in_order(engine.generate(SOURCES, SearchConfig(extra_pieces=5)))
    assert torch.get_num_threads() == before
