"""Sampling: each next piece is drawn, by numbers that belong to the sentence and not to its company."""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from headwise.config import SearchConfig
from headwise.search.greedy import Choose


def drawn(search: SearchConfig, numbers: Sequence[int], n_steps: int, device: str | torch.device) -> Choose:
    """A chooser for sentences of these numbers; each has a generator of its own, seeded by (search.seed, number)."""
    random = [np.random.default_rng([search.seed, number]).random(n_steps) for number in numbers]
    fractions = torch.from_numpy(np.array(random).reshape(len(numbers), n_steps)).to(device)  # (B, T)
    return lambda log_probs, t, sentences: choose(log_probs, fractions[sentences, t], search)


def choose(log_probs: Tensor, fractions: Tensor, search: SearchConfig) -> Tensor:
    """The piece of each row at which that fraction of the probability is reached, likelier ones first.

    log_probs `(R, V)`, fractions `(R,)` in [0, 1) -> `(R,)`. What top_k and top_p leave out has no share.
    """
    logits, pieces = (log_probs.double() / (search.temperature or 1.0)).sort(dim=-1, descending=True, stable=True)
    if search.top_k:
        logits, pieces = logits[:, : search.top_k], pieces[:, : search.top_k]
    probs = logits.softmax(dim=-1)
    before = probs.cumsum(dim=-1) - probs
    probs = probs.masked_fill(before >= search.top_p, 0.0)  # the first one stays: nothing is before it
    reached = probs.cumsum(dim=-1)
    n_left = (probs > 0).sum(dim=-1, keepdim=True)
    place = torch.searchsorted(reached, (fractions * reached[:, -1])[:, None], right=True)
    return pieces.gather(1, place.minimum(n_left - 1))[:, 0]
