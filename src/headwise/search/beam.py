"""Beam search (6.1): grow, finish, keep, stop."""

from typing import NamedTuple, TypeVar

import torch
from torch import Tensor
from torch.nn import functional as F

from headwise.config import SearchConfig
from headwise.search.hypothesis import Hypothesis
from headwise.search.penalty import length_penalty
from headwise.search.task import S, Step, Task, staying
from headwise.search.top import top


class Candidates(NamedTuple):
    """Hypotheses that all have t steps, best first: C of them for each of B sentences."""

    ids: Tensor  # (B, C, t)
    log_prob: Tensor  # (B, C)
    parent: Tensor  # (B, C), the hypothesis of the step before that it grew from

    def pick(self, chosen: Tensor) -> "Candidates":
        """Those at `chosen` `(B, C')` in each sentence."""
        return Candidates(_pick(self.ids, chosen), self.log_prob.gather(1, chosen), self.parent.gather(1, chosen))


class Finished(NamedTuple):
    """The best K finished hypotheses so far, best first; an empty place has the score -inf."""

    ids: Tensor  # (B, K, t), filled up with the end
    n_pieces: Tensor  # (B, K)
    log_prob: Tensor  # (B, K)
    score: Tensor  # (B, K)
    complete: Tensor  # (B, K)
    n_ever: Tensor  # (B,), how many finished in all


T = TypeVar("T", Candidates, Finished)


def beam(step: Step[S], state: S, task: Task, search: SearchConfig) -> list[list[Hypothesis]]:
    """At most beam_size finished hypotheses a sentence, best first; a sentence that is over leaves the batch."""
    limit = torch.tensor(task.max_steps, dtype=torch.long, device=task.device)  # (B,)
    going = torch.arange(len(limit), device=task.device)  # the sentences still in the batch
    live = Candidates(
        ids=torch.full((len(limit), 1, 0), task.eos_id, device=task.device),
        log_prob=torch.zeros(len(limit), 1, dtype=torch.float64, device=task.device),
        parent=torch.zeros(len(limit), 1, dtype=torch.long, device=task.device),
    )
    done = _nothing_finished(len(limit), search.beam_size, task)
    last = torch.full_like(limit, task.bos_id)
    results: list[list[Hypothesis]] = [[] for _ in task.max_steps]
    first_limit, any_done = min(task.max_steps, default=0), False

    while len(going):
        log_probs, state = step(last, state)
        n_before = live.log_prob.size(1)
        allowed = task.allowed(log_probs, live.ids.flatten(0, 1), going.repeat_interleave(n_before))
        grown = grow(live, allowed, 2 * search.beam_size)
        rows = n_before * torch.arange(len(going), device=task.device)[:, None]  # the first of each sentence
        t = grown.ids.size(2)
        if t < first_limit and not (any_done and search.stop == "bound") and not _ended(grown, task).any():
            live = Candidates(*(part[:, : search.beam_size] for part in grown))  # nobody can leave: most steps are such
            state, last = state.reorder(live.parent + rows), live.ids[:, :, -1].flatten()
            continue
        any_done = True
        at_limit = limit[going] == t
        done = finish(done, grown, at_limit, task.eos_id, search)
        live = keep(grown, task.eos_id, search.beam_size)
        over = at_limit | stop(done, live, limit[going], search)
        for i in over.nonzero().flatten().tolist():
            results[going[i]] = _hypotheses(done, i)
        still = staying(over)
        rows = (live.parent + rows)[still]
        going, done, live = going[still], _rows(done, still), _rows(live, still)
        if len(going):
            state, last = state.reorder(rows), live.ids[:, :, -1].flatten()
    return results


