"""The joined loss is torch's cross entropy of the projected logits, value and gradients."""

import math

import pytest
import torch
from torch.nn import functional as F

from headwise.train import loss as module
from headwise.train.loss import smoothed_cross_entropy


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.3])
@pytest.mark.parametrize("with_bias", [True, False])
def test_against_torch(smoothing, with_bias, monkeypatch):
    """Over several chunks, the last one short."""
    monkeypatch.setattr(module, "CHUNK", 7)
    torch.manual_seed(2)
    hidden = torch.randn(23, 11, requires_grad=True)
    weight = torch.randn(37, 11, requires_grad=True)
    bias = torch.randn(37, requires_grad=True) if with_bias else None
    target = torch.randint(0, 37, (23,))
    inputs = [x for x in (hidden, weight, bias) if x is not None]

    ours = smoothed_cross_entropy(hidden, weight, bias, target, smoothing)
    logits = F.linear(hidden, weight, bias)
    theirs = F.cross_entropy(logits, target, label_smoothing=smoothing, reduction="sum")
    assert ours.smoothed.item() == pytest.approx(theirs.item(), rel=1e-6)
    assert ours.nll.item() == pytest.approx(F.cross_entropy(logits, target, reduction="sum").item(), rel=1e-6)
    assert not ours.nll.requires_grad
    for mine, other in zip(
        torch.autograd.grad(ours.smoothed / 5, inputs), torch.autograd.grad(theirs / 5, inputs), strict=True
    ):
        torch.testing.assert_close(mine, other, rtol=1e-4, atol=1e-5)


def test_by_hand():
    """Two pieces, logits 0 and ln 3: probabilities 1/4 and 3/4."""
    hidden, weight = torch.tensor([[1.0]]), torch.tensor([[0.0], [math.log(3)]])
    loss = smoothed_cross_entropy(hidden, weight, None, torch.tensor([1]), 0.2)
    assert loss.nll.item() == pytest.approx(math.log(4 / 3))
    assert loss.smoothed.item() == pytest.approx(0.9 * math.log(4 / 3) + 0.1 * math.log(4))


def test_no_gradient_is_made_where_none_is_asked_for():
    hidden, weight = torch.randn(3, 2), torch.randn(5, 2, requires_grad=True)
    with torch.no_grad():
        loss = smoothed_cross_entropy(hidden, weight, None, torch.tensor([0, 1, 2]), 0.1)
    assert not loss.smoothed.requires_grad
    assert smoothed_cross_entropy(hidden, weight, None, torch.tensor([0, 1, 2]), 0.1).smoothed.requires_grad


def test_in_bfloat16_it_is_near():
    torch.manual_seed(3)
    hidden, weight = torch.randn(50, 32, requires_grad=True), (torch.randn(100, 32) / 32**0.5).requires_grad_()
    target = torch.randint(0, 100, (50,))
    exact = smoothed_cross_entropy(hidden, weight, None, target, 0.1)
    with torch.autocast("cpu", torch.bfloat16):
        near = smoothed_cross_entropy(hidden, weight, None, target, 0.1)
    assert near.smoothed.item() == pytest.approx(exact.smoothed.item(), rel=0.01)
    [g1], [g2] = torch.autograd.grad(exact.smoothed, [hidden]), torch.autograd.grad(near.smoothed, [hidden])
    assert g2.dtype == torch.float32
    assert (g1 - g2).norm() / g1.norm() < 0.02
