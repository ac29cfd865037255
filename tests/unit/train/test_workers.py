"""Threads that share a batch learn what one would, and the same again and again."""

import numpy as np
import pytest
import torch

from headwise.config import RunConfig, load_config
from headwise.data.batches import START, Batch, Position
from headwise.errors import InputError
from headwise.model.transformer import Transformer
from headwise.train.loop import learn, make_optimizer
from headwise.train.loss import Loss
from headwise.train.workers import Workers, how_many

SIZES = ["vocab_size=31", "d_model=16", "d_ff=19", "n_heads=2", "n_encoder_layers=2", "n_decoder_layers=1"]


def config(*changes: str) -> RunConfig:
    return load_config("tiny", overrides=[*(f"model.{size}" for size in SIZES), "train.warmup_steps=3", *changes])


def batches() -> list[Batch]:
    """Of one to six pairs, so that some shares are empty."""
    random = np.random.default_rng(5)
    found = []
    for i in range(12):
        n = i % 6 + 1
        src, tgt_out = random.integers(3, 31, (n, 6)), random.integers(3, 31, (n, 5))
        tgt_out[0, 3:] = 0
        tgt_in = np.concatenate([np.ones((n, 1), np.int64), tgt_out[:, :-1]], axis=1)
        found.append(Batch(src, tgt_in, tgt_out, np.arange(n), Position(0, i)))
    return found


def learned(settings: RunConfig, n_workers: int) -> tuple[list[float], list[torch.Tensor]]:
    torch.manual_seed(6)
    model = Transformer(settings.model)
    updates = learn(model, make_optimizer(model, settings.train), iter(batches()), settings.train, n_workers=n_workers)
    return [update.loss for update in updates], [p.detach() for p in model.parameters()]


@pytest.mark.parametrize("changes", [[], ["train.accumulate=3"], ["train.r_drop=2"]])
def test_several_learn_what_one_learns(changes):
    settings = config("model.dropout=0.0", *changes)
    one, three = learned(settings, 1)[0], learned(settings, 3)[0]
    assert three == pytest.approx(one, rel=1e-5)
    assert len(one) == 12 // settings.train.accumulate


@pytest.mark.parametrize("changes", [[], ["model.attention.encoder=fused"]])
def test_the_same_to_the_bit_with_dropout(changes):
    """Whichever thread is faster."""
    settings = config("model.dropout=0.3", "model.attention_dropout=0.2", *changes)
    runs = [learned(settings, 2) for _ in range(3)]
    assert runs[0][0] == runs[1][0] == runs[2][0]
    for weights in zip(*(run[1] for run in runs), strict=True):
        assert torch.equal(weights[0], weights[1])
        assert torch.equal(weights[0], weights[2])


def test_shares_and_batches_of_an_update_have_dropouts_of_their_own():
    settings = config("model.dropout=0.5")
    model = Transformer(settings.model)
    workers = Workers(list(model.parameters()), 2)
    twice = batches()[1]  # two pairs
    twice = Batch(*(np.repeat(x[:1], 2, axis=0) for x in (twice.src, twice.tgt_in, twice.tgt_out)), twice.pairs, START)
    seen = {}

    def loss_of(batch: Batch) -> Loss:
        logits = model(torch.from_numpy(batch.src), torch.from_numpy(batch.tgt_in))
        seen[len(seen)] = logits.sum().item()
        return Loss(logits.sum(), logits.sum().detach())

    for seed in (1, 3, 1):
        workers.backward(loss_of, twice, 1, seed)
    first, second, again = (sorted([seen[i], seen[i + 1]]) for i in (0, 2, 4))
    assert len({*first, *second}) == 4
    assert again == first


def test_threads_are_as_before_also_after_an_error():
    settings = config()
    model = Transformer(settings.model)
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(2)
        workers = Workers(list(model.parameters()), 2)

        def fails(batch: Batch) -> Loss:
            assert torch.get_num_threads() == 1
            raise InputError("no")

        with pytest.raises(InputError):
            workers.backward(fails, batches()[3], 1, 1)
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


def test_how_many():
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(2)
        assert how_many(torch.device("cpu"), 1, False) == 2
        assert how_many(torch.device("cpu"), 1, True) == 1
        assert how_many(torch.device("cpu"), 2, False) == 1
        assert how_many(torch.device("cuda"), 1, False) == 1
        torch.set_num_threads(1)
        assert how_many(torch.device("cpu"), 1, False) == 1
    finally:
        torch.set_num_threads(before)
