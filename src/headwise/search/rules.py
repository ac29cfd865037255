"""What may come next: each rule takes log probabilities `(R, V)` and gives them with the forbidden at -inf."""

import torch
from torch import Tensor


def never(log_probs: Tensor, pieces: tuple[int, ...]) -> Tensor:
    """These pieces are not generated; what is given is overwritten, since a copy would cost more than all else here."""
    side_by_side = range(pieces[0], pieces[0] + len(pieces)) if pieces else range(0)
    if pieces == tuple(side_by_side):  # as padding and beginning mostly are
        log_probs[:, side_by_side.start : side_by_side.stop] = -torch.inf
        return log_probs
    for piece in pieces:
        log_probs[:, piece] = -torch.inf
    return log_probs


def at_least(log_probs: Tensor, n_before: int, min_pieces: int, eos_id: int) -> Tensor:
    """No end before `min_pieces` pieces; `n_before` are there already."""
    return never(log_probs.clone(), (eos_id,)) if n_before < min_pieces else log_probs


def follow(log_probs: Tensor, free: Tensor, wanted: Tensor) -> Tensor:
    """Where `wanted` `(R,)` is not negative, only that piece, with the log probability that it has; else `free`."""
    pieces = torch.arange(log_probs.size(1), device=log_probs.device)
    only = log_probs.masked_fill(pieces != wanted[:, None], -torch.inf)
    return torch.where(wanted[:, None] >= 0, only, free)


def no_repeat(log_probs: Tensor, ids: Tensor, n: int) -> Tensor:
    """No piece that would make `n` pieces in a row stand there a second time; ids `(R, t)` are there already."""
    if n == 0 or ids.size(1) < n:
        return log_probs
    runs = ids.unfold(1, n, 1)  # (R, t - n + 1, n)
    last = ids[:, ids.size(1) - n + 1 :]  # (R, n - 1)
    row, run = (runs[:, :, :-1] == last[:, None]).all(dim=-1).nonzero(as_tuple=True)
    log_probs = log_probs.clone()
    log_probs[row, runs[row, run, -1]] = -torch.inf
    return log_probs


def or_end(log_probs: Tensor, free: Tensor, eos_id: int) -> Tensor:
    """`free`, but the end where it leaves nothing at all."""
    stuck = free.amax(dim=1) == -torch.inf
    if stuck.any():
        free = free.clone()
        free[stuck, eos_id] = log_probs[stuck, eos_id]
    return free
