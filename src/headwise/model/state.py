"""What decoding remembers between steps."""

from typing import NamedTuple

import torch
from torch import Tensor

FIRST_CAPACITY = 32  # positions; doubled when full, so that growing costs nothing on average


class DecoderState(NamedTuple):
    """Keys and values of what was decoded, a row a hypothesis, and of the source, a row a sentence.

    B sentences with K hypotheses each are R = B * K rows, those of a sentence side by side. A state is used up by the
    step or the reordering that it is given to: both write into its buffers.
    """

    n_steps: int
    k: Tensor  # (n_layers, capacity, R, H, d_k); the first n_steps positions are filled
    v: Tensor  # (n_layers, capacity, R, H, d_v)
    memory_k: Tensor  # (n_layers, B, H, T_src, d_k)
    memory_v: Tensor  # (n_layers, B, H, T_src, d_v)
    memory_keep: Tensor  # (B, 1, 1, T_src)
    memory_hide: Tensor  # (B, H, 1, T_src), the same to be added to scores: 0 or -inf

    @classmethod
    def start(cls, memory_k: Tensor, memory_v: Tensor, memory_keep: Tensor) -> "DecoderState":
        """Before the first step: one hypothesis a sentence."""

        def room(source: Tensor) -> Tensor:
            n_layers, B, H, _, width = source.shape
            return source.new_empty(n_layers, FIRST_CAPACITY, B, H, width)

        _, B, H, T_src, _ = memory_k.shape
        hide = memory_k.new_zeros(B, H, 1, T_src).masked_fill_(~memory_keep, -torch.inf)
        return cls(0, room(memory_k), room(memory_v), memory_k, memory_v, memory_keep, hide)

    @property
    def n_sentences(self) -> int:
        return self.memory_keep.size(0)

    def with_room(self) -> "DecoderState":
        """The same with room for one position more."""
        if self.n_steps < self.k.size(1):
            return self
        return self._replace(
            k=torch.cat((self.k, torch.empty_like(self.k)), dim=1),
            v=torch.cat((self.v, torch.empty_like(self.v)), dim=1),
        )

    def reorder(self, rows: Tensor) -> "DecoderState":
        """Continue from these rows, `(B', K')`: those of one line belong to one sentence.

        Sentences may leave (B' < B), hypotheses fan out or narrow (K' != K). Only rows that move are copied.
        """
        n_hypotheses = self.k.size(2) // self.n_sentences
        chosen, sentences = rows.flatten(), rows[:, 0] // n_hypotheses
        moved = _moved(chosen)
        state = self._replace(k=self._pick(self.k, chosen, moved), v=self._pick(self.v, chosen, moved))
        moved = _moved(sentences)
        if len(sentences) == self.n_sentences and not moved.numel():
            return state
        return state._replace(
            memory_k=_taken(self.memory_k, 1, sentences, moved),
            memory_v=_taken(self.memory_v, 1, sentences, moved),
            memory_keep=_taken(self.memory_keep, 0, sentences, moved),
            memory_hide=_taken(self.memory_hide, 0, sentences, moved),
        )

    def _pick(self, cache: Tensor, rows: Tensor, moved: Tensor) -> Tensor:
        n, filled = rows.numel(), cache[:, : self.n_steps]
        if n > cache.size(2):
            grown = cache.new_empty(*cache.shape[:2], n, *cache.shape[3:])
            grown[:, : self.n_steps] = filled[:, :, rows]
            return grown
        _taken(filled, 2, rows, moved)
        return cache[:, :, :n]


def _moved(rows: Tensor) -> Tensor:
    """The places that get another row than they have."""
    return (rows != torch.arange(len(rows), device=rows.device)).nonzero().flatten()


def _taken(x: Tensor, dim: int, rows: Tensor, moved: Tensor) -> Tensor:
    """These rows of it, written over it; only those that move are copied."""
    if moved.numel():
        x.index_copy_(dim, moved, x.index_select(dim, rows[moved]))  # the right side is a copy
    return x.narrow(dim, 0, len(rows))
