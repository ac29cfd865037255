"""Positions by dialect name (3.5): five kinds of sinusoids, learned, rotary, none."""

from typing import cast

import torch
from torch import Tensor, nn

from headwise import sinusoids as tables
from headwise.config import ModelConfig, SinusoidName
from headwise.errors import InputError
from headwise.sinusoids import DIALECTS, Dialect

TABLE_ROWS = 512  # sinusoids kept ready; further ones are computed when asked for


def sinusoids(first: int, n: int, d_model: int, dialect: Dialect) -> Tensor:
    """Rows `first` to `first + n` of the table `(n, d_model)`."""
    return torch.from_numpy(tables.sinusoids(first, n, d_model, dialect))


class Sinusoidal(nn.Module):
    """Sinusoids of one dialect, at any length."""

    table: Tensor

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.dialect = DIALECTS[cast(SinusoidName, config.positions)]
        self.register_buffer("table", sinusoids(0, TABLE_ROWS, config.d_model, self.dialect), persistent=False)

    def forward(self, first: int, n: int) -> Tensor:
        """Positions `first` to `first + n`: `(n, d_model)`."""
        if first + n <= TABLE_ROWS:
            return self.table[first : first + n]
        return sinusoids(first, n, self.table.size(1), self.dialect).to(self.table)


class Learned(nn.Embedding):
    """A learned vector for each position (Table 3 E)."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__(config.max_positions, config.d_model)

    def forward(self, first: int, n: int) -> Tensor:  # type: ignore[override]
        """Positions `first` to `first + n`: `(n, d_model)`."""
        if first + n > self.num_embeddings:
            raise InputError(
                f"{first + n} pieces are too many for {self.num_embeddings} learned positions; "
                "split the text, or train with a larger model.max_positions"
            )
        return self.weight[first : first + n]


class Nowhere(nn.Module):
    """No positions are added to the embeddings (none, or rotary, which turns queries and keys instead)."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()

    def forward(self, first: int, n: int) -> Tensor:
        """A zero that broadcasts."""
        return torch.zeros(())


def added_positions(config: ModelConfig) -> nn.ModuleDict:
    """What is added to the embeddings of the source (`src`) and of the target (`tgt`)."""
    kind = {"learned": Learned, "rotary": Nowhere, "none": Nowhere}.get(config.positions, Sinusoidal)
    return nn.ModuleDict({"src": kind(config), "tgt": kind(config)})


def rotate(x: Tensor, first: int) -> Tensor:
    """Rotary positions: turns each pair (i, i + d_k/2) of queries or keys `(B, H, T, d_k)` by its position's angle."""
    half = x.size(-1) // 2
    position = torch.arange(first, first + x.size(-2), dtype=torch.float32, device=x.device)[:, None]
    angle = position / 10000 ** (torch.arange(half, dtype=torch.float32, device=x.device) / half)  # (T, d_k / 2)
    sin, cos = angle.sin().to(x.dtype), angle.cos().to(x.dtype)
    left, right = x[..., :half], x[..., half:]
    return torch.cat((left * cos - right * sin, right * cos + left * sin), dim=-1)
