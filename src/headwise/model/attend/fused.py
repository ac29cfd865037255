"""Equation 1 on torch's fused kernel (3.2.1): the scores never reach memory, so there are no weights to show."""

from torch import Tensor
from torch.nn import functional as F

from headwise.model.attend.contract import Attend
from headwise.model.attend.reference import Reference


class Fused(Attend):
    """softmax(Q K^T / sqrt(d_k)) V in one kernel; with dropout on a CPU written out, since that kernel has none."""

    exact = True

    def forward(
        self, q: Tensor, k: Tensor, v: Tensor, keep: Tensor | None = None, dropout: float = 0.0
    ) -> tuple[Tensor, Tensor | None]:
        if dropout and q.device.type == "cpu":
            return Reference.forward(self, q, k, v, keep, dropout)[0], None  # type: ignore[arg-type]
        return F.scaled_dot_product_attention(q, k, v, attn_mask=keep, dropout_p=dropout), None
