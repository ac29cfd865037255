"""The best of many are those that looking at each would find."""

import pytest
import torch

from headwise.search.top import DEPTH, NARROW, top


@pytest.mark.parametrize("n", [1, 2, 8, 127, 131])
@pytest.mark.parametrize("n_pieces", [7, DEPTH * NARROW - 1, DEPTH * NARROW, DEPTH * NARROW + 5, 2003])
def test_the_best_and_which_they_are(n, n_pieces):
    torch.manual_seed(17)
    log_probs = torch.randperm(11 * n_pieces).view(11, n_pieces).float()  # no two alike
    best, pieces = top(log_probs, n)
    expected = log_probs.sort(dim=1, descending=True)
    assert torch.equal(best, expected.values[:, :n])
    assert torch.equal(pieces, expected.indices[:, :n])


def test_wherever_it_stands():
    """The only likely piece, at each place in turn; the others are impossible."""
    log_probs = torch.full((1031, 1031), -torch.inf)
    log_probs.fill_diagonal_(-0.5)
    best, pieces = top(log_probs, 3)
    assert torch.equal(pieces[:, 0], torch.arange(1031))
    assert best[:, 0].eq(-0.5).all()
    assert best[:, 1:].isinf().all()
    assert all(len(set(row)) == 3 for row in pieces.tolist())
