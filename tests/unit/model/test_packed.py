"""Packed or not, start and step are the model's own."""

import time

import numpy as np
import pytest
import torch

from headwise.model import packed
from headwise.model.packed import BLOCK_BYTES, FEW_ROWS, Block, Packed, _by_numpy, _by_panels, few_rows, packs

NOISE = 2e-5
NONE, SEVERAL, ALL = range(0), range(2, FEW_ROWS + 1), range(1, FEW_ROWS + 1)
VARIANTS = [
    {},
    {"norm": "pre", "activation": "gelu"},
    {"positions": "learned", "d_v": 6, "output_bias": True},
    {"share_embeddings": "none", "scale_embeddings": False, "positions": "none"},
    {"attention": {"decoder": "fused", "cross": "reference"}},
]


@pytest.mark.parametrize(("alone", "panels"), [(False, ALL), (True, NONE), (True, SEVERAL), (True, ALL)])
@pytest.mark.parametrize("variant", VARIANTS)
@torch.inference_mode()
def test_it_says_what_the_model_says(variant, alone, panels, make_model, batch):
    """Sentences of unequal lengths; each fans out to three, rows change places, one sentence leaves."""
    model, (src, _) = make_model(**variant), batch
    step = Packed(model, panels=panels).step
    plan = [
        torch.arange(5)[:, None].expand(5, 3),
        torch.tensor([[2, 0, 0], [3, 4, 5], [11, 11, 11], [13, 12, 14]]),
        torch.arange(12).view(4, 3),
    ]
    torch.manual_seed(6)
    ours, expected = model.start(src), model.start(src)
    n_rows = 5
    for rows in plan:
        last = torch.randint(3, 31, (n_rows,))
        found, ours = step(last, ours, alone)
        wanted, expected = model.step(last, expected)
        torch.testing.assert_close(found, wanted, rtol=0, atol=NOISE)
        ours, expected, n_rows = ours.reorder(rows), expected.reorder(rows), rows.numel()


@pytest.mark.parametrize("panels", [NONE, SEVERAL, ALL])
@pytest.mark.parametrize("variant", VARIANTS)
@torch.inference_mode()
def test_it_starts_as_the_model_does(variant, panels, make_model, batch):
    """One sentence by itself, and several, which it leaves to the model."""
    model, (src, _) = make_model(**variant), batch
    for some in (src[:1, :4], src):
        found, wanted = Packed(model, panels=panels).start(some, alone=True), model.start(some)
        for ours, expected in zip(found, wanted, strict=True):
            if ours is found.k or ours is found.v:  # room that nothing was written to yet
                assert ours.shape == expected.shape
            else:
                torch.testing.assert_close(ours, expected, rtol=0, atol=NOISE)


@pytest.mark.parametrize("n_rows", [1, 2, 16, 17])
@pytest.mark.parametrize("d_out", [64, 131])
@torch.inference_mode()
def test_a_product_is_the_same_in_panels(n_rows, d_out):
    """One row, which is multiplied twice, few, and too many; columns that fill their panels and that do not."""
    torch.manual_seed(3)
    x, weight, bias = torch.randn(n_rows, 29), torch.randn(d_out, 29), torch.randn(d_out)
    for added in (bias, None):
        found = _by_panels(x, Block(panels=True).matrix(weight, added), ALL)
        torch.testing.assert_close(found, torch.nn.functional.linear(x, weight, added))
        assert found.is_contiguous()


def test_how_many_rows_go_panel_by_panel_is_measured(monkeypatch):
    """Where panels cost as much as they gain nothing is laid out in them."""
    assert few_rows() in (NONE, SEVERAL, ALL)
    for slow, expected in ((_by_panels, NONE), (_by_numpy, ALL)):

        def slower(*given, slow=slow, **named):
            time.sleep(0.001)
            return slow(*given, **named)

        with monkeypatch.context() as patched:
            patched.setattr(packed, slow.__name__, slower)
            assert packed.few_rows.__wrapped__() == expected


def test_a_block_takes_what_is_larger_than_itself():
    block = Block(panels=False)
    arrays = [np.full((3, n), n, dtype=np.float32) for n in (5, BLOCK_BYTES // 4, 7)]
    for placed, array in zip([block.put(array) for array in arrays], arrays, strict=True):
        np.testing.assert_array_equal(placed, array)


def test_it_does_not_take_what_it_cannot_do(make_model):
    assert packs(make_model())
    assert not packs(make_model(positions="rotary"))
