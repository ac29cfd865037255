"""A model of random numbers, fixed by sentence and prefix, and a state that holds searches to their contract."""

from dataclasses import dataclass

import numpy as np
import torch


def log_probs_after(seed: int, prefix: tuple[int, ...], vocab_size: int) -> np.ndarray:
    """The toy's distribution after a prefix: a softmax of random numbers, fixed by seed and prefix."""
    logits = 2 * np.random.default_rng([seed, *prefix]).normal(size=vocab_size)
    return logits - np.log(np.exp(logits).sum())


@dataclass(frozen=True)
class ToyState:
    """Each row's sentence (a seed) and prefix; it holds the search to the contract of `reorder`."""

    vocab_size: int
    rows: tuple[tuple[int, tuple[int, ...]], ...]

    @classmethod
    def start(cls, vocab_size: int, seeds: list[int]) -> "ToyState":
        return cls(vocab_size, tuple((seed, ()) for seed in seeds))

    def reorder(self, rows: torch.Tensor) -> "ToyState":
        for line in rows.tolist():
            assert len({self.rows[row][0] for row in line}) == 1, "a line of rows must be of one sentence"
        return ToyState(self.vocab_size, tuple(self.rows[row] for row in rows.flatten().tolist()))


def toy_step(last_ids: torch.Tensor, state: ToyState) -> tuple[torch.Tensor, ToyState]:
    assert last_ids.shape == (len(state.rows),)
    rows = tuple((seed, (*prefix, last)) for (seed, prefix), last in zip(state.rows, last_ids.tolist(), strict=True))
    table = np.stack([log_probs_after(seed, prefix, state.vocab_size) for seed, prefix in rows])
    return torch.from_numpy(table), ToyState(state.vocab_size, rows)
