"""R-Drop (Liang et al. 2021): two passes under two dropouts are to agree, beside being right."""

from typing import Any

import torch
from torch import Tensor

from headwise.train.loss import CHUNK, Loss


def r_drop(
    one: Tensor, two: Tensor, weight: Tensor, bias: Tensor | None, target: Tensor, smoothing: float, alpha: float
) -> Loss:
    """Hidden vectors of both passes `(N, d_model)`, the output projection, target `(N,)` -> sums over the N pieces.

    Cross entropy, the mean of both passes, plus alpha / 2 times the mean of both Kullback-Leibler divergences: half of
    what the paper writes, which adds the two cross entropies up.
    """
    smoothed, nll = _Joined.apply(one, two, weight, bias, target, smoothing, alpha)  # type: ignore[no-untyped-call]
    return Loss(smoothed, nll)


class _Joined(torch.autograd.Function):
    """Gradients are made in the forward pass, chunk by chunk, and only scaled in the backward pass."""

    @staticmethod
    def forward(
        ctx: Any,
        one: Tensor,
        two: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        target: Tensor,
        smoothing: float,
        alpha: float,
    ) -> tuple[Tensor, Tensor]:
        device, V = one.device.type, weight.size(0)
        compute = torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else one.dtype
        passes, w = (one.to(compute), two.to(compute)), weight.to(compute)
        smoothed, nll = (torch.zeros((), dtype=torch.float64, device=one.device) for _ in range(2))
        of_pass = (torch.zeros_like(one), torch.zeros_like(two))
        of_weight = torch.zeros_like(weight)
        of_bias = torch.zeros_like(bias) if bias is not None else None

        for begin in range(0, len(target), CHUNK):
            rows = slice(begin, begin + CHUNK)
            logs = []
            for h in passes:
                logits = (h[rows] @ w.T).float()  # (rows, V)
                logs.append((logits if bias is None else logits + bias).log_softmax(dim=-1))
            probs = [log.exp() for log in logs]
            apart = logs[0] - logs[1]
            for mine, sign in ((0, 1.0), (1, -1.0)):
                p, q, log_p = probs[mine], probs[1 - mine], logs[mine]
                divergence = sign * (p * apart).sum(dim=-1, keepdim=True)  # KL(p || q)
                of_target = log_p.gather(1, target[rows, None])
                nll -= of_target.sum() / 2
                even = smoothing / V * log_p.sum(dim=-1)
                smoothed += alpha / 4 * divergence.sum() - ((1 - smoothing) * of_target.sum() + even.sum()) / 2
                # With respect to the logits: of cross entropy, of KL(p || q), of KL(q || p).
                grad = (p - smoothing / V).scatter_add_(1, target[rows, None], p.new_full((len(p), 1), smoothing - 1))
                grad.mul_(0.5).add_(p * (sign * apart - divergence) + (p - q), alpha=alpha / 4)
                g = grad.to(compute)
                of_pass[mine][rows] = (g @ w).to(one.dtype)
                of_weight += (g.T @ passes[mine][rows]).to(of_weight.dtype)
                if of_bias is not None:
                    of_bias += grad.sum(dim=0)
        ctx.grads = [*of_pass, of_weight, of_bias]
        ctx.mark_non_differentiable(nll)
        return smoothed, nll

    @staticmethod
    def backward(ctx: Any, grad_smoothed: Tensor, grad_nll: Tensor) -> tuple[Tensor | None, ...]:
        scale = grad_smoothed.float()
        return *(grad * scale if grad is not None else None for grad in ctx.grads), None, None, None
