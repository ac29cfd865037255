"""What every engine promises."""

from collections.abc import Iterable, Iterator, Sequence
from operator import itemgetter
from typing import Any, Protocol, TypeVar

import numpy as np

from headwise.config import SearchConfig
from headwise.search.hypothesis import Hypothesis

Array = np.ndarray[Any, np.dtype[Any]]
Ids = Sequence[int]
T = TypeVar("T")


class Engine(Protocol):
    """Ids to ids."""

    def generate(
        self,
        sources: Sequence[Ids],
        search: SearchConfig,
        prefixes: Sequence[Ids] = (),
        numbers: Sequence[int] = (),
        scores: bool = True,
    ) -> Iterator[tuple[int, list[Hypothesis]]]:
        """The place of each source and its hypotheses, best first, in any order, as they are found.

        `prefixes` are what they begin with, if any. Sampling draws by `numbers`, or else by the places of the sources.
        Without `scores` an engine may leave log probabilities out, as NaN, where that saves work.
        """

    def score(self, sources: Sequence[Ids], targets: Sequence[Ids]) -> list[list[float]]:
        """The log probability of every piece of each target, its end included."""

    def attention(self, sources: Sequence[Ids], targets: Sequence[Ids]) -> list[Array]:
        """What each piece of each target, its end left out, looks at: `(T_tgt, T_src)`."""


def in_order(found: Iterable[tuple[int, T]]) -> list[T]:
    """What was found for each source, by their places."""
    return [one for _, one in sorted(found, key=itemgetter(0))]
