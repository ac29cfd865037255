"""What each head of the decoder looks at in the source while a translation is said."""

from dataclasses import dataclass

import numpy as np
import torch

from headwise.engine.contract import Array
from headwise.model.capture import capture
from headwise.model.transformer import Transformer
from headwise.text.special import EOS
from headwise.text.tokenizer import Tokenizer

END = "⏎"  # stands for the end of a text


@dataclass(frozen=True)
class Heads:
    """The cross-attention of one layer for one pair; every row of weights sums to 1."""

    layer: int  # counted from 1
    source: tuple[str, ...]  # pieces, the end included
    target: tuple[str, ...]
    weights: Array  # (H, T_tgt, T_src)

    @property
    def mean(self) -> Array:
        """Over the heads, (T_tgt, T_src)."""
        mean: Array = self.weights.mean(axis=0)
        return mean

    @property
    def entropy(self) -> float:
        """Of the mean's rows on average, in nats: 0 where each piece looks at one place."""
        mean = self.mean
        return float(-(mean * np.log(np.maximum(mean, 1e-12))).sum(axis=-1).mean())


@torch.inference_mode()
def heads(model: Transformer, tokenizer: Tokenizer, source: str, target: str) -> list[Heads]:
    """Every decoder layer's view of the source while it says the target, its end included."""
    [src], [tgt] = tokenizer.encode_source([source]), tokenizer.encode_target([target])
    model.eval()
    with capture(model) as seen:
        model(torch.tensor([src]), torch.tensor([[model.config.bos_id, *tgt[:-1]]]))
    pieces = _named(tokenizer.pieces(src, "source")), _named(tokenizer.pieces(tgt, "target"))
    return [Heads(n, *pieces, weights[0].numpy()) for n, weights in enumerate(seen.cross, start=1)]


def sharpest(layers: list[Heads]) -> Heads:
    """The layer that looks at the fewest places at once, which tells the most."""
    return min(layers, key=lambda layer: layer.entropy)


def _named(pieces: list[str]) -> tuple[str, ...]:
    return tuple(END if piece == EOS else piece for piece in pieces)
