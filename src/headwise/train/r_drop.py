"""R-Drop (Liang et al. 2021): two passes under two dropouts are to agree, beside being right."""

from typing import Any

import torch
from torch import Tensor

from headwise.train.loss import Loss, Projection, chunks


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
        output = Projection(one, weight, bias, smoothing)
        passes, of_pass = (output.cast(one), output.cast(two)), (torch.empty_like(one), torch.empty_like(two))
        smoothed, nll = output.zeros()
        for rows in chunks(len(target)):
            found = [output(h[rows], target[rows]) for h in passes]
            apart = found[0].logits.sub_(found[1].logits)  # of log probabilities, but for a number a row
            for mine, sign in ((0, 1.0), (1, -1.0)):
                p, q = found[mine].probs, found[1 - mine].probs
                shift = sign * (found[0].log_sums - found[1].log_sums)
                divergence = sign * torch.linalg.vecdot(p, apart) - shift  # KL(p || q)
                smoothed += found[mine].smoothed / 2 + alpha / 4 * divergence.sum()
                nll += found[mine].nll / 2
                # With respect to the logits: of cross entropy, of KL(p || q), of KL(q || p).
                factor = 0.5 + alpha / 4 * (1 - shift - divergence)
                grad = (apart * (sign * alpha / 4)).add_(factor[:, None]).mul_(p).sub_(q, alpha=alpha / 4)
                grad.scatter_add_(1, target[rows, None], p.new_full((len(p), 1), (smoothing - 1) / 2))
                of_pass[mine][rows] = output.backward(grad, passes[mine][rows])
        for h, of_hidden in zip(passes, of_pass, strict=True):
            output.spread(of_hidden, h, share=0.5)
        ctx.grads = [*of_pass, output.of_weight, output.of_bias]
        ctx.mark_non_differentiable(nll)
        return smoothed, nll

    @staticmethod
    def backward(ctx: Any, grad_smoothed: Tensor, grad_nll: Tensor) -> tuple[Tensor | None, ...]:
        scale = grad_smoothed.float()
        return *(grad * scale if grad is not None else None for grad in ctx.grads), None, None, None
