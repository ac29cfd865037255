"""R-Drop (Liang et al. 2021): two passes under two dropouts are to agree, beside being right."""

from typing import Any

import torch
from torch import Tensor

from headwise.train.loss import CHUNK, Loss, log_of_target


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
        w_sum, even = w.sum(dim=0, dtype=torch.float32), smoothing / V  # the sum of all logits of a row is h @ w_sum
        bias_sum = bias.sum() if bias is not None else 0.0
        smoothed, nll = (torch.zeros((), dtype=torch.float64, device=one.device) for _ in range(2))
        of_pass = (torch.zeros_like(one), torch.zeros_like(two))
        of_weight = torch.zeros_like(weight)
        of_bias = torch.zeros_like(bias) if bias is not None else None

        for begin in range(0, len(target), CHUNK):
            rows = slice(begin, begin + CHUNK)
            right = target[rows, None]
            all_logits, probs, log_sums = [], [], []
            for h in passes:
                logits = (h[rows] @ w.T).float()  # (rows, V)
                if bias is not None:
                    logits += bias
                p = logits.softmax(dim=-1)
                of_target = logits.gather(1, right)[:, 0]
                log_prob = log_of_target(p, logits, of_target, target[rows])
                nll -= log_prob.sum() / 2
                mean_logit = (h[rows].float() @ w_sum + bias_sum) / V
                smoothed -= (log_prob + smoothing * (mean_logit - of_target)).sum() / 2
                all_logits.append(logits)
                probs.append(p)
                log_sums.append(of_target - log_prob)
            apart = all_logits[0].sub_(all_logits[1])  # of log probabilities, but for a number a row
            for mine, sign in ((0, 1.0), (1, -1.0)):
                p, q = probs[mine], probs[1 - mine]
                shift = sign * (log_sums[0] - log_sums[1])
                divergence = sign * torch.linalg.vecdot(p, apart) - shift  # KL(p || q)
                smoothed += alpha / 4 * divergence.sum()
                # With respect to the logits: of cross entropy, of KL(p || q), of KL(q || p).
                factor = 0.5 + alpha / 4 * (1 - shift - divergence)
                grad = (apart * (sign * alpha / 4)).add_(factor[:, None]).mul_(p).sub_(q, alpha=alpha / 4)
                grad.scatter_add_(1, right, p.new_full((len(p), 1), (smoothing - 1) / 2))
                g = grad.to(compute)
                of_pass[mine][rows] = (g @ w).to(one.dtype)
                of_weight += (g.T @ passes[mine][rows]).to(of_weight.dtype)
                if of_bias is not None:
                    of_bias += grad.sum(dim=0)
        for h, of_hidden in zip(passes, of_pass, strict=True):  # the part of smoothing that is the same for every piece
            of_hidden -= even / 2 * w_sum
            of_weight -= even / 2 * h.sum(dim=0, dtype=torch.float32)
        if of_bias is not None:
            of_bias -= even * len(target)
        ctx.grads = [*of_pass, of_weight, of_bias]
        ctx.mark_non_differentiable(nll)
        return smoothed, nll

    @staticmethod
    def backward(ctx: Any, grad_smoothed: Tensor, grad_nll: Tensor) -> tuple[Tensor | None, ...]:
        scale = grad_smoothed.float()
        return *(grad * scale if grad is not None else None for grad in ctx.grads), None, None, None
