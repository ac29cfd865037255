"""Equation 1 on torch's fused kernel (3.2.1): the scores never reach memory, so there are no weights to show."""

from torch import Tensor
from torch.nn import functional as F

from headwise.model.attend.contract import Attend


class Fused(Attend):
    """softmax(Q K^T / sqrt(d_k)) V in one kernel."""

    exact = True

    def forward(
        self, q: Tensor, k: Tensor, v: Tensor, keep: Tensor | None = None, dropout: float = 0.0
    ) -> tuple[Tensor, Tensor | None]:
        return F.scaled_dot_product_attention(q, k, v, attn_mask=keep, dropout_p=dropout), None
