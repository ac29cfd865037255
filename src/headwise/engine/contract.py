"""What every engine promises."""

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from headwise.config import SearchConfig
from headwise.search.hypothesis import Hypothesis

Array = np.ndarray[Any, np.dtype[Any]]
Ids = Sequence[int]


class Engine(Protocol):
    """Ids to ids."""

    def generate(
        self,
        sources: Sequence[Ids],
        search: SearchConfig,
        prefixes: Sequence[Ids] = (),
        numbers: Sequence[int] = (),
        n_best: int | None = None,
    ) -> list[list[Hypothesis]]:
        """The hypotheses of each source, best first, all or `n_best`; `prefixes` are what they begin with, if any.

        Sampling draws by `numbers`, or else by the places of the sources.
        """

    def score(self, sources: Sequence[Ids], targets: Sequence[Ids]) -> list[list[float]]:
        """The log probability of every piece of each target, its end included."""

    def attention(self, sources: Sequence[Ids], targets: Sequence[Ids]) -> list[Array]:
        """What each piece of each target, its end left out, looks at: `(T_tgt, T_src)`."""
