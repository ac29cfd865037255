"""The step of `Transformer` in fewer calls: what decoding one sentence costs is mostly the calls themselves."""

import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from headwise.model.layers import DecoderLayer
from headwise.model.state import DecoderState
from headwise.model.transformer import Transformer

Norm = tuple[list[int], Tensor, Tensor, float]  # what F.layer_norm takes after x


class Matrix(NamedTuple):
    """A product with `(in, out)`, a layout in which few rows are multiplied sooner, and what is added to it."""

    weight: Tensor
    bias: Tensor | None
    array: np.ndarray[Any, np.dtype[np.float32]] | None  # the weight's own memory; None where numpy cannot take it
    added: np.ndarray[Any, np.dtype[np.float32]] | None  # the bias's


Times = Callable[[Tensor, Matrix], Tensor]  # (R, in) -> (R, out)


class Layer(NamedTuple):
    """What a decoder layer computes with; the matrices that make queries are divided by sqrt(d_k)."""

    norm_self: Norm
    qkv: Matrix  # of self-attention, one above the other
    o: Matrix
    norm_cross: Norm
    q_cross: Matrix
    o_cross: Matrix
    norm_ff: Norm
    w_1: Matrix
    w_2: Matrix


def packs(model: Transformer) -> bool:
    """Whether the model's step is one that can be packed: Equation 1, without rotary positions."""
    attentions = [a for layer in model.decoder.layers for a in (layer.self_attention, layer.cross_attention)]
    return all(a.attend.exact and not a.rotary for a in attentions)


class PackedStep:
    """`Transformer.step` with the weights that the model has when this is made.

    With `said`, pieces in ascending order, it knows of no others: an id is then a place in that list, and V its length.
    """

    @torch.no_grad()
    def __init__(self, model: Transformer, said: Tensor | None = None) -> None:
        config = model.config
        self.model, self.pre_norm = model, config.norm == "pre"
        self.heads, self.widths = config.n_heads, (config.d_k, config.d_v)
        self.activation = model.decoder.layers[0].feed_forward.activation
        self.layers = [_layer(layer, 1 / math.sqrt(config.d_k)) for layer in model.decoder.layers]
        table = model.embedding.weight if model.output.weight is None else model.output.weight
        rows: Tensor | slice = slice(None) if said is None else said
        self.said, bias = said, model.output.bias
        self.output = _matrix(table[rows], None if bias is None else bias[rows])

    def __call__(self, last_ids: Tensor, state: DecoderState, alone: bool = False) -> tuple[Tensor, DecoderState]:
        """last_ids `(R,)` -> log_probs `(R, V)` of the next piece, and the state after it; the old state is used up.

        `alone`: nothing is computed beside it, so that all cores may take part in a product; numpy is better at that.
        """
        model, state = self.model, state.with_room()
        times = _by_numpy if alone and self.output.array is not None else _by_torch
        ids = last_ids if self.said is None else self.said[last_ids]
        x = model.embed(model.embedding(ids), model.positions["tgt"](state.n_steps, 1))  # (R, d_model)
        hide = state.memory_hide.flatten(0, 1)  # (B * H, 1, T_src)
        for layer, past, memory in zip(self.layers, self._past(state), self._memory(state), strict=True):
            x = self._attend_to_past(x, layer, past, times)
            x = self._attend_to_memory(x, layer, memory, hide, times)
            y = F.layer_norm(x, *layer.norm_ff) if self.pre_norm else x
            x = self._add(x, times(self.activation(times(y, layer.w_1)), layer.w_2), layer.norm_ff)
        logits = times(model.decoder.norm(x), self.output)
        return logits.float().log_softmax(dim=-1), state._replace(n_steps=state.n_steps + 1)

    def _past(self, state: DecoderState) -> Iterator[tuple[Tensor, Tensor, Tensor, Tensor]]:
        """Of each layer where its key and value go, `(R, H * d)`, and all up to them, as they are multiplied."""
        t = state.n_steps
        keys = state.k[:, : t + 1].flatten(2, 3).permute(0, 2, 3, 1)  # (n_layers, R * H, d_k, t + 1)
        values = state.v[:, : t + 1].flatten(2, 3).transpose(1, 2)  # (n_layers, R * H, t + 1, d_v)
        k, v = state.k[:, t].flatten(2, 3), state.v[:, t].flatten(2, 3)
        return zip(*(part.unbind(0) for part in (k, v, keys, values)), strict=True)

    def _memory(self, state: DecoderState) -> Iterator[tuple[Tensor, Tensor]]:
        """Of each layer the source's keys `(B * H, d_k, T_src)` and values `(B * H, T_src, d_v)`."""
        keys, values = state.memory_k.flatten(1, 2).transpose(2, 3), state.memory_v.flatten(1, 2)
        return zip(keys.unbind(0), values.unbind(0), strict=True)

    def _attend_to_past(
        self, x: Tensor, layer: Layer, past: tuple[Tensor, Tensor, Tensor, Tensor], times: Times
    ) -> Tensor:
        """`(R, d_model)` -> `(R, d_model)`."""
        R, H, (d_k, d_v) = x.size(0), self.heads, self.widths
        to_k, to_v, keys, values = past
        y = F.layer_norm(x, *layer.norm_self) if self.pre_norm else x
        q, k, v = times(y, layer.qkv).split_with_sizes((H * d_k, H * d_k, H * d_v), dim=1)
        to_k.copy_(k)
        to_v.copy_(v)
        weights = torch.bmm(q.reshape(R * H, 1, d_k), keys).softmax(dim=-1)  # (R * H, 1, t + 1)
        mixed = torch.bmm(weights, values).view(R, H * d_v)
        return self._add(x, times(mixed, layer.o), layer.norm_self)

    def _attend_to_memory(
        self, x: Tensor, layer: Layer, memory: tuple[Tensor, Tensor], hide: Tensor, times: Times
    ) -> Tensor:
        """`(R, d_model)` -> `(R, d_model)`."""
        R, H, (d_k, d_v) = x.size(0), self.heads, self.widths
        keys, values = memory
        B = len(keys) // H
        y = F.layer_norm(x, *layer.norm_cross) if self.pre_norm else x
        q = times(y, layer.q_cross)
        if B == R:  # one hypothesis a sentence
            weights = torch.baddbmm(hide, q.view(R * H, 1, d_k), keys).softmax(dim=-1)
            mixed = torch.bmm(weights, values).view(R, H * d_v)
        else:
            q = q.view(B, -1, H, d_k).transpose(1, 2).flatten(0, 1)  # (B * H, K, d_k)
            weights = torch.baddbmm(hide, q, keys).softmax(dim=-1)  # (B * H, K, T_src)
            mixed = torch.bmm(weights, values).view(B, H, -1, d_v).transpose(1, 2).reshape(R, H * d_v)
        return self._add(x, times(mixed, layer.o_cross), layer.norm_cross)

    def _add(self, x: Tensor, new: Tensor, norm: Norm) -> Tensor:
        added = new.add_(x)
        return added if self.pre_norm else F.layer_norm(added, *norm)


