"""Threads that each learn from a share of the batch: in float32 on a CPU faster than threads in every operation."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import torch
from torch import Tensor, nn

from headwise.data.batches import Batch
from headwise.model.dropout import seed_dropout
from headwise.train.loss import Loss

N_WORKERS = 2  # benchmarks/train_speed.py; Python's own lock is shared, so more need not be better


def how_many(device: torch.device, n_processes: int, bfloat16: bool) -> int:
    """How many share a batch: more than one only in a single process on a CPU that has the threads for it.

    Never in bfloat16, where two were slower or no faster (docs/design.md).
    """
    alone = device.type == "cpu" and n_processes == 1 and not bfloat16
    return N_WORKERS if alone and torch.get_num_threads() >= N_WORKERS else 1


class Workers:
    """All have the same weights, and an equal part of the threads; gradients are added up in one order."""

    def __init__(self, parameters: list[nn.Parameter], n: int) -> None:
        self.parameters, self.n, self.n_threads = parameters, n, torch.get_num_threads()
        self.part = max(1, self.n_threads // n)
        self.pool = ThreadPoolExecutor(n, initializer=torch.set_num_threads, initargs=(self.part,))

    def backward(self, loss_of: Callable[[Batch], Loss], batch: Batch, n_tokens: int, seed: int) -> Loss:
        """Add the gradient of the mean over `n_tokens`; what is random follows from `seed` and the share alone."""

        def learn(i: int) -> tuple[Loss, tuple[Tensor, ...]]:
            seed_dropout(seed + i)
            loss = loss_of(batch.share(i, self.n))
            return loss, torch.autograd.grad(loss.smoothed / n_tokens, self.parameters)

        torch.set_num_threads(self.part)  # of matrix products, which all threads have in common
        try:
            losses, gradients = zip(*self.pool.map(learn, range(self.n)), strict=True)
        finally:
            torch.set_num_threads(self.n_threads)
        for parameter, shares in zip(self.parameters, zip(*gradients, strict=True), strict=True):
            gradient = sum(shares[1:], start=shares[0])
            parameter.grad = gradient if parameter.grad is None else parameter.grad + gradient
        return Loss(*(torch.stack(shares).sum() for shares in zip(*losses, strict=True)))
