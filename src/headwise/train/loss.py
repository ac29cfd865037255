"""Cross entropy with label smoothing (5.4), joined with the output projection so that logits are never kept."""

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
        device, V = hidden.device.type, weight.size(0)
        compute = torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else hidden.dtype
        h, w = hidden.to(compute), weight.to(compute)
        w_sum, even = w.sum(dim=0, dtype=torch.float32), smoothing / V  # the sum of all logits of a row is h @ w_sum
        bias_sum = bias.sum() if bias is not None else 0.0
        smoothed, nll = (torch.zeros((), dtype=torch.float64, device=hidden.device) for _ in range(2))
        grads = [torch.zeros_like(x) if x is not None else None for x in (hidden, weight, bias)]
        room = torch.empty(min(CHUNK, len(target)), V, device=hidden.device)  # one room for all chunks' probabilities

        for begin in range(0, len(target), CHUNK):
            rows = slice(begin, begin + CHUNK)
            logits = (h[rows] @ w.T).float()  # (rows, V)
            if bias is not None:
                logits += bias
            probs = torch.softmax(logits, dim=-1, out=room[: len(logits)])
            of_target = logits.gather(1, target[rows, None])[:, 0]
            log_prob = log_of_target(probs, logits, of_target, target[rows])
            nll -= log_prob.sum()
            mean_logit = (hidden[rows] @ w_sum + bias_sum) / V
            smoothed -= (log_prob + smoothing * (mean_logit - of_target)).sum()
            if any(ctx.needs_input_grad):
                _add_gradients(grads, probs, h, w, target, rows, smoothing)
        if any(ctx.needs_input_grad):  # the part of smoothing that is the same for every piece, for all rows at once
            of_hidden, of_weight, of_bias = grads
            of_hidden -= even * w_sum  # type: ignore[operator]
            of_weight -= even * h.sum(dim=0, dtype=torch.float32)  # type: ignore[operator]
            if of_bias is not None:
                of_bias -= even * len(target)
        ctx.grads = grads
        ctx.mark_non_differentiable(nll)
        return smoothed, nll

    @staticmethod
    def backward(ctx: Any, grad_smoothed: Tensor, grad_nll: Tensor) -> tuple[Tensor | None, ...]:
        scale = grad_smoothed.float()
        return *(grad * scale if grad is not None else None for grad in ctx.grads), None, None


def log_of_target(probs: Tensor, logits: Tensor, of_target: Tensor, target: Tensor) -> Tensor:
    """The log probability of each target, from its probability unless that is too small to be exact."""
    prob = probs.gather(1, target[:, None])[:, 0]
    small = (prob < SMALL).nonzero()[:, 0]
    log_prob = prob.log()
    if len(small):
        log_prob[small] = of_target[small] - logits[small].logsumexp(dim=-1)
    return log_prob


def _add_gradients(
    grads: list[Tensor | None], probs: Tensor, h: Tensor, w: Tensor, target: Tensor, rows: slice, smoothing: float
) -> None:
    """With respect to logits: probabilities less 1 - smoothing at the target; from there to hidden, weight and bias."""
    of_hidden, of_weight, of_bias = grads
    assert of_hidden is not None
    assert of_weight is not None
    probs.scatter_add_(1, target[rows, None], probs.new_full((len(probs), 1), smoothing - 1))
    grad = probs.to(h.dtype)
    of_hidden[rows] = (grad @ w).to(of_hidden.dtype)
    if grad.dtype == of_weight.dtype:
        of_weight.addmm_(grad.T, h[rows])
    else:
        of_weight += (grad.T @ h[rows]).to(of_weight.dtype)
    if of_bias is not None:
        of_bias += probs.sum(dim=0)
