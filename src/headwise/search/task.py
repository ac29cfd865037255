"""What every search starts from."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, Self, TypeVar

import torch
from torch import Tensor

from headwise.errors import InputError


class State(Protocol):
    """What a step function remembers of the rows that it decodes."""

    def reorder(self, rows: Tensor) -> Self:
        """Continue from these rows, `(B', K')`, those of one line belonging to one sentence."""
        ...


S = TypeVar("S", bound=State)

# last_ids (R,) and the state -> log_probs (R, V) and the state after it; R starts at one row a sentence
Step = Callable[[Tensor, S], tuple[Tensor, S]]


@dataclass(frozen=True)
class Task:
    """The ids that matter to a search, and how many steps each sentence may take, the end included."""

    bos_id: int
    eos_id: int
    max_steps: Sequence[int]
    never: tuple[int, ...] = ()  # ids that are not to be generated
    device: str | torch.device = "cpu"

    def __post_init__(self) -> None:
        if min(self.max_steps, default=1) < 1:
            raise InputError("max_steps must be at least 1 for every sentence")

    def allowed(self, log_probs: Tensor) -> Tensor:
        """`(R, V)` with what is never to be generated at -inf."""
        if not self.never:
            return log_probs
        return log_probs.index_fill(1, torch.tensor(self.never, device=log_probs.device), -torch.inf)
