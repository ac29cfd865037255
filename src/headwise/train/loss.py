"""Cross entropy with label smoothing (5.4), joined with the output projection so that logits are never kept."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor

CHUNK = 512  # rows of logits that exist at a time
SMALL = 1e-20  # probabilities below this lose digits in float32


class Loss(NamedTuple):
    """Sums over target pieces; divide by how many there are, over all processes."""

    smoothed: Tensor  # what is learned from
    nll: Tensor  # negative log likelihood in nats, without smoothing; carries no gradient


def smoothed_cross_entropy(
    hidden: Tensor, weight: Tensor, bias: Tensor | None, target: Tensor, smoothing: float
) -> Loss:
    """hidden `(N, d_model)`, the output projection, target `(N,)` -> sums over the N pieces.

    A target's probability is 1 - smoothing, and smoothing is spread over all V pieces alike.
    """
    smoothed, nll = _Joined.apply(hidden, weight, bias, target, smoothing)  # type: ignore[no-untyped-call]
    return Loss(smoothed, nll)


class _Joined(torch.autograd.Function):
    """Gradients are made in the forward pass, chunk by chunk, and only scaled in the backward pass."""

    @staticmethod
    def forward(
        ctx: Any, hidden: Tensor, weight: Tensor, bias: Tensor | None, target: Tensor, smoothing: float
    ) -> tuple[Tensor, Tensor]:
        wanted = any(ctx.needs_input_grad)
        output = Projection(hidden, weight, bias, smoothing)
        h, of_hidden = output.cast(hidden), torch.empty_like(hidden)
        room = torch.empty(min(CHUNK, len(target)), len(weight), device=hidden.device)  # for all chunks' probabilities
        smoothed, nll = output.zeros()
        for rows in chunks(len(target)):
            found = output(h[rows], target[rows], room)
            smoothed += found.smoothed
            nll += found.nll
            if wanted:
                grad = found.probs.scatter_add_(
                    1, target[rows, None], found.probs.new_full((len(h[rows]), 1), smoothing - 1)
                )
                of_hidden[rows] = output.backward(grad, h[rows])
        if wanted:
            output.spread(of_hidden, h)
        ctx.grads = [of_hidden, output.of_weight, output.of_bias]
        ctx.mark_non_differentiable(nll)
        return smoothed, nll

    @staticmethod
    def backward(ctx: Any, grad_smoothed: Tensor, grad_nll: Tensor) -> tuple[Tensor | None, ...]:
        scale = grad_smoothed.float()
        return *(grad * scale if grad is not None else None for grad in ctx.grads), None, None


def chunks(n: int) -> Iterator[slice]:
    """Rows that are looked at together."""
    return (slice(begin, begin + CHUNK) for begin in range(0, n, CHUNK))


class Found(NamedTuple):
    """What the projection of some rows gives; the last two are sums over the rows."""

    logits: Tensor  # (rows, V)
    probs: Tensor  # (rows, V)
    log_sums: Tensor  # (rows,), what logits are above log probabilities
    smoothed: Tensor
    nll: Tensor


class Projection:
    """The output projection, in the type that matrix products are made in, with the gradients that it gathers."""

    def __init__(self, hidden: Tensor, weight: Tensor, bias: Tensor | None, smoothing: float) -> None:
        device = hidden.device.type
        self.type = torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else hidden.dtype
        self.weight, self.bias, self.smoothing = self.cast(weight), bias, smoothing
        # The sum of all logits of a row is h @ weight_sum.
        self.weight_sum = self.weight.sum(dim=0, dtype=torch.float32)
        self.bias_sum = bias.sum() if bias is not None else 0.0
        self.of_weight, self.of_bias = torch.zeros_like(weight), torch.zeros_like(bias) if bias is not None else None

    def cast(self, x: Tensor) -> Tensor:
        """In the type of matrix products."""
        return x.to(self.type)

    def zeros(self) -> list[Tensor]:
        """Two sums to begin with."""
        return [torch.zeros((), dtype=torch.float64, device=self.weight.device) for _ in range(2)]

    def __call__(self, h: Tensor, target: Tensor, room: Tensor | None = None) -> Found:
        """Probabilities and losses of rows `(rows, d_model)`; the probabilities lie in `room` if there is one."""
        logits = (h @ self.weight.T).float()
        if self.bias is not None:
            logits += self.bias
        probs = torch.softmax(logits, dim=-1, out=room[: len(h)] if room is not None else None)
        of_target = logits.gather(1, target[:, None])[:, 0]
        log_prob = _log(probs, logits, of_target, target)
        mean_logit = (h.float() @ self.weight_sum + self.bias_sum) / len(self.weight)
        smoothed = log_prob + self.smoothing * (mean_logit - of_target)
        return Found(logits, probs, of_target - log_prob, -smoothed.sum(), -log_prob.sum())

    def backward(self, grad: Tensor, h: Tensor) -> Tensor:
        """From the gradient of logits `(rows, V)` to that of h; those of weight and bias are added to."""
        g = self.cast(grad)
        if g.dtype == self.of_weight.dtype:
            self.of_weight.addmm_(g.T, h)
        else:
            self.of_weight += (g.T @ h).to(self.of_weight.dtype)
        if self.of_bias is not None:
            self.of_bias += grad.sum(dim=0)
        return g @ self.weight

    def spread(self, of_hidden: Tensor, h: Tensor, share: float = 1.0) -> None:
        """Add to all gradients the part of smoothing that is the same for every piece, for all rows at once."""
        even = share * self.smoothing / len(self.weight)
        of_hidden -= even * self.weight_sum
        self.of_weight -= even * h.sum(dim=0, dtype=torch.float32)
        if self.of_bias is not None:
            self.of_bias -= even * len(h)


def _log(probs: Tensor, logits: Tensor, of_target: Tensor, target: Tensor) -> Tensor:
    """The log probability of each target, from its probability unless that is too small to be exact."""
    prob = probs.gather(1, target[:, None])[:, 0]
    small = (prob < SMALL).nonzero()[:, 0]
    log_prob = prob.log()
    if len(small):
        log_prob[small] = of_target[small] - logits[small].logsumexp(dim=-1)
    return log_prob
