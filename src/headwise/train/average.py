"""Averages of weights: over checkpoints (6.1), and over the steps as they go by."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from headwise.bundle import Bundle
from headwise.model.transformer import Transformer

Array = np.ndarray[Any, np.dtype[Any]]


def average(checkpoints: Sequence[Path]) -> dict[str, Array]:
    """The mean of their weights (6.1), summed in float64."""
    sums: dict[str, Array] = {}
    for path in checkpoints:
        for name, array in Bundle.read(path).weights.items():
            sums[name] = sums[name] + array if name in sums else array.astype(np.float64)
    return {name: (total / len(checkpoints)).astype(np.float32) for name, total in sums.items()}


@torch.no_grad()
def follow(ema: Transformer, model: Transformer, decay: float, step: int) -> None:
    """One step of a moving average: `decay` of what it was, the rest of what the weights are now.

    It is less at first, so that the weights from before the first step are soon forgotten.
    """
    kept = min(decay, (1 + step) / (10 + step))
    torch._foreach_lerp_(list(ema.parameters()), list(model.parameters()), 1 - kept)
