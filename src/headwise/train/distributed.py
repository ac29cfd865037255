"""One process or several (torchrun): who they are, and the few things that they tell each other."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta

import torch
from torch import distributed

from headwise.errors import TrainingError

PATIENCE = timedelta(hours=3)  # others wait so long while the first one prepares or validates


CPU = torch.device("cpu")


@dataclass(frozen=True)
class Team:
    """The processes that learn together; each sees the whole plan and takes its share of every batch."""

    rank: int = 0
    size: int = 1
    device: torch.device = CPU

    @property
    def first(self) -> bool:
        """Whether this process is the one that writes and draws."""
        return self.rank == 0

    def sums(self, values: Sequence[float]) -> list[float]:
        """Each value added up over all processes."""
        if self.size == 1:
            return list(values)
        total = torch.tensor(values, dtype=torch.float64, device=self.device)
        _reduce(total, distributed.ReduceOp.SUM)
        return total.tolist()

    def largest(self, value: int) -> int:
        """The largest over all processes; none goes on before all have come here."""
        if self.size == 1:
            return value
        most = torch.tensor(value, device=self.device)
        _reduce(most, distributed.ReduceOp.MAX)
        return int(most)


ALONE = Team()


def _reduce(values: torch.Tensor, operation: distributed.ReduceOp.RedOpType) -> None:
    """Over all processes, in place."""
    try:
        distributed.all_reduce(values, operation)
    except RuntimeError as error:  # a connection was closed
        raise TrainingError("another process of this run has ended; what it says is the cause") from error


@contextmanager
def gathered(device: str) -> Iterator[Team]:
    """The team that torchrun started, nccl on GPUs and gloo on CPUs, or this process alone."""
    size = int(os.environ.get("WORLD_SIZE", "1"))
    if size == 1:
        yield Team(device=torch.device(device))
        return
    place = torch.device(device)
    if place.type == "cuda":
        place = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
        torch.cuda.set_device(place)
    distributed.init_process_group("nccl" if place.type == "cuda" else "gloo", timeout=PATIENCE)
    try:
        yield Team(distributed.get_rank(), distributed.get_world_size(), place)
    finally:
        distributed.destroy_process_group()
