"""R-Drop is what torch gives when it is written out, value and gradients."""

import pytest
import torch
from torch.nn import functional as F

from headwise.train import loss
from headwise.train.r_drop import r_drop


@pytest.mark.parametrize("with_bias", [True, False])
def test_against_torch(with_bias, monkeypatch):
    """Over several chunks, the last one short."""
    monkeypatch.setattr(loss, "CHUNK", 7)
    torch.manual_seed(2)
    one, two = torch.randn(23, 11, requires_grad=True), torch.randn(23, 11, requires_grad=True)
    weight = torch.randn(37, 11, requires_grad=True)
    bias = torch.randn(37, requires_grad=True) if with_bias else None
    target = torch.randint(0, 37, (23,))
    inputs = [x for x in (one, two, weight, bias) if x is not None]

    ours = r_drop(one, two, weight, bias, target, smoothing=0.1, alpha=5.0)
    a, b = F.linear(one, weight, bias), F.linear(two, weight, bias)
    entropies = [F.cross_entropy(x, target, label_smoothing=0.1, reduction="sum") for x in (a, b)]
    p, q = a.log_softmax(-1), b.log_softmax(-1)
    apart = F.kl_div(p, q, log_target=True, reduction="sum") + F.kl_div(q, p, log_target=True, reduction="sum")
    theirs = (sum(entropies) + 5.0 * apart / 2) / 2
    assert ours.smoothed.item() == pytest.approx(theirs.item(), rel=1e-5)
    plain = (F.cross_entropy(a, target, reduction="sum") + F.cross_entropy(b, target, reduction="sum")) / 2
    assert ours.nll.item() == pytest.approx(plain.item(), rel=1e-5)
    grads = torch.autograd.grad(ours.smoothed / 5, inputs), torch.autograd.grad(theirs / 5, inputs)
    for mine, other in zip(*grads, strict=True):
        torch.testing.assert_close(mine, other, rtol=1e-4, atol=1e-4)
