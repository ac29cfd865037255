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
    if bias is None:
        bias = weight.new_zeros(weight.size(0))
    smoothed, nll = _Fused.apply(hidden, weight, bias, target, smoothing)  # type: ignore[no-untyped-call]
    return Loss(smoothed, nll)


class _Fused(torch.autograd.Function):
    """Gradients are made in the forward pass, chunk by chunk, and only scaled in the backward pass."""

    @staticmethod
    def forward(
        ctx: Any, hidden: Tensor, weight: Tensor, bias: Tensor, target: Tensor, smoothing: float
    ) -> tuple[Tensor, Tensor]:
        learning = any(ctx.needs_input_grad)
        device = hidden.device.type
        compute = torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else hidden.dtype
        h, w = hidden.to(compute), weight.to(compute)
        V = w.size(0)
        smoothed = nll = bias.new_zeros((), dtype=torch.float64)
        grad_hidden = torch.empty_like(hidden) if learning else None
        grad_weight = torch.zeros_like(weight) if learning else None
        grad_bias = torch.zeros_like(bias) if learning else None
        for begin in range(0, len(target), CHUNK):
            rows = slice(begin, begin + CHUNK)
            log_probs = torch.nn.functional.linear(h[rows], w).float().add_(bias).log_softmax(dim=-1)  # (rows, V)
            of_target = log_probs.gather(1, target[rows, None])
            nll = nll - of_target.sum().double()
            smoothed = smoothed - (1 - smoothing) * of_target.sum().double() - smoothing / V * log_probs.sum().double()
            if grad_hidden is None or grad_weight is None or grad_bias is None:
                continue
            grad = log_probs.exp_().sub_(smoothing / V)  # probabilities less what they should be
            grad.scatter_add_(1, target[rows, None], grad.new_full((1, 1), smoothing - 1).expand_as(of_target))
            grad_bias += grad.sum(dim=0)
            grad = grad.to(compute)
            grad_hidden[rows] = (grad @ w).to(hidden.dtype)
            grad_weight += (grad.T @ h[rows]).to(weight.dtype)
        ctx.grads = grad_hidden, grad_weight, grad_bias
        ctx.mark_non_differentiable(nll)
        return smoothed, nll

    @staticmethod
    def backward(ctx: Any, grad_smoothed: Tensor, grad_nll: Tensor) -> tuple[Tensor | None, ...]:
        scale = grad_smoothed.float()
        grad_hidden, grad_weight, grad_bias = ctx.grads
        return grad_hidden * scale, grad_weight * scale, grad_bias * scale, None, None
