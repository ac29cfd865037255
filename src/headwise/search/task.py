"""What every search starts from."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, Self, TypeVar

import torch
from torch import Tensor

from headwise.errors import InputError
from headwise.search import rules


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
    """The ids that matter to a search, how many steps each sentence may take, the end included, and what it may say."""

    bos_id: int
    eos_id: int
    max_steps: Sequence[int]
    never: tuple[int, ...] = ()  #: ids that are not to be generated
    min_pieces: int = 0  #: no end before so many
    no_repeat: int = 0  #: so many pieces in a row never stand there twice; 0 lets them
    prefix: Sequence[Sequence[int]] = ()  #: what each sentence begins with, or nothing at all
    device: str | torch.device = "cpu"

    def __post_init__(self) -> None:
        if min(self.max_steps, default=1) < 1:
            raise InputError("max_steps must be at least 1 for every sentence")
        if self.prefix and len(self.prefix) != len(self.max_steps):
            raise InputError(f"{len(self.prefix)} prefixes for {len(self.max_steps)} sentences: one for each")

    def allowed(self, log_probs: Tensor, ids: Tensor, sentences: Tensor) -> Tensor:
        """log_probs `(R, V)` with what may not follow ids `(R, t)` of sentences `(R,)` at -inf."""
        t = ids.size(1)
        free = rules.never(log_probs, self.never)
        free = rules.at_least(free, t, self.min_pieces, self.eos_id)
        free = rules.no_repeat(free, ids, self.no_repeat)
        if self.no_repeat:
            free = rules.or_end(log_probs, free, self.eos_id)
        longest = max(map(len, self.prefix), default=0)
        return free if t >= longest else rules.follow(log_probs, free, self._wanted(t)[sentences])

    def _wanted(self, t: int) -> Tensor:
        """Piece t of each sentence's prefix `(B,)`, -1 where it is over."""
        return torch.tensor([prefix[t] if t < len(prefix) else -1 for prefix in self.prefix], device=self.device)


def staying(over: Tensor) -> Tensor:
    """Which of those in a batch go on, placed so that few move: the last take the places of those that are over."""
    going = (~over).nonzero().flatten()
    freed = over[: len(going)].nonzero().flatten()
    places = torch.arange(len(going), device=over.device)
    places[freed] = going[len(going) - len(freed) :]
    return places