def _layer(layer: DecoderLayer, scale: float) -> Layer:
    own, cross, ff = layer.self_attention, layer.cross_attention, layer.feed_forward
    return Layer(
        norm_self=_norm(layer.residual_self.norm),
        qkv=_side_by_side(own.w_q, own.w_k, own.w_v, scales=(scale, 1, 1)),
        o=_side_by_side(own.w_o),
        norm_cross=_norm(layer.residual_cross.norm),
        q_cross=_side_by_side(cross.w_q, scales=(scale,)),
        o_cross=_side_by_side(cross.w_o),
        norm_ff=_norm(layer.residual_ff.norm),
        w_1=_side_by_side(ff.w_1),
        w_2=_side_by_side(ff.w_2),
    )


def _side_by_side(*parts: nn.Linear, scales: tuple[float, ...] = (1,)) -> Matrix:
    """Several that are fed the same."""
    weights, biases = (
        [getattr(p, name) * s for p, s in zip(parts, scales, strict=True)] for name in ("weight", "bias")
    )
    return _matrix(torch.cat(weights), torch.cat(biases))


def _matrix(weight: Tensor, bias: Tensor | None) -> Matrix:
    """From a weight `(out, in)`."""
    turned = weight.detach().T.contiguous()
    fits = turned.device.type == "cpu" and turned.dtype == torch.float32
    added = bias.detach().numpy() if fits and bias is not None else None
    return Matrix(turned, bias, turned.numpy() if fits else None, added)


def _norm(norm: nn.LayerNorm) -> Norm:
    return list(norm.normalized_shape), norm.weight, norm.bias, norm.eps


def _by_torch(x: Tensor, matrix: Matrix) -> Tensor:
    return x @ matrix.weight if matrix.bias is None else torch.addmm(matrix.bias, x, matrix.weight)


def _by_numpy(x: Tensor, matrix: Matrix) -> Tensor:
    y = x.numpy() @ matrix.array
    if matrix.added is not None:
        y += matrix.added
    return torch.from_numpy(y)
