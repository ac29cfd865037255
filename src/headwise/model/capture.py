"""Every head's attention weights, on request; outside the `with` the model knows nothing of it."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from headwise.errors import InputError
from headwise.model.attend import Attend, Reference
from headwise.model.transformer import Transformer


class Seen:
    """What was seen: `encoder`, `decoder` and `cross`, each a tuple over layers of weights `(B, H, T_q, T_k)`.

    Several calls, as in decoding step by step, are joined along T_q; a key that was not there yet has weight 0.
    """

    def __init__(self) -> None:
        self._calls: dict[str, list[list[Tensor]]] = {}

    @property
    def encoder(self) -> tuple[Tensor, ...]:
        """Self-attention of the encoder, a tensor a layer."""
        return self._join("encoder")

    @property
    def decoder(self) -> tuple[Tensor, ...]:
        """Self-attention of the decoder, a tensor a layer."""
        return self._join("decoder")

    @property
    def cross(self) -> tuple[Tensor, ...]:
        """Attention of the decoder over the source, a tensor a layer."""
        return self._join("cross")

    def _join(self, place: str) -> tuple[Tensor, ...]:
        return tuple(_along_queries(calls) for calls in self._calls[place] if calls)


def _along_queries(calls: list[Tensor]) -> Tensor:
    if len({weights.shape[:2] for weights in calls}) > 1:
        raise InputError(
            "the batch changed while attention was captured; decode first, then run the model on the result"
        )
    n_keys = max(weights.size(-1) for weights in calls)
    return torch.cat([F.pad(weights, (0, n_keys - weights.size(-1))) for weights in calls], dim=-2)


@contextmanager
def capture(model: Transformer) -> Iterator[Seen]:
    """Collect the weights of every head in every layer while the model runs in this thread.

    Where a kernel has no weights to give, `reference` stands in for it.
    """
    seen, thread = Seen(), threading.get_ident()
    reference = Reference(model.config)

    def keep_weights(calls: list[Tensor]) -> Any:
        def hook(attend: Attend, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor | None]) -> Any:
            if threading.get_ident() != thread:
                return None
            mixed, weights = output
            if weights is None and not attend.exact:
                raise InputError(f"{type(attend).__name__} has no attention weights to show")
            if weights is None:
                mixed, weights = reference(*inputs)
            calls.append(weights)
            return mixed, weights

        return hook

    places = {
        "encoder": [layer.self_attention.attend for layer in model.encoder.layers],
        "decoder": [layer.self_attention.attend for layer in model.decoder.layers],
        "cross": [layer.cross_attention.attend for layer in model.decoder.layers],
    }
    handles = []
    for place, attends in places.items():
        seen._calls[place] = [[] for _ in attends]
        for attend, calls in zip(attends, seen._calls[place], strict=True):
            handles.append(attend.register_forward_hook(keep_weights(calls)))
    try:
        yield seen
    finally:
        for handle in handles:
            handle.remove()
