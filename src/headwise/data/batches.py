"""Batches of about equal cost and little padding, shuffled by seed and epoch; the position is two integers."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from headwise.data.prepared import Prepared, Side
from headwise.errors import DataError
from headwise.text.special import BOS_ID, PAD_ID

Array = np.ndarray[Any, np.dtype[Any]]


class Position(NamedTuple):
    """What comes next: a batch of an epoch. All that resuming needs."""

    epoch: int = 0
    batch: int = 0


START = Position()


@dataclass(frozen=True)
class Batch:
    """Pairs side by side, padded on the right, as the model takes them."""

    src: Array  # (B, T_src) int64
    tgt_in: Array  # (B, T_tgt), begins with bos
    tgt_out: Array  # (B, T_tgt), ends with eos
    pairs: Array  # (B,), which pairs of the prepared data these are
    position: Position
    after: Position = START  # what comes next

    @property
    def n_tokens(self) -> int:
        """Target pieces that are no padding."""
        return int(np.count_nonzero(self.tgt_out != PAD_ID))

    def share(self, rank: int, n_ranks: int) -> "Batch":
        """Every n-th pair, for one of several processes; where none is left, one whose target is all padding."""
        if n_ranks == 1:
            return self
        rows = slice(rank, None, n_ranks)
        if rank < len(self.pairs):
            return replace(self, src=self.src[rows], tgt_in=self.tgt_in[rows], tgt_out=self.tgt_out[rows])
        return replace(self, src=self.src[:1], tgt_in=self.tgt_in[:1], tgt_out=np.full_like(self.tgt_out[:1], PAD_ID))


class Batches:
    """All batches of all epochs; the same settings give the same ones in the same order."""

    def __init__(
        self, prepared: Prepared, batch_tokens: int, seed: int, weights: Sequence[float] = (), shuffle: bool = True
    ) -> None:
        if not len(prepared):
            raise DataError("no pairs are left to make batches of")
        self.prepared, self.batch_tokens, self.seed, self.shuffle = prepared, batch_tokens, seed, shuffle
        self.weights = weights or [1.0] * len(prepared.begins)
        self._src_lengths, self._tgt_lengths = prepared.src.lengths(), prepared.tgt.lengths()

    def epoch(self, number: int) -> list[Array]:
        """The pairs of each batch of an epoch, in the order in which they come.

        A number past the last pair stands for the same pairs, cut into pieces in another way.
        """
        random = np.random.default_rng([self.seed, number])
        chosen = self._chosen(random) + number % self.prepared.n_samples * len(self.prepared)
        if self.shuffle:
            chosen = random.permutation(chosen)
        src, tgt = self._src_lengths[chosen], self._tgt_lengths[chosen]
        longer = np.maximum(src, tgt)
        # By the longer side, then by how much longer it is, up and down in turn, so that neighbours stay alike where
        # one length ends and the next begins. Stable: equal lengths stay as they were shuffled.
        order = np.lexsort((np.where(longer % 2, tgt - src, src - tgt), longer))
        batches = _cut(chosen[order], longer[order], self.batch_tokens)
        if self.shuffle:
            batches = [batches[i] for i in random.permutation(len(batches))]
        return batches

    def after(self, position: Position, max_epochs: int | None = None) -> Iterator[Batch]:
        """From a position on, endlessly or for so many epochs in all."""
        for epoch in range(position.epoch, max_epochs or 2**62):
            plan = self.epoch(epoch)
            if not plan:
                raise DataError(f"the weights {list(self.weights)} leave no pair in an epoch")
            first = position.batch if epoch == position.epoch else 0
            for i in range(first, len(plan)):
                last = i + 1 == len(plan)
                yield self.load(plan[i], Position(epoch, i), Position(epoch + last, 0 if last else i + 1))

    def load(self, pairs: Array, position: Position = START, after: Position = START) -> Batch:
        """These pairs as padded arrays."""
        src, tgt_out = _padded(self.prepared.src, pairs), _padded(self.prepared.tgt, pairs)
        tgt_in = np.full_like(tgt_out, PAD_ID)
        tgt_in[:, 0], tgt_in[:, 1:] = BOS_ID, tgt_out[:, :-1]
        ends = self._tgt_lengths[pairs]  # the end is not fed back
        tgt_in[np.arange(tgt_in.shape[1]) >= ends[:, None]] = PAD_ID
        return Batch(src, tgt_in, tgt_out, pairs, position, after)

    def padding(self, number: int = 0) -> float:
        """The share of an epoch's cells, both sides, that are padding."""
        cells = pieces = 0
        for pairs in self.epoch(number):
            for lengths in (self._src_lengths[pairs], self._tgt_lengths[pairs]):
                cells += int(lengths.max()) * len(pairs)
                pieces += int(lengths.sum())
        return 1 - pieces / cells if cells else 0.0

    def _chosen(self, random: np.random.Generator) -> Array:
        """The pairs of an epoch: a corpus of weight 2.5 stands twice in it, and a random half of it once more."""
        parts = []
        ends = [*self.prepared.begins[1:], len(self.prepared)]
        for begin, end, weight in zip(self.prepared.begins, ends, self.weights, strict=True):
            pairs = np.arange(begin, end)
            parts += [pairs] * int(weight)
            n_more = round((weight - int(weight)) * len(pairs))
            parts.append(np.sort(random.choice(pairs, n_more, replace=False)) if n_more else pairs[:0])
        return np.concatenate(parts) if parts else np.empty(0, np.int64)


def _cut(pairs: Array, longer: Array, budget: int) -> list[Array]:
    """Cut pairs, sorted by their longer side, so that neither has more cells than the budget; one is always taken."""
    batches = []
    begin = 0
    while begin < len(pairs):
        window = longer[begin : begin + budget // int(longer[begin]) + 1]
        n = max(1, int(np.count_nonzero(window * np.arange(1, len(window) + 1) <= budget)))
        batches.append(pairs[begin : begin + n])
        begin += n
    return batches


def _padded(side: Side, pairs: Array) -> Array:
    texts = [side[i] for i in pairs]
    padded = np.full((len(texts), max(map(len, texts))), PAD_ID, dtype=np.int64)
    for row, text in zip(padded, texts, strict=True):
        row[: len(text)] = text
    return padded
