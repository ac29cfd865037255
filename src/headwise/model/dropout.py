"""Dropout (5.4), on a CPU from random bytes, which takes less time than torch's own."""

import threading
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F


def dropout(x: Tensor, p: float) -> Tensor:
    """Each entry is 0 with probability p, and else divided by 1 - p; on a CPU p is rounded to 1/256."""
    if p == 0:
        return x
    if x.device.type != "cpu":
        return F.dropout(x, p)
    dropped: Tensor = _FromBytes.apply(x, round(p * 256))  # type: ignore[no-untyped-call]
    return dropped


def seed_dropout(number: int) -> None:
    """From now on, what dropout draws in this thread on a CPU follows from `number` alone."""
    _own.generator = torch.Generator().manual_seed(number)


class _Own(threading.local):
    generator: torch.Generator | None = None  # torch's, which all threads have in common


_own = _Own()


class Dropout(nn.Module):
    """Dropout while training."""

    def __init__(self, p: float) -> None:
        super().__init__()
        self.p = p

    def forward(self, x: Tensor) -> Tensor:
        """Any shape."""
        return dropout(x, self.p) if self.training else x


class _FromBytes(torch.autograd.Function):
    """One 64-bit draw decides on eight entries; multiplied, since filling by a mask guesses a branch for each."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, threshold: int) -> Tensor:
        n = x.numel()
        draws = torch.empty((n + 7) // 8, dtype=torch.int64).random_(-(2**63), None, generator=_own.generator)
        ctx.bytes, ctx.threshold = draws.view(torch.uint8)[:n].view(x.shape), threshold
        return _keep(x, ctx.bytes, threshold)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        return _keep(grad, ctx.bytes, ctx.threshold), None


def _keep(x: Tensor, bytes_: Tensor, threshold: int) -> Tensor:
    """x where the byte reaches the threshold, scaled up to the same mean; 0 elsewhere."""
    return bytes_.to(x.dtype).ge_(threshold).mul_(x).mul_(256 / (256 - threshold))
