"""The reference engine: the model of the paper and the searches of this package, on torch."""

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import TypeVar

import numpy as np
import torch
from torch import Tensor

from headwise.bundle import Bundle
from headwise.config import SearchConfig
from headwise.engine.contract import Array, Ids
from headwise.model.capture import capture
from headwise.model.packed import Packed, packs
from headwise.model.state import DecoderState
from headwise.model.transformer import Transformer
from headwise.search.beam import beam
from headwise.search.greedy import Choose, greedy, likeliest
from headwise.search.hypothesis import Hypothesis
from headwise.search.sample import drawn
from headwise.search.task import Step, Task

T = TypeVar("T")
Start = Callable[[Tensor], DecoderState]

BATCH_TOKENS = 2048  # source pieces decoded at once by a thread
WIDE = 256  # a wider model counts them times the beam, since what it remembers would fill the memory
MANY_CORES = 4  # with more, numpy's threads may wait for each other in products as small as those of a step


class TorchEngine:
    """Generates from a model as it is at that moment.

    `said` are the pieces among which it chooses (`Bundle.said`); none stands for all.
    """

    def __init__(self, model: Transformer, said: Ids = ()) -> None:
        self.model, self.parameters = model, list(model.parameters())
        self.said = tuple(said) or tuple(range(model.config.vocab_size))
        self.places = {piece: place for place, piece in enumerate(said)}  # none where all are said
        self.rows = torch.tensor(said, device=model.embedding.weight.device) if said else None
        self.packed: tuple[object, Packed] | None = None  # what it was made of, and it

    @classmethod
    def of(cls, bundle: Bundle, threads: int) -> "TorchEngine":
        """A saved model on the CPU; so many threads are used by all of this process."""
        torch.set_num_threads(threads)
        return cls(Transformer.from_arrays(bundle.config.model, bundle.weights), bundle.said)

    def generate(
        self,
        sources: Sequence[Ids],
        search: SearchConfig,
        prefixes: Sequence[Ids] = (),
        numbers: Sequence[int] = (),
        scores: bool = True,
    ) -> Iterator[tuple[int, list[Hypothesis]]]:
        """The place of each source and its hypotheses, best first.

        Sources of a like length are decoded together. `prefixes` are what they begin with, if any; sampling draws by
        `numbers`, or else by the places of the sources. Where a prefix has a piece that is never said, all may be.
        """
        if self.places and not all(map(self._says, prefixes)):
            yield from TorchEngine(self.model).generate(sources, search, prefixes, numbers, scores)
            return
        numbers = numbers or range(len(sources))
        budget = BATCH_TOKENS // (search.beam_size if self.model.config.d_model > WIDE else 1)
        batches = list(_batches([len(ids) for ids in sources], budget))
        start, step = self._start_and_step(alone=len(batches) == 1)

        @torch.inference_mode()
        def decode(indices: list[int]) -> list[list[Hypothesis]]:
            task = self._task([sources[i] for i in indices], [prefixes[i] for i in indices] if prefixes else [], search)
            state = start(self._tensor([sources[i] for i in indices]))
            if search.beam_size > 1 and not search.temperature:
                return beam(step, state, task, search)
            choose: Choose = likeliest
            if search.temperature:
                choose = drawn(search, [numbers[i] for i in indices], max(task.max_steps), task.device)
            return [[one] for one in greedy(step, state, task, search, choose)]

        for indices, results in zip(batches, self._each(decode, batches), strict=True):
            for i, hypotheses in zip(indices, results, strict=True):
                yield i, [replace(h, ids=tuple(self.said[k] for k in h.ids)) for h in hypotheses]

    def _says(self, pieces: Ids) -> bool:
        return not self.places or all(piece in self.places for piece in pieces)

    def _place(self, piece: int) -> int:
        """By which a search knows it."""
        return self.places[piece] if self.places else piece

    def _start_and_step(self, alone: bool) -> tuple[Start, Step[DecoderState]]:
        """Those of the model as its weights are now; `alone`: no other batch is decoded beside it."""
        if self.model.training:
            self.model.eval()
        if not packs(self.model):
            among = self.model.step if self.rows is None else partial(_among, self.model.step, self.rows)
            return self.model.start, among
        versions = [(parameter.data_ptr(), parameter._version) for parameter in self.parameters]
        if self.packed is None or self.packed[0] != versions:
            self.packed = versions, Packed(self.model, self.rows)
        cores = len(os.sched_getaffinity(0))  # numpy takes them all without being asked
        alone = alone and cores <= min(torch.get_num_threads(), MANY_CORES)
        return partial(self.packed[1].start, alone=alone), partial(self.packed[1].step, alone=alone)

    def _each(self, decode: Callable[[list[int]], T], batches: list[list[int]]) -> list[T]:
        """Every batch decoded; on a CPU one thread takes one batch, since within a step threads wait for each other."""
        threads = torch.get_num_threads()
        if self.model.embedding.weight.device.type != "cpu" or threads == 1:
            return [decode(batch) for batch in batches]
        torch.set_num_threads(1)  # of matrix products, which all threads have in common; more would hinder numpy's
        try:
            if len(batches) == 1:
                return [decode(batches[0])]
            with ThreadPoolExecutor(threads, initializer=torch.set_num_threads, initargs=(1,)) as pool:
                return list(pool.map(decode, reversed(batches)))[::-1]  # the longest first, so that all end together
        finally:
            torch.set_num_threads(threads)

    @torch.inference_mode()
    def score(self, sources: Sequence[Ids], targets: Sequence[Ids]) -> list[list[float]]:
        """The log probability of every piece of each target, its end included, given its source.

        It is that among all pieces where a target has one that is never said.
        """
        found: list[list[float]] = [[] for _ in sources]
        never = torch.ones(self.model.config.vocab_size, dtype=torch.bool, device=self.model.embedding.weight.device)
        never[list(self.said)] = False
        for indices, src, tgt in self._pairs(sources, targets):
            hidden = self.model.decode(self.model.encode(src), self._shifted(tgt))
            says = torch.tensor([self._says(targets[i]) for i in indices], device=never.device)
            logits = self.model.project(hidden).float().masked_fill(says[:, None, None] & never, -torch.inf)
            log_probs = logits.log_softmax(dim=-1).gather(2, tgt[:, :, None])[:, :, 0]
            for i, row in zip(indices, log_probs.tolist(), strict=True):
                found[i] = row[: len(targets[i])]
        return found

    @torch.inference_mode()
    def attention(self, sources: Sequence[Ids], targets: Sequence[Ids]) -> list[Array]:
        """What each piece, the end left out, looks at, `(T_tgt, T_src)`: the mean of the second-last layer's heads."""
        found: list[Array] = [np.empty(0)] * len(sources)
        for indices, src, tgt in self._pairs(sources, targets):
            with capture(self.model) as seen:
                self.model.decode(self.model.encode(src), self._shifted(tgt))
            weights = seen.cross[max(0, len(seen.cross) - 2)].mean(dim=1).cpu().numpy()
            for row, i in enumerate(indices):
                found[i] = weights[row, : len(targets[i]), : len(sources[i])]
        return found

    def _pairs(self, sources: Sequence[Ids], targets: Sequence[Ids]) -> Iterator[tuple[list[int], Tensor, Tensor]]:
        """Batches of pairs, padded: which ones they are, the sources and the targets."""
        self.model.eval()
        lengths = [max(len(src), len(tgt)) for src, tgt in zip(sources, targets, strict=True)]
        for indices in _batches(lengths, BATCH_TOKENS):
            yield indices, self._tensor([sources[i] for i in indices]), self._tensor([targets[i] for i in indices])

    def _shifted(self, tgt: Tensor) -> Tensor:
        """What the decoder is fed to say `tgt`."""
        return torch.cat((torch.full_like(tgt[:, :1], self.model.config.bos_id), tgt[:, :-1]), dim=1)

    def _tensor(self, texts: Sequence[Ids]) -> Tensor:
        longest = max(map(len, texts))
        rows = [[*ids, *[self.model.config.pad_id] * (longest - len(ids))] for ids in texts]
        return torch.tensor(rows, device=self.model.embedding.weight.device)

    def _task(self, sources: list[Sequence[int]], prefixes: list[Sequence[int]], search: SearchConfig) -> Task:
        config = self.model.config
        return Task(
            self._place(config.bos_id),
            self._place(config.eos_id),
            max_steps=[len(ids) + search.extra_pieces for ids in sources],
            never=tuple(sorted(map(self._place, {config.pad_id, config.bos_id} - {config.eos_id}))),
            min_pieces=search.min_pieces,
            no_repeat=search.no_repeat,
            prefix=[[*map(self._place, prefix)] for prefix in prefixes],
            device=self.model.embedding.weight.device,
        )


def _among(
    step: Step[DecoderState], said: Tensor, last_ids: Tensor, state: DecoderState
) -> tuple[Tensor, DecoderState]:
    """A step that knows of no other pieces than `said`, each by its place."""
    log_probs, state = step(said[last_ids], state)
    return log_probs[:, said].log_softmax(dim=-1), state


def _batches(lengths: Sequence[int], budget: int) -> Iterator[list[int]]:
    """Indices, shortest first, cut so that no batch has more cells than the budget; one is always taken."""
    batch: list[int] = []
    for i in sorted(range(len(lengths)), key=lengths.__getitem__):
        if batch and lengths[i] * (len(batch) + 1) > budget:
            yield batch
            batch = []
        batch.append(i)
    if batch:
        yield batch
