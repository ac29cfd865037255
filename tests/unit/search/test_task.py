"""What every search has in common."""

import torch

from headwise.search.task import staying


def test_who_goes_on_stays_in_place_where_there_is_one():
    """Only as many move as have left a place before the end of what remains."""
    torch.manual_seed(1)
    for over in torch.rand(50, 9) < torch.rand(50, 1):
        places = staying(over)
        assert sorted(places.tolist()) == (~over).nonzero().flatten().tolist()
        moved = places != torch.arange(len(places))
        assert moved.tolist() == over[: len(places)].tolist()
