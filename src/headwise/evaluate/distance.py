"""Edit distance."""

from collections.abc import Sequence

import numpy as np


def distance(a: Sequence[str], b: Sequence[str]) -> int:
    """The fewest units to change, add or take away that make b of a (Levenshtein)."""
    numbers = {unit: i for i, unit in enumerate(dict.fromkeys([*a, *b]))}
    other, places = np.array([numbers[unit] for unit in b], np.int64), np.arange(len(b) + 1)
    row = places
    for i, unit in enumerate(a, start=1):
        best = np.minimum(row[1:] + 1, row[:-1] + (other != numbers[unit]))  # take away, or keep or change
        row = np.minimum.accumulate(np.concatenate(([i], best)) - places) + places  # or add any number after that
    return int(row[-1])
