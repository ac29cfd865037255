"""Scaled dot-product attention, Equation 1 written out (3.2.1)."""

import math

from torch import Tensor

from headwise.model.attend.contract import Attend
from headwise.model.dropout import dropout as drop


class Reference(Attend):
    """softmax(Q K^T / sqrt(d_k)) V, with its weights."""

    exact = True

    def forward(
        self, q: Tensor, k: Tensor, v: Tensor, keep: Tensor | None = None, dropout: float = 0.0
    ) -> tuple[Tensor, Tensor | None]:
        scores = (q / math.sqrt(q.size(-1))) @ k.transpose(-2, -1)  # (B, H, T_q, T_k); q is smaller than the scores
        if keep is not None:
            scores = scores.masked_fill(~keep, -math.inf)
        weights = scores.softmax(dim=-1)
        return drop(weights, dropout) @ v, weights
