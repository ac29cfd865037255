"""The only place where a mask is made; True means "may be attended to", and every query may attend to something."""

import torch
from torch import Tensor


def padding_keep(ids: Tensor, pad_id: int) -> Tensor:
    """Which keys are real: `(B, T_k)` ids -> `(B, 1, 1, T_k)`.

    A row of nothing but padding keeps its first position, so that its softmax stays finite.
    """
    keep = ids != pad_id
    keep[:, 0] |= ~keep.any(dim=1)
    return keep[:, None, None, :]


def causal_keep(n: int, device: torch.device) -> Tensor:
    """Which keys are not in the future (3.2.3): `(1, 1, T_q, T_k)` with T_q = T_k = n.

    Targets are padded on the right, so this also hides padding from every real position.
    """
    return torch.ones(n, n, dtype=torch.bool, device=device).tril()[None, None]
