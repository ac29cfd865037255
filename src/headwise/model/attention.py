"""Multi-head attention (3.2.2): project, split, attend, join."""

from torch import Tensor, nn

from headwise.config import ModelConfig
from headwise.model.attend import Attend
from headwise.model.positions import rotate


class MultiHeadAttention(nn.Module):
    """Concat(head_1 ... head_h) W^O, head_i = Attention(Q W_i^Q, K W_i^K, V W_i^V); d_k and d_v are free."""

    def __init__(self, config: ModelConfig, attend: Attend, rotary: bool) -> None:
        super().__init__()
        self.n_heads, self.rotary, self.dropout = config.n_heads, rotary, config.attention_dropout
        d_keys, d_values = config.n_heads * config.d_k, config.n_heads * config.d_v
        self.w_q = nn.Linear(config.d_model, d_keys)
        self.w_k = nn.Linear(config.d_model, d_keys)
        self.w_v = nn.Linear(config.d_model, d_values)
        self.w_o = nn.Linear(d_values, config.d_model)
        self.attend = attend

    def forward(self, x: Tensor, source: Tensor, keep: Tensor | None) -> Tensor:
        """x `(B, T_q, d_model)` asks, source `(B, T_k, d_model)` answers -> `(B, T_q, d_model)`."""
        return self.mix(self.queries(x), *self.keys_values(source), keep)

    def queries(self, x: Tensor, first: int = 0) -> Tensor:
        """`(B, T, d_model)` -> q `(B, H, T, d_k)`; `first` is the number of the first position."""
        q = self._split(self.w_q(x))
        return rotate(q, first) if self.rotary else q

    def keys_values(self, x: Tensor, first: int = 0) -> tuple[Tensor, Tensor]:
        """`(B, T, d_model)` -> k `(B, H, T, d_k)`, v `(B, H, T, d_v)`; `first` is the number of the first position."""
        k, v = self._split(self.w_k(x)), self._split(self.w_v(x))
        return rotate(k, first) if self.rotary else k, v

    def mix(self, q: Tensor, k: Tensor, v: Tensor, keep: Tensor | None) -> Tensor:
        """Attend in every head and join the heads: -> `(B, T_q, d_model)`."""
        mixed, _ = self.attend(q, k, v, keep, self.dropout if self.training else 0.0)
        joined = mixed.transpose(1, 2).flatten(2)  # (B, H, T_q, d_v) -> (B, T_q, H * d_v)
        return self.w_o(joined)

    def _split(self, x: Tensor) -> Tensor:
        B, T, _ = x.shape
        return x.view(B, T, self.n_heads, -1).transpose(1, 2)  # (B, T, H * d) -> (B, H, T, d)
