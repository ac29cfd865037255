"""Feed-forward (3.3), residual connection with norm (3.1), and the layers of encoder and decoder."""

from collections.abc import Callable

from torch import Tensor, nn
from torch.nn import functional as F

from headwise.config import ModelConfig
from headwise.model.attend import Attend
from headwise.model.attention import MultiHeadAttention
from headwise.model.dropout import Dropout
from headwise.model.state import DecoderState

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {"relu": F.relu_, "gelu": F.gelu, "silu": F.silu}


class FeedForward(nn.Module):
    """max(0, x W_1 + b_1) W_2 + b_2, at every position alike (3.3)."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.w_1 = nn.Linear(config.d_model, config.d_ff)
        self.w_2 = nn.Linear(config.d_ff, config.d_model)
        self.activation = ACTIVATIONS[config.activation]
        self.dropout = Dropout(config.ff_dropout)

    def forward(self, x: Tensor) -> Tensor:
        """`(..., d_model)` -> `(..., d_model)`."""
        return self.w_2(self.dropout(self.activation(self.w_1(x))))


class Residual(nn.Module):
    """LayerNorm(x + Dropout(Sublayer(x))) (3.1, 5.4), or x + Dropout(Sublayer(LayerNorm(x))) for pre-norm."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(config.d_model, config.norm_eps)
        self.dropout = Dropout(config.dropout)
        self.pre_norm = config.norm == "pre"

    def forward(self, x: Tensor, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
        """`(..., d_model)` -> `(..., d_model)`."""
        if self.pre_norm:
            return x + self.dropout(sublayer(self.norm(x)))
        return self.norm(x + self.dropout(sublayer(x)))


class EncoderLayer(nn.Module):
    """Self-attention, then feed-forward (3.1)."""

    def __init__(self, config: ModelConfig, attend: Attend) -> None:
        super().__init__()
        self.self_attention = MultiHeadAttention(config, attend, rotary=config.positions == "rotary")
        self.feed_forward = FeedForward(config)
        self.residual_self = Residual(config)
        self.residual_ff = Residual(config)

    def forward(self, x: Tensor, keep: Tensor) -> Tensor:
        """`(B, T_src, d_model)` -> `(B, T_src, d_model)`."""
        x = self.residual_self(x, lambda y: self.self_attention(y, y, keep))
        x = self.residual_ff(x, self.feed_forward)
        return x


class DecoderLayer(nn.Module):
    """Masked self-attention, attention over the memory, feed-forward (3.1)."""

    def __init__(self, config: ModelConfig, attend: Attend, cross_attend: Attend) -> None:
        super().__init__()
        self.self_attention = MultiHeadAttention(config, attend, rotary=config.positions == "rotary")
        self.cross_attention = MultiHeadAttention(config, cross_attend, rotary=False)
        self.feed_forward = FeedForward(config)
        self.residual_self = Residual(config)
        self.residual_cross = Residual(config)
        self.residual_ff = Residual(config)

    def forward(self, x: Tensor, keep: Tensor, memory: Tensor, memory_keep: Tensor) -> Tensor:
        """All positions at once: `(B, T_tgt, d_model)` -> `(B, T_tgt, d_model)`."""
        x = self.residual_self(x, lambda y: self.self_attention(y, y, keep))
        x = self.residual_cross(x, lambda y: self.cross_attention(y, memory, memory_keep))
        x = self.residual_ff(x, self.feed_forward)
        return x

    def step(self, x: Tensor, state: DecoderState, i: int) -> Tensor:
        """One position: x `(B, K, d_model)`, K hypotheses a sentence -> `(B, K, d_model)`.

        The new keys and values are written into the cache of layer `i`, which is this one.
        """
        t = state.n_steps
        k, v = state.k[i], state.v[i]  # (capacity, R, H, d)

        def attend_to_past(y: Tensor) -> Tensor:
            row = y.flatten(0, 1)[:, None]  # (R, 1, d_model)
            new_k, new_v = self.self_attention.keys_values(row, t)
            k[t], v[t] = new_k[:, :, 0], new_v[:, :, 0]
            past_k, past_v = k[: t + 1].permute(1, 2, 0, 3), v[: t + 1].permute(1, 2, 0, 3)  # (R, H, t + 1, d)
            return self.self_attention.mix(self.self_attention.queries(row, t), past_k, past_v, None).view_as(y)

        def attend_to_memory(y: Tensor) -> Tensor:
            q = self.cross_attention.queries(y)  # (B, H, K, d_k)
            return self.cross_attention.mix(q, state.memory_k[i], state.memory_v[i], state.memory_keep)

        x = self.residual_self(x, attend_to_past)
        x = self.residual_cross(x, attend_to_memory)
        x = self.residual_ff(x, self.feed_forward)
        return x
