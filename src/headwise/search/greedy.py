"""Greedy search: the likeliest piece at every step; or, with a chooser, whichever piece that takes."""

from collections.abc import Callable

import torch
from torch import Tensor

from headwise.config import SearchConfig
from headwise.search.hypothesis import Hypothesis
from headwise.search.penalty import length_penalty
from headwise.search.task import S, Step, Task
from headwise.search.top import top

# log_probs (R, V) of what may come, the step, the sentences (R,) -> pieces (R,)
Choose = Callable[[Tensor, int, Tensor], Tensor]


def likeliest(log_probs: Tensor, t: int, sentences: Tensor) -> Tensor:
    """Of what may come."""
    return top(log_probs, 1)[1][:, 0]


def greedy(step: Step[S], state: S, task: Task, search: SearchConfig, choose: Choose = likeliest) -> list[Hypothesis]:
    """One hypothesis a sentence; a sentence that has ended leaves the batch."""
    limit = torch.tensor(task.max_steps, dtype=torch.long, device=task.device)  # (B,)
    ids = torch.full((len(limit), max(task.max_steps, default=0)), task.eos_id, device=task.device)  # (B, T)
    log_prob = torch.zeros_like(limit, dtype=torch.float64)
    going = torch.arange(len(limit), device=task.device)  # the sentences still in the batch
    last = torch.full_like(going, task.bos_id)

    for t in range(ids.size(1)):
        log_probs, state = step(last, state)
        last = choose(task.allowed(log_probs, ids[going, :t], going), t, going)
        log_prob[going] += log_probs.gather(1, last[:, None])[:, 0]
        ids[going, t] = last
        over = (last == task.eos_id) | (limit[going] == t + 1)
        if over.any():
            still = (~over).nonzero()  # (R', 1)
            if not len(still):
                break
            state, going, last = state.reorder(still), going[still[:, 0]], last[still[:, 0]]

    n_pieces = (ids != task.eos_id).sum(dim=1)
    complete = n_pieces < limit
    score = log_prob / length_penalty(search.length_penalty, search.alpha, n_pieces, complete)
    found = zip(ids.tolist(), n_pieces.tolist(), log_prob.tolist(), score.tolist(), complete.tolist(), strict=True)
    return [Hypothesis(tuple(row[:n]), p, s, c) for row, n, p, s, c in found]
