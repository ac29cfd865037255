"""Equation 1 by whichever exact way is fast for the device and the length at hand."""

from torch import Tensor

from headwise.config import ModelConfig
from headwise.model.attend.contract import Attend
from headwise.model.attend.fused import Fused
from headwise.model.attend.reference import Reference

# On a CPU the kernel pays from about here on for whole sentences, and never for one query: benchmarks/attend_speed.py
CPU_FUSED_FROM_KEYS = 64


class Auto(Attend):
    """`reference` on a CPU for few keys or one query, `fused` elsewhere."""

    exact = True

    def __init__(self, config: ModelConfig) -> None:
        super().__init__(config)
        self.reference, self.fused = Reference(config), Fused(config)

    def forward(
        self, q: Tensor, k: Tensor, v: Tensor, keep: Tensor | None = None, dropout: float = 0.0
    ) -> tuple[Tensor, Tensor | None]:
        small = q.device.type == "cpu" and (k.size(-2) < CPU_FUSED_FROM_KEYS or q.size(-2) == 1)
        way = self.reference if small else self.fused
        return way.forward(q, k, v, keep, dropout)
