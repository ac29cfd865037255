"""Greedy search: the likeliest piece at every step; or, with a chooser, whichever piece that takes."""

from collections.abc import Callable

import torch
from torch import Tensor

from headwise.config import SearchConfig
from headwise.search.hypothesis import Hypothesis
from headwise.search.penalty import length_penalty
from headwise.search.task import S, Step, Task, staying
from headwise.search.top import top

FEW = 4  # rows whose likeliest are sooner found one by one

# log_probs (R, V) of what may come, the step, the sentences (R,) -> pieces (R,)
Choose = Callable[[Tensor, int, Tensor], Tensor]


def likeliest(log_probs: Tensor, t: int, sentences: Tensor) -> Tensor:
    """Of what may come."""
    return log_probs.argmax(dim=-1) if len(log_probs) < FEW else top(log_probs, 1)[1][:, 0]


def greedy(step: Step[S], state: S, task: Task, search: SearchConfig, choose: Choose = likeliest) -> list[Hypothesis]:
    """One hypothesis a sentence; a sentence that has ended leaves the batch."""
    limit = torch.tensor(task.max_steps, dtype=torch.long, device=task.device)  # (R,), of those still in the batch
    ids = torch.full((len(limit), max(task.max_steps, default=0)), task.eos_id, device=task.device)  # (R, T)
    log_prob = torch.zeros_like(limit, dtype=torch.float64)
    going = torch.arange(len(limit), device=task.device)  # which sentences they are
    last = torch.full_like(going, task.bos_id)
    results: dict[int, Hypothesis] = {}

    for t in range(ids.size(1)):
        log_probs, state = step(last, state)
        last = choose(task.allowed(log_probs, ids[:, :t], going), t, going)
        log_prob += log_probs.gather(1, last[:, None])[:, 0]
        ids[:, t] = last
        over = (last == task.eos_id) | (limit == t + 1)
        if over.any():
            ended, still = over.nonzero()[:, 0], staying(over)
            found = _hypotheses(ids[ended, : t + 1], log_prob[ended], task.eos_id, search)
            results |= zip(going[ended].tolist(), found, strict=True)
            if not len(still):
                break
            state = state.reorder(still[:, None])
            ids, log_prob, limit, going, last = (part[still] for part in (ids, log_prob, limit, going, last))
    return [results[i] for i in range(len(task.max_steps))]


def _hypotheses(ids: Tensor, log_prob: Tensor, eos_id: int, search: SearchConfig) -> list[Hypothesis]:
    """Of ids `(R, t)` that end here, by an end or by the limit."""
    complete = ids[:, -1] == eos_id
    n_pieces = ids.size(1) - complete.long()
    score = log_prob / length_penalty(search.length_penalty, search.alpha, n_pieces, complete)
    found = zip(ids.tolist(), n_pieces.tolist(), log_prob.tolist(), score.tolist(), complete.tolist(), strict=True)
    return [Hypothesis(tuple(row[:n]), p, s, c) for row, n, p, s, c in found]
