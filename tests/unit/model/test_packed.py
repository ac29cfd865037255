"""Packed or not, start and step are the model's own."""

import pytest
import torch

from headwise.model.packed import Packed, packs

NOISE = 2e-5
VARIANTS = [
    {},
    {"norm": "pre", "activation": "gelu"},
    {"positions": "learned", "d_v": 6, "output_bias": True},
    {"share_embeddings": "none", "scale_embeddings": False, "positions": "none"},
    {"attention": {"decoder": "fused", "cross": "reference"}},
]


@pytest.mark.parametrize("alone", [False, True])
@pytest.mark.parametrize("variant", VARIANTS)
@torch.inference_mode()
def test_it_says_what_the_model_says(variant, alone, make_model, batch):
    """Sentences of unequal lengths; each fans out to three, rows change places, one sentence leaves."""
    model, (src, _) = make_model(**variant), batch
    step = Packed(model).step
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


@pytest.mark.parametrize("variant", VARIANTS)
@torch.inference_mode()
def test_it_starts_as_the_model_does(variant, make_model, batch):
    """One sentence by itself, and several, which it leaves to the model."""
    model, (src, _) = make_model(**variant), batch
    for some in (src[:1, :4], src):
        found, wanted = Packed(model).start(some, alone=True), model.start(some)
        for ours, expected in zip(found, wanted, strict=True):
            if ours is found.k or ours is found.v:  # room that nothing was written to yet
                assert ours.shape == expected.shape
            else:
                torch.testing.assert_close(ours, expected, rtol=0, atol=NOISE)


def test_it_does_not_take_what_it_cannot_do(make_model):
    assert packs(make_model())
    assert not packs(make_model(positions="rotary"))
