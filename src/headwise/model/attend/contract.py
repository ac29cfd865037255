"""What every way of attending promises."""

from abc import ABC, abstractmethod
from typing import ClassVar

from torch import Tensor, nn

from headwise.config import ModelConfig


class Attend(nn.Module, ABC):
    """A way from queries, keys and values to mixed values; one instance for each place in the model.

    Keys that `keep` hides have no effect at all; weights, where given, sum to one over the keys that are left.
    """

    exact: ClassVar[bool] = False  # equals `reference` but for rounding

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()

    @abstractmethod
    def forward(
        self, q: Tensor, k: Tensor, v: Tensor, keep: Tensor | None = None, dropout: float = 0.0
    ) -> tuple[Tensor, Tensor | None]:
        """Mixed values `(B, H, T_q, d_v)`, and the weights `(B, H, T_q, T_k)` or None where the kernel has none.

        q `(B, H, T_q, d_k)`, k `(B, H, T_k, d_k)`, v `(B, H, T_k, d_v)`; `keep` broadcasts to the weights' shape,
        None shows everything. `dropout` falls on the weights; the weights returned are those before it.
        """
