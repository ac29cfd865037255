"""Which word comes from which, by attention."""

from collections.abc import Sequence

import numpy as np

from headwise.engine.contract import Array


def align(attention: Array, source_words: Sequence[int], target_words: Sequence[int]) -> tuple[tuple[int, int], ...]:
    """For each word of the target, the word of the source that its pieces look at most.

    attention `(T_tgt, T_src)`; the others say to which word each piece belongs, -1 for none.
    """
    n_source, n_target = max(source_words, default=-1) + 1, max(target_words, default=-1) + 1
    if not n_source:
        return ()
    total = np.zeros((n_target, n_source))
    for row, j in zip(attention, target_words, strict=True):
        for weight, i in zip(row, source_words, strict=True):
            if i >= 0 and j >= 0:
                total[j, i] += weight
    return tuple((int(total[j].argmax()), j) for j in range(n_target) if total[j].any())
