"""Every way of attending is held to the contract; adding one to the table is enough to be tested here."""

import math
from typing import get_args

import pytest
import torch

from headwise.config import AttendName, ModelConfig
from headwise.model.attend import WAYS, Reference
from headwise.model.attend.auto import CPU_FUSED_FROM_KEYS

B, H, T_Q, T_K, D_K, D_V = 2, 3, 5, 7, 11, 13
CONFIG = ModelConfig(
    vocab_size=17, d_model=6, d_ff=4, n_heads=H, n_encoder_layers=1, n_decoder_layers=1, d_k=D_K, d_v=D_V
)
EXACT = [name for name, way in WAYS.items() if way.exact]


def tensors(T_q: int = T_Q, T_k: int = T_K, dtype: torch.dtype = torch.float32) -> tuple[torch.Tensor, ...]:
    torch.manual_seed(3)
    q, k, v = torch.randn(B, H, T_q, D_K), torch.randn(B, H, T_k, D_K), torch.randn(B, H, T_k, D_V)
    keep = torch.rand(B, 1, T_q, T_k) < 0.6
    keep[..., 0] = True
    return q.to(dtype), k.to(dtype), v.to(dtype), keep


def test_the_table_is_that_of_the_settings():
    assert list(WAYS) == list(get_args(AttendName))


def test_equation_1_by_hand():
    """Two keys whose scores differ by ln 3 share the query's attention 3 to 1."""
    q = torch.tensor([[[[math.sqrt(2) * math.log(3), 0.0]]]])  # d_k = 2
    k = torch.tensor([[[[1.0, 0.0], [0.0, 5.0]]]])
    v = torch.tensor([[[[4.0, 0.0, 8.0], [0.0, 4.0, 8.0]]]])
    mixed, weights = Reference(CONFIG)(q, k, v)
    assert weights.flatten().tolist() == pytest.approx([0.75, 0.25])
    assert mixed.flatten().tolist() == pytest.approx([3.0, 1.0, 8.0])


def test_equation_1_in_loops():
    q, k, v, keep = tensors()
    mixed, weights = Reference(CONFIG)(q, k, v, keep)
    for b, h, i in [(0, 0, 0), (1, 2, 4), (0, 1, 3)]:
        seen = [j for j in range(T_K) if keep[b, 0, i, j]]
        scores = [
            math.exp(sum(x * y for x, y in zip(q[b, h, i].tolist(), k[b, h, j].tolist(), strict=True)) / math.sqrt(D_K))
            for j in seen
        ]
        shares = [s / sum(scores) for s in scores]
        assert weights[b, h, i, seen].tolist() == pytest.approx(shares, rel=1e-5)
        expected = [sum(w * v[b, h, j, c].item() for w, j in zip(shares, seen, strict=True)) for c in range(D_V)]
        assert mixed[b, h, i].tolist() == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("way", EXACT)
@pytest.mark.parametrize("T_k", [T_K, CPU_FUSED_FROM_KEYS + 1])
@pytest.mark.parametrize("masked", [True, False])
def test_exact_ways_equal_reference(way, T_k, masked):
    q, k, v, keep = tensors(T_k=T_k)
    mask = keep if masked else None
    torch.testing.assert_close(
        WAYS[way](CONFIG)(q, k, v, mask)[0], Reference(CONFIG)(q, k, v, mask)[0], rtol=0, atol=2e-6
    )


@pytest.mark.parametrize("way", WAYS)
def test_hidden_keys_change_nothing(way):
    q, k, v, keep = tensors()
    attend = WAYS[way](CONFIG)
    before, _ = attend(q, k, v, keep)
    hidden = ~keep[1, 0, 4]  # for the last query of the second sentence
    k[1, :, hidden], v[1, :, hidden] = 1e4, -1e4
    assert torch.equal(attend(q, k, v, keep)[0][1, :, 4], before[1, :, 4])


@pytest.mark.parametrize("way", [name for name, way in WAYS.items() if way(CONFIG)(*tensors())[1] is not None])
def test_weights_sum_to_one_and_are_exactly_zero_where_hidden(way):
    q, k, v, keep = tensors()
    _, weights = WAYS[way](CONFIG)(q, k, v, keep)
    torch.testing.assert_close(weights.sum(dim=-1), torch.ones(B, H, T_Q))
    assert (weights.masked_select(~keep) == 0).all()
    assert weights.masked_select(~keep).numel() > 50


@pytest.mark.parametrize("way", WAYS)
def test_gradients_are_finite_and_right(way):
    q, k, v, keep = tensors(T_q=3, T_k=5, dtype=torch.float64)
    inputs = [x.requires_grad_() for x in (q, k, v)]
    attend = WAYS[way](CONFIG).double()
    assert torch.autograd.gradcheck(lambda *x: attend(*x, keep)[0], inputs)


@pytest.mark.parametrize("way", WAYS)
def test_dropout_falls_on_the_weights(way):
    """Values of one, weights that sum to one: without dropout all is 1, with it the mean is 1 and the values vary."""
    q, k, v, _ = tensors(T_q=64)
    attend = WAYS[way](CONFIG)
    v = torch.ones_like(v)
    torch.testing.assert_close(attend(q, k, v)[0], torch.ones(B, H, 64, D_V))
    dropped, _ = attend(q, k, v, None, 0.5)
    assert dropped.mean().item() == pytest.approx(1, abs=0.15)
    assert dropped.std().item() > 0.2


def test_auto_takes_the_kernel_for_long_inputs_only():
    auto = WAYS["auto"](CONFIG)
    assert auto(*tensors(T_k=CPU_FUSED_FROM_KEYS - 1)[:3])[1] is not None
    assert auto(*tensors(T_k=CPU_FUSED_FROM_KEYS)[:3])[1] is None
    assert auto(*tensors(T_q=1, T_k=CPU_FUSED_FROM_KEYS)[:3])[1] is not None
