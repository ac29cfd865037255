"""Sinusoids (3.5) in the five dialects that exist, as numpy arrays."""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from headwise.config import SinusoidName

Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True)
class Dialect:
    """One toolkit's reading of "sinusoidal"."""

    layout: Literal["interleaved", "halves"]  # sin, cos, sin, cos ... or all sines, then all cosines
    less: int  # the exponent of 10000 is i / (d_model / 2 - less)
    first: int  # the number of the first position


DIALECTS: dict[SinusoidName, Dialect] = {
    "paper": Dialect("interleaved", less=0, first=0),  # also OpenNMT-py and JoeyNMT
    "hf-marian": Dialect("halves", less=0, first=0),  # also Sockeye
    "tensor2tensor": Dialect("halves", less=1, first=0),  # also Marian's own C++
    "fairseq": Dialect("halves", less=1, first=2),
    "ctranslate2": Dialect("halves", less=1, first=1),  # what CTranslate2 does unless it is given a table
}


def sinusoids(first: int, n: int, d_model: int, dialect: Dialect) -> Array:
    """Rows `first` to `first + n` of the table `(n, d_model)`: sin and cos of pos / 10000^(2i / d_model), float32."""
    position = np.arange(first + dialect.first, first + dialect.first + n, dtype=np.float64)[:, None]
    i = np.arange((d_model + 1) // 2, dtype=np.float64)
    angle = position / 10000 ** (i / (d_model / 2 - dialect.less))
    table = np.empty((n, d_model), dtype=np.float64)
    if dialect.layout == "interleaved":
        table[:, 0::2], table[:, 1::2] = np.sin(angle), np.cos(angle[:, : d_model // 2])
    else:
        table[:, : d_model // 2], table[:, d_model // 2 :] = np.sin(angle), np.cos(angle)
    return table.astype(np.float32)
