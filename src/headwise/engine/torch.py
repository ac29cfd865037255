"""The reference engine: the model of the paper and the searches of this package, on torch."""

from collections.abc import Iterator, Sequence

import torch

from headwise.bundle import Bundle
from headwise.config import SearchConfig
from headwise.model.transformer import Transformer
from headwise.search.beam import beam
from headwise.search.greedy import greedy, likeliest
from headwise.search.hypothesis import Hypothesis
from headwise.search.sample import drawn
from headwise.search.task import Task

BATCH_TOKENS = 4096  # source pieces decoded at once, times the beam


class TorchEngine:
    """Generates from a model as it is at that moment."""

    def __init__(self, model: Transformer) -> None:
        self.model = model

    @classmethod
    def of(cls, bundle: Bundle, threads: int) -> "TorchEngine":
        """A saved model on the CPU; so many threads are used by all of this process."""
        torch.set_num_threads(threads)
        return cls(Transformer.from_arrays(bundle.config.model, bundle.weights))

    @torch.inference_mode()
    def generate(
        self,
        sources: Sequence[Sequence[int]],
        search: SearchConfig,
        prefixes: Sequence[Sequence[int]] = (),
        numbers: Sequence[int] = (),
    ) -> list[list[Hypothesis]]:
        """The hypotheses of each source, best first; sources of a like length are decoded together.

        `prefixes` are what they begin with, if there are any; sampling draws by `numbers`, or else by their places.
        """
        device = self.model.embedding.weight.device
        numbers = numbers or range(len(sources))
        self.model.eval()
        found: list[list[Hypothesis]] = [[] for _ in sources]
        for indices in _batches([len(ids) for ids in sources], BATCH_TOKENS // search.beam_size):
            task = self._task([sources[i] for i in indices], [prefixes[i] for i in indices] if prefixes else [], search)
            state = self.model.start(
                torch.tensor(_padded([sources[i] for i in indices], self.model.config.pad_id), device=device)
            )
            if search.temperature is not None or search.beam_size == 1:
                choose = likeliest
                if search.temperature is not None:
                    choose = drawn(search, [numbers[i] for i in indices], max(task.max_steps), device)
                results = [[one] for one in greedy(self.model.step, state, task, search, choose)]
            else:
                results = beam(self.model.step, state, task, search)
            for i, hypotheses in zip(indices, results, strict=True):
                found[i] = hypotheses
        return found

    def _task(self, sources: list[Sequence[int]], prefixes: list[Sequence[int]], search: SearchConfig) -> Task:
        config = self.model.config
        return Task(
            config.bos_id,
            config.eos_id,
            max_steps=[len(ids) + search.extra_pieces for ids in sources],
            never=tuple({config.pad_id, config.bos_id} - {config.eos_id}),
            min_pieces=search.min_pieces,
            no_repeat=search.no_repeat,
            prefix=prefixes,
            device=self.model.embedding.weight.device,
        )


def _padded(sources: list[Sequence[int]], pad_id: int) -> list[list[int]]:
    longest = max(map(len, sources))
    return [[*ids, *[pad_id] * (longest - len(ids))] for ids in sources]


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
