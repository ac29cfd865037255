"""Cross entropy with label smoothing (5.4), joined with the output projection so that logits are never kept."""

from typing import Any, NamedTuple

import torch
from torch import Tensor

CHUNK = 512  # rows of logits that exist at a time


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
        smoothed, nll = (torch.zeros((), dtype=torch.float64, device=hidden.device) for _ in range(2))
        grads = [torch.zeros_like(x) if x is not None else None for x in (hidden, weight, bias)]
        room = torch.empty(min(CHUNK, len(target)), V, device=hidden.device)  # one room for all chunks' probabilities

        for begin in range(0, len(target), CHUNK):
            rows = slice(begin, begin + CHUNK)
            logits = (h[rows] @ w.T).float()  # (rows, V)
            if bias is not None:
                logits += bias
            probs = torch.softmax(logits, dim=-1, out=room[: len(logits)])
            likeliest = logits.amax(dim=-1)
            log_sum = (
                likeliest - probs.amax(dim=-1).log()
            )  # of exp(logits): p = exp(logit) / sum, best seen at its largest
            of_target = logits.gather(1, target[rows, None])[:, 0]
            nll += (log_sum - of_target).sum()
            smoothed += (log_sum - (1 - smoothing) * of_target - smoothing / V * logits.sum(dim=-1)).sum()
            if any(ctx.needs_input_grad):
                _add_gradients(grads, probs, h, w, target, rows, smoothing)
        ctx.grads = grads
        ctx.mark_non_differentiable(nll)
        return smoothed, nll

    @staticmethod
    def backward(ctx: Any, grad_smoothed: Tensor, grad_nll: Tensor) -> tuple[Tensor | None, ...]:
        scale = grad_smoothed.float()
        return *(grad * scale if grad is not None else None for grad in ctx.grads), None, None


def _add_gradients(
    grads: list[Tensor | None], probs: Tensor, h: Tensor, w: Tensor, target: Tensor, rows: slice, smoothing: float
) -> None:
    """With respect to logits: probabilities less what they should be; from there to hidden, weight and bias."""
    of_hidden, of_weight, of_bias = grads
    assert of_hidden is not None
    assert of_weight is not None
    probs -= smoothing / w.size(0)
    probs.scatter_add_(1, target[rows, None], probs.new_full((len(probs), 1), smoothing - 1))
    grad = probs.to(h.dtype)
    of_hidden[rows] = (grad @ w).to(of_hidden.dtype)
    of_weight += (grad.T @ h[rows]).to(of_weight.dtype)
    if of_bias is not None:
        of_bias += probs.sum(dim=0)
