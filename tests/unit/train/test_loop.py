"""One update is what the paper says it is; what is not finite never reaches the weights; a run can be cut anywhere."""

import copy
import itertools

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from headwise.config import RunConfig, load_config
from headwise.data.batches import Batch, Position
from headwise.model.transformer import Transformer
from headwise.train.loop import Teacher, learn, make_optimizer, tensors
from headwise.train.schedule import learning_rate

SIZES = ["vocab_size=31", "d_model=16", "d_ff=19", "n_heads=2", "n_encoder_layers=2", "n_decoder_layers=1"]


def config(*changes: str) -> RunConfig:
    return load_config("tiny", overrides=[*(f"model.{size}" for size in SIZES), "train.warmup_steps=3", *changes])


def batches(seed: int = 4) -> list[Batch]:
    random = np.random.default_rng(seed)
    found = []
    for i in range(12):
        src, tgt_out = random.integers(3, 31, (4, 6)), random.integers(3, 31, (4, 5))
        tgt_out[1, 3:], src[2, 4:] = 0, 0
        tgt_in = np.concatenate([np.ones((4, 1), np.int64), tgt_out[:, :-1]], axis=1)
        found.append(Batch(src, tgt_in, tgt_out, np.arange(4), Position(0, i)))
    return found


def fresh(settings: RunConfig) -> tuple[Transformer, torch.optim.Adam]:
    torch.manual_seed(6)
    model = Transformer(settings.model)
    return model, make_optimizer(model, settings.train)


@pytest.mark.parametrize("share", ["three-way", "none"])
def test_the_loss_is_the_mean_over_real_pieces(share):
    settings = config(f"model.share_embeddings={share}", "model.output_bias=true")
    model, _ = fresh(settings)
    model.eval()
    batch = batches()[0]
    smoothed, _ = Teacher(model, settings.train)(*tensors(batch, torch.device("cpu")))
    logits = model(torch.from_numpy(batch.src), torch.from_numpy(batch.tgt_in))
    expected = F.cross_entropy(
        logits.flatten(0, 1), torch.from_numpy(batch.tgt_out).flatten(), ignore_index=0, label_smoothing=0.1
    )
    assert batch.n_tokens == 18
    assert smoothed.item() / 18 == pytest.approx(expected.item(), rel=1e-5)


def test_an_update_is_adam_on_the_mean_gradient():
    settings = config("model.dropout=0.0")
    model, optimizer = fresh(settings)
    twin = copy.deepcopy(model)
    adam = torch.optim.Adam(twin.parameters(), betas=(0.9, 0.98), eps=1e-9)
    for update, batch in zip(learn(model, optimizer, iter(batches()), settings.train), batches(), strict=True):
        adam.param_groups[0]["lr"] = learning_rate(update.step, settings.train, 16)
        logits = twin(torch.from_numpy(batch.src), torch.from_numpy(batch.tgt_in))
        loss = F.cross_entropy(
            logits.flatten(0, 1), torch.from_numpy(batch.tgt_out).flatten(), ignore_index=0, label_smoothing=0.1
        )
        adam.zero_grad()
        loss.backward()
        adam.step()
        assert update.loss == pytest.approx(loss.item(), rel=1e-4)
        assert update.lr == adam.param_groups[0]["lr"]
        assert (update.n_tokens, update.skipped) == (18, False)
    assert update.step == 12


@pytest.mark.parametrize("poison", ["weight", "gradient"])
def test_what_is_not_finite_never_reaches_the_weights(poison):
    settings = config()
    model, optimizer = fresh(settings)
    run = learn(model, optimizer, iter(batches()), settings.train)
    next(run)
    if poison == "weight":
        sound = model.encoder.layers[0].feed_forward.w_1.bias[0].item()
        model.encoder.layers[0].feed_forward.w_1.bias.data[0] = float("inf")
    else:
        handle = model.encoder.layers[0].feed_forward.w_1.bias.register_hook(lambda grad: grad * float("nan"))
    before = {name: p.detach().clone() for name, p in model.named_parameters()}
    moments = copy.deepcopy(optimizer.state_dict()["state"])
    update = next(run)
    assert update.skipped
    assert all(torch.equal(p, before[name]) for name, p in model.named_parameters())
    for i, state in optimizer.state_dict()["state"].items():
        assert all(torch.equal(value, moments[i][key]) for key, value in state.items())
    if poison == "weight":
        model.encoder.layers[0].feed_forward.w_1.bias.data[0] = sound
    else:
        handle.remove()
    assert not next(run).skipped


def test_long_gradients_are_clipped():
    settings = config("train.clip_norm=0.01", "train.adam_beta1=0.0")
    model, optimizer = fresh(settings)
    update = next(learn(model, optimizer, iter(batches()), settings.train))
    assert update.grad_norm > 0.1
    first_moments = [state["exp_avg"] for state in optimizer.state_dict()["state"].values()]
    assert torch.cat([m.flatten() for m in first_moments]).norm().item() == pytest.approx(0.01, rel=1e-3)


@pytest.mark.parametrize("cut", [1, 5, 11])
def test_cut_and_continued_it_is_the_unbroken_run_to_the_bit(cut):
    """With dropout: what continues is the weights, Adam's moments, torch's random state, the step and the position."""
    settings = config("model.dropout=0.3")
    model, optimizer = fresh(settings)
    unbroken = list(learn(model, optimizer, iter(batches()), settings.train))

    other, its_optimizer = fresh(settings)
    list(itertools.islice(learn(other, its_optimizer, iter(batches()), settings.train), cut))
    saved = copy.deepcopy((other.state_dict(), its_optimizer.state_dict(), torch.get_rng_state()))
    torch.manual_seed(99)
    resumed = Transformer(settings.model)
    resumed.load_state_dict(saved[0])
    new_optimizer = make_optimizer(resumed, settings.train)
    new_optimizer.load_state_dict(saved[1])
    torch.set_rng_state(saved[2])
    rest = list(learn(resumed, new_optimizer, iter(batches()[cut:]), settings.train, step=cut))
    assert rest == unbroken[cut:]
    assert all(torch.equal(a, b) for a, b in zip(resumed.parameters(), model.parameters(), strict=True))
