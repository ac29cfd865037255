"""True means "may be attended to", and every query may attend to something."""

import torch

from headwise.model.masks import causal_keep, padding_keep


def test_padding_is_hidden():
    keep = padding_keep(torch.tensor([[5, 6, 0], [7, 0, 0], [0, 8, 9]]), pad_id=0)
    assert keep.shape == (3, 1, 1, 3)
    assert keep[:, 0, 0].tolist() == [[True, True, False], [True, False, False], [False, True, True]]


def test_a_row_of_padding_keeps_its_first_position():
    assert padding_keep(torch.tensor([[4, 4, 4]]), pad_id=4)[0, 0, 0].tolist() == [True, False, False]


def test_ids_are_not_changed():
    ids = torch.zeros(1, 3, dtype=torch.long)
    padding_keep(ids, pad_id=0)
    assert ids.tolist() == [[0, 0, 0]]


def test_the_future_is_hidden():
    keep = causal_keep(3, torch.device("cpu"))
    assert keep.shape == (1, 1, 3, 3)
    assert keep[0, 0].tolist() == [[True, False, False], [True, True, False], [True, True, True]]
