"""Length penalties by hand."""

import pytest
import torch

from headwise.search.penalty import length_penalty


@pytest.mark.parametrize(
    ("name", "alpha", "n_pieces", "complete", "divisor"),
    [
        ("gnmt", 0.6, 6, True, 2**0.6),  # (5 + 7) / 6
        ("gnmt", 0.6, 7, False, 2**0.6),
        ("gnmt", 0.0, 9, True, 1),
        ("length", 1.0, 7, True, 7),
        ("length", 0.5, 9, False, 3),
        ("length", 1.0, 0, True, 1),
        ("length+eos", 1.0, 7, True, 8),
        ("length+eos", 1.0, 8, False, 8),
        ("length+eos", 0.5, 8, True, 3),
        ("length+eos", 1.0, 0, True, 1),
    ],
)
def test_by_hand(name, alpha, n_pieces, complete, divisor):
    assert length_penalty(name, alpha, torch.tensor(n_pieces), torch.tensor(complete)).item() == pytest.approx(divisor)
