"""Length penalties: what a sum of log probabilities is divided by to give a score."""

from torch import Tensor

from headwise.config import PenaltyName


def length_penalty(name: PenaltyName, alpha: float, n_pieces: Tensor, complete: Tensor) -> Tensor:
    """The divisor for hypotheses of `n_pieces`, the end not counted; `complete` says which of them have an end.

    gnmt        ((5 + n) / 6)^alpha, n with the end: the paper's (6.1), as tensor2tensor counts
    length      n^alpha, n without the end (at least 1)
    length+eos  n^alpha, n with the end: as CTranslate2 and fairseq
    """
    with_end = (n_pieces + complete).double()
    match name:
        case "gnmt":
            return ((5.0 + with_end) / 6.0) ** alpha
        case "length":
            return n_pieces.clamp(min=1).double() ** alpha
        case "length+eos":
            return with_end.clamp(min=1) ** alpha
