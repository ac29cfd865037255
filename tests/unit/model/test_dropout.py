"""Dropout: the right share, the right scale, the same mask on the way back."""

from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

from headwise.model.dropout import Dropout, dropout, seed_dropout


@pytest.mark.parametrize("p", [0.1, 0.3, 0.5, 0.9])
def test_share_and_scale(p):
    torch.manual_seed(1)
    rounded = round(p * 256) / 256
    x = torch.ones(1001, 1003)  # not a multiple of eight
    y = dropout(x, p)
    assert y.eq(0).float().mean().item() == pytest.approx(rounded, abs=0.002)
    assert y[y != 0].unique().tolist() == pytest.approx([1 / (1 - rounded)])
    assert y.mean().item() == pytest.approx(1, abs=0.01 / (1 - p))
    for part in (y[0], y[-1], y[:, 0], y[:, 7]):  # no place is favoured
        assert part.eq(0).float().mean().item() == pytest.approx(rounded, abs=0.07)


def test_gradient_has_the_mask_of_the_forward_pass():
    x = torch.randn(50, 70, requires_grad=True)
    y = dropout(x, 0.3)
    y.backward(torch.ones_like(y))
    assert torch.equal(x.grad.eq(0), y.eq(0))
    assert torch.allclose(y, x * x.grad)


def test_repeatable_by_seed_and_only_in_training():
    module, x = Dropout(0.4), torch.randn(40, 5)
    torch.manual_seed(7)
    first = module(x)
    torch.manual_seed(7)
    assert torch.equal(module(x), first)
    assert not torch.equal(module(x), first)
    assert module.eval()(x) is x
    assert dropout(x, 0.0) is x


def test_a_thread_can_have_draws_of_its_own():
    """Another thread's draws do not depend on what this one has drawn."""
    x = torch.ones(40, 5)

    def draw(seed: int) -> torch.Tensor:
        seed_dropout(seed)
        return dropout(x, 0.4)

    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(draw, 3).result()
        torch.manual_seed(3)
        dropout(x, 0.4)
        assert torch.equal(pool.submit(draw, 3).result(), first)
        assert not torch.equal(pool.submit(draw, 4).result(), first)
    torch.manual_seed(7)
    mine = dropout(x, 0.4)
    torch.manual_seed(7)
    assert torch.equal(dropout(x, 0.4), mine)  # here torch's own still decides