def grow(live: Candidates, log_probs: Tensor, n: int) -> Candidates:
    """The best `n` continuations of each sentence's live hypotheses by one piece; log_probs `(B * K, V)`."""
    B, K = live.log_prob.shape
    best, pieces = top(log_probs, n)  # (B * K, C): no other continuation of a row can be chosen
    total = (live.log_prob[:, :, None] + best.view(B, K, -1)).flatten(1)
    log_prob, chosen = total.topk(min(n, total.size(1)))  # (B, n)
    parent, piece = chosen // best.size(1), pieces.view(B, -1).gather(1, chosen)
    return Candidates(torch.cat((_pick(live.ids, parent), piece[:, :, None]), dim=2), log_prob, parent)


def finish(done: Finished, grown: Candidates, at_limit: Tensor, eos_id: int, search: SearchConfig) -> Finished:
    """Those of the first beam_size that end here, or are cut by the limit, join the finished."""
    ended = grown.ids[:, :, -1] == eos_id
    t = grown.ids.size(2)
    first = torch.arange(ended.size(1), device=ended.device) < search.beam_size
    new = (ended | at_limit[:, None]) & first & grown.log_prob.isfinite()
    n_pieces = t - ended.long()
    score = grown.log_prob / length_penalty(search.length_penalty, search.alpha, n_pieces, ended)

    score = torch.cat((done.score, score.masked_fill(~new, -torch.inf)), dim=1)
    score, best = score.topk(search.beam_size)
    ids = F.pad(done.ids, (0, t - done.ids.size(2)), value=eos_id)  # (B, K, t)
    return Finished(
        ids=_pick(torch.cat((ids, grown.ids), dim=1), best),
        n_pieces=torch.cat((done.n_pieces, n_pieces), dim=1).gather(1, best),
        log_prob=torch.cat((done.log_prob, grown.log_prob), dim=1).gather(1, best),
        score=score,
        complete=torch.cat((done.complete, ended), dim=1).gather(1, best),
        n_ever=done.n_ever + new.sum(dim=1),
    )


def keep(grown: Candidates, eos_id: int, n: int) -> Candidates:
    """The best `n` that have not ended; one that had to be taken although it has is dead, at -inf."""
    ended = grown.ids[:, :, -1] == eos_id
    log_prob, best = grown.log_prob.masked_fill(ended, -torch.inf).topk(min(n, ended.size(1)))
    return grown.pick(best)._replace(log_prob=log_prob)


def stop(done: Finished, live: Candidates, limit: Tensor, search: SearchConfig) -> Tensor:
    """Which sentences `(B,)` are over.

    finished  as soon as beam_size hypotheses have finished
    bound     as soon as the best one is at least as good as any live one can become: a log probability only falls, and
              no penalty divides it by more than at the limit
    """
    best_live = live.log_prob.max(dim=1).values
    if search.stop == "finished":
        enough = done.n_ever >= search.beam_size
    else:
        complete = torch.zeros_like(limit, dtype=torch.bool)
        bound = best_live / length_penalty(search.length_penalty, search.alpha, limit, complete)
        enough = done.score[:, 0] >= bound
    return enough | (best_live == -torch.inf)


def _nothing_finished(n_sentences: int, beam_size: int, task: Task) -> Finished:
    count = torch.zeros(n_sentences, beam_size, dtype=torch.long, device=task.device)
    nothing = torch.full(count.shape, -torch.inf, dtype=torch.float64, device=task.device)
    return Finished(count[:, :, None][:, :, :0], count, nothing, nothing, count.bool(), count[:, 0])


def _hypotheses(done: Finished, i: int) -> list[Hypothesis]:
    found = zip(*(part[i].tolist() for part in done[:5]), strict=True)
    return [Hypothesis(tuple(ids[:n]), p, s, c) for ids, n, p, s, c in found if s > -torch.inf]


def _ended(grown: Candidates, task: Task) -> Tensor:
    return grown.ids[:, :, -1] == task.eos_id


def _pick(ids: Tensor, chosen: Tensor) -> Tensor:
    return ids.gather(1, chosen[:, :, None].expand(-1, -1, ids.size(2)))  # (B, C, t) -> (B, C', t)


def _rows(batch: T, sentences: Tensor) -> T:
    return type(batch)(*(part[sentences] for part in batch))
