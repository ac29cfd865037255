"""What a search finds."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Hypothesis:
    """One output: its ids without the end, the sum of its log probabilities, and that sum normalised by length."""

    ids: tuple[int, ...]
    log_prob: float
    score: float
    complete: bool  # False: cut at the limit before its end
