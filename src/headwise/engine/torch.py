"""The reference engine: the model of the paper and the searches of this package, on torch."""

from collections.abc import Iterator, Sequence

import torch

from headwise.bundle import Bundle
from headwise.config import SearchConfig
from headwise.model.transformer import Transformer
from headwise.search.beam import beam
from headwise.search.greedy import greedy
from headwise.search.hypothesis import Hypothesis
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
    def generate(self, sources: Sequence[Sequence[int]], search: SearchConfig) -> list[list[Hypothesis]]:
        """The hypotheses of each source, best first; sources of a like length are decoded together."""
        config, device = self.model.config, self.model.embedding.weight.device
        self.model.eval()
        found: list[list[Hypothesis]] = [[] for _ in sources]
        for indices in _batches([len(ids) for ids in sources], BATCH_TOKENS // search.beam_size):
            longest = len(sources[indices[-1]])
            rows = [[*sources[i], *[config.pad_id] * (longest - len(sources[i]))] for i in indices]
            task = Task(
                config.bos_id,
                config.eos_id,
                max_steps=[len(sources[i]) + search.extra_pieces for i in indices],
                never=tuple({config.pad_id, config.bos_id} - {config.eos_id}),
                device=device,
            )
            state = self.model.start(torch.tensor(rows, device=device))
            if search.beam_size == 1:
                results = [[best] for best in greedy(self.model.step, state, task, search)]
            else:
                results = beam(self.model.step, state, task, search)
            for i, hypotheses in zip(indices, results, strict=True):
                found[i] = hypotheses
        return found


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
