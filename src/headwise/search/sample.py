"""Sampling: each next piece is drawn, from numbers that belong to the sentence and not to its company."""

import numpy as np
import torch
from torch import Tensor

from headwise.config import SearchConfig
from headwise.search.hypothesis import Hypothesis
from headwise.search.penalty import length_penalty
from headwise.search.task import S, Step, Task


def sample(step: Step[S], state: S, task: Task, search: SearchConfig) -> list[Hypothesis]:
    """One hypothesis a sentence; a sentence that has ended leaves the batch.

    The numbers of sentence i come from a generator seeded by (search.seed, task.first + i), so that neither the batch
    nor the order of the others matters.
    """
    limit = torch.tensor(task.max_steps, dtype=torch.long, device=task.device)  # (B,)
    longest = max(task.max_steps, default=0)
    numbers = draws(search.seed, task.first, len(limit), longest).to(task.device)  # (B, T)
    ids = torch.full((len(limit), longest), task.eos_id, device=task.device)
    log_prob = torch.zeros_like(limit, dtype=torch.float64)
    n_pieces = torch.zeros_like(limit)
    going = torch.arange(len(limit), device=task.device)
    last = torch.full_like(going, task.bos_id)

    for t in range(longest):
        log_probs, state = step(last, state)
        last = choose(task.allowed(log_probs, ids[going, :t], going), numbers[going, t], search)
        log_prob[going] += log_probs.gather(1, last[:, None])[:, 0]
        ids[going, t] = last
        ended = last == task.eos_id
        n_pieces[going] += ~ended
        over = ended | (limit[going] == t + 1)
        if over.all():
            break
        if over.any():
            state, going, last = state.reorder((~over).nonzero()), going[~over], last[~over]

    complete = n_pieces < limit
    score = log_prob / length_penalty(search.length_penalty, search.alpha, n_pieces, complete)
    found = zip(ids.tolist(), n_pieces.tolist(), log_prob.tolist(), score.tolist(), complete.tolist(), strict=True)
    return [Hypothesis(tuple(row[:n]), p, s, c) for row, n, p, s, c in found]


def draws(seed: int, first: int, n_sentences: int, n: int) -> Tensor:
    """`n` numbers in [0, 1) for each sentence: `(B, n)`."""
    numbers = np.empty((n_sentences, n))
    for i in range(n_sentences):
        numbers[i] = np.random.default_rng([seed, first + i]).random(n)
    return torch.from_numpy(numbers)


def choose(log_probs: Tensor, numbers: Tensor, search: SearchConfig) -> Tensor:
    """A piece for each row, by its number: log_probs `(R, V)`, numbers `(R,)` -> `(R,)`.

    Likelier pieces come first, so that the same number gives the same piece whatever is cut off behind it.
    """
    assert search.temperature is not None
    logits, pieces = (log_probs.double() / search.temperature).sort(dim=-1, descending=True, stable=True)
    probs = logits.softmax(dim=-1)
    before = probs.cumsum(dim=-1) - probs
    keep = before < search.top_p
    if search.top_k:
        keep[:, search.top_k :] = False
    keep[:, 0] = True
    probs = probs.masked_fill(~keep, 0.0)
    reached = probs.cumsum(dim=-1)
    place = torch.searchsorted(reached, (numbers * reached[:, -1])[:, None], right=True).clamp(max=probs.size(1) - 1)
    place = torch.minimum(place, keep.sum(dim=-1, keepdim=True) - 1)
    return pieces.gather(1, place)[:, 0]
