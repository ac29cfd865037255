"""Feed-forward, residual and norm in closed form."""

import math

import pytest
import torch

from headwise.config import ModelConfig
from headwise.model.layers import FeedForward, Residual

CONFIG = ModelConfig(vocab_size=17, d_model=2, d_ff=3, n_heads=1, n_encoder_layers=1, n_decoder_layers=1)


@pytest.mark.parametrize(
    ("activation", "at_2", "at_minus_1"),
    [
        ("relu", 2.0, 0.0),
        ("gelu", 2 * 0.5 * (1 + math.erf(2 / math.sqrt(2))), -0.5 * (1 + math.erf(-1 / math.sqrt(2)))),
        ("silu", 2 / (1 + math.exp(-2)), -1 / (1 + math.e)),
    ],
)
def test_feed_forward_by_hand(activation, at_2, at_minus_1):
    """x = (1, 1); x W_1 + b_1 = (2, -1, 0); W_2 takes 10 of the first, 100 of the second."""
    feed_forward = FeedForward(CONFIG.model_copy(update={"activation": activation}))
    with torch.no_grad():
        feed_forward.w_1.weight.copy_(torch.tensor([[1.0, 1.0], [0.0, -2.0], [0.0, 0.0]]))
        feed_forward.w_1.bias.copy_(torch.tensor([0.0, 1.0, 0.0]))
        feed_forward.w_2.weight.copy_(torch.tensor([[10.0, 0.0, 0.0], [0.0, 100.0, 7.0]]))
        feed_forward.w_2.bias.copy_(torch.tensor([0.5, 0.25]))
    out = feed_forward(torch.ones(1, 2))
    assert out.flatten().tolist() == pytest.approx([10 * at_2 + 0.5, 100 * at_minus_1 + 0.25], rel=1e-5)


def test_post_norm_norms_the_sum():
    """x + Sublayer(x) = (1, 3) has mean 2 and deviation 1, so its norm is (-1, 1)."""
    residual = Residual(CONFIG).eval()
    out = residual(torch.tensor([[0.0, 1.0]]), lambda x: x + torch.tensor([1.0, 1.0]))
    assert out.flatten().tolist() == pytest.approx([-1, 1], abs=1e-4)


def test_pre_norm_norms_the_input():
    """LayerNorm((1, 3)) = (-1, 1); ten times that is added to the untouched input."""
    residual = Residual(CONFIG.model_copy(update={"norm": "pre"})).eval()
    out = residual(torch.tensor([[1.0, 3.0]]), lambda x: 10 * x)
    assert out.flatten().tolist() == pytest.approx([-9, 13], abs=1e-3)


def test_dropout_falls_on_the_sublayer_not_on_the_residual():
    torch.manual_seed(5)
    config = CONFIG.model_copy(update={"norm": "pre", "dropout": 0.5, "d_model": 1000})
    added = Residual(config)(torch.zeros(1, 1000), torch.ones_like)
    assert set(added.flatten().tolist()) == {0.0, 2.0}
    assert Residual(config)(torch.full((1, 1000), 3.0), torch.zeros_like).eq(3).all()


def test_dropout_inside_the_feed_forward_is_its_own_setting():
    torch.manual_seed(5)
    x = torch.ones(4, 2)
    wide = CONFIG.model_copy(update={"d_ff": 501, "dropout": 0.5})
    plain, dropped = FeedForward(wide)(x), FeedForward(wide.model_copy(update={"ff_dropout": 0.5}))(x)
    assert plain.var(dim=0).max() < 1e-12
    assert dropped.var(dim=0).min() > 1e-6
