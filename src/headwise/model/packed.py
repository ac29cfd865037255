"""Start and step of `Transformer` in fewer calls: what decoding one sentence costs is mostly the calls themselves."""

import math
import mmap
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from headwise.model.layers import DecoderLayer, EncoderLayer
from headwise.model.state import DecoderState
from headwise.model.transformer import Transformer

BLOCK_BYTES = 32 * 2**20
PANEL = 64  # columns
FEW_ROWS = 16  # no more are multiplied sooner panel by panel (docs/design.md)
PAYS = 1.5  # how much sooner, as measured: so much that every process of a machine finds the same

Array = np.ndarray[Any, np.dtype[np.float32]]
Norm = tuple[list[int], Tensor, Tensor, float]  # what F.layer_norm takes after x


class Matrix(NamedTuple):
    """A product with `(in, out)`, a layout in which few rows are multiplied sooner, and what is added to it."""

    weight: Tensor
    bias: Tensor | None
    array: Array | None  # the weight's own memory; None where numpy cannot take it
    added: Array | None  # the bias's
    panels: Array | None  # its columns by PANEL, `(n, in, PANEL)`, the last ones filled up with zeros


Times = Callable[[Tensor, Matrix], Tensor]  # (R, in) -> (R, out)


class Own(NamedTuple):
    """What an encoder layer computes with; the matrices that make queries are divided by sqrt(d_k)."""

    norm_self: Norm
    qkv: Matrix  # one above the other
    o: Matrix
    norm_ff: Norm
    w_1: Matrix
    w_2: Matrix


class Layer(NamedTuple):
    """What a decoder layer computes with."""

    own: Own
    norm_cross: Norm
    q_cross: Matrix
    o_cross: Matrix


def packs(model: Transformer) -> bool:
    """Whether the model's step is one that can be packed: Equation 1, without rotary positions."""
    attentions = [a for layer in model.decoder.layers for a in (layer.self_attention, layer.cross_attention)]
    return all(a.attend.exact and not a.rotary for a in attentions)


class Packed:
    """Start and step with the weights that the model has when this is made.

    `alone`: nothing is computed beside it, so that all cores may take part in a product; numpy is better at that, for
    some numbers of rows panel by panel: products that small its BLAS makes without copying the matrix first. `panels`
    says which, else it is measured.

    With `said`, pieces in ascending order, a step knows of no others: an id is then a place in that list, V its length.
    """

    @torch.no_grad()
    def __init__(self, model: Transformer, said: Tensor | None = None, panels: range | None = None) -> None:
        config = model.config
        panels = few_rows() if panels is None else panels
        self.times_alone: Times = partial(_by_panels, few=panels) if panels else _by_numpy
        self.model, self.pre_norm = model, config.norm == "pre"
        self.heads, self.widths = config.n_heads, (config.d_k, config.d_v)
        self.activation = model.decoder.layers[0].feed_forward.activation
        scale, cross = 1 / math.sqrt(config.d_k), [layer.cross_attention for layer in model.decoder.layers]
        table = model.embedding.weight if model.output.weight is None else model.output.weight
        block = Block(bool(panels))
        self.layers = [_layer(layer, scale, block) for layer in model.decoder.layers]
        rows: Tensor | slice = slice(None) if said is None else said
        self.said, bias = said, model.output.bias
        self.output = block.matrix(table[rows], None if bias is None else bias[rows])
        plain = all(a.attend.exact and not a.rotary for a in (layer.self_attention for layer in model.encoder.layers))
        self.encoder = [_own(layer, scale, block) for layer in model.encoder.layers] if plain else None
        self.memory = block.side_by_side(*(a.w_k for a in cross), *(a.w_v for a in cross))

    def start(self, src: Tensor, alone: bool = False) -> DecoderState:
        """src `(B, T_src)` -> the state before the first step; packed is that of one sentence by itself."""
        B, T = src.shape
        if self.encoder is None or B > 1 or not self._takes_numpy(alone):
            return self.model.start(src)
        H, (d_k, d_v), n_layers, model = self.heads, self.widths, len(self.layers), self.model
        times = self.times_alone
        x = model.embed(model.src_table(src[0]), model.positions["src"](0, T))  # (T_src, d_model)
        for layer in self.encoder:
            y = F.layer_norm(x, *layer.norm_self) if self.pre_norm else x
            q, k, v = times(y, layer.qkv).split_with_sizes((H * d_k, H * d_k, H * d_v), dim=1)
            weights = torch.bmm(q.view(T, H, d_k).transpose(0, 1), k.view(T, H, d_k).permute(1, 2, 0)).softmax(dim=-1)
            mixed = torch.bmm(weights, v.view(T, H, d_v).transpose(0, 1))  # (H, T_src, d_v)
            x = self._add(x, times(mixed.transpose(0, 1).reshape(T, H * d_v), layer.o), layer.norm_self)
            x = self._feed_forward(x, layer, times)
        parts = times(model.encoder.norm(x), self.memory).split_with_sizes(
            (n_layers * H * d_k, n_layers * H * d_v), dim=1
        )
        keys, values = (part.view(T, n_layers, 1, H, -1).permute(1, 2, 3, 0, 4).contiguous() for part in parts)
        return DecoderState.start(keys, values, src.new_ones(1, 1, 1, T, dtype=torch.bool))

    def _takes_numpy(self, alone: bool) -> bool:
        """Whether numpy takes the products."""
        return alone and self.output.array is not None

    def step(self, last_ids: Tensor, state: DecoderState, alone: bool = False) -> tuple[Tensor, DecoderState]:
        """last_ids `(R,)` -> log_probs `(R, V)` of the next piece, and the state after it; the old state is used up."""
        model, state = self.model, state.with_room()
        times = self.times_alone if self._takes_numpy(alone) else _by_torch
        ids = last_ids if self.said is None else self.said[last_ids]
        x = model.embed(model.embedding(ids), model.positions["tgt"](state.n_steps, 1))  # (R, d_model)
        hide = state.memory_hide.flatten(0, 1)  # (B * H, 1, T_src)
        for layer, past, memory in zip(self.layers, self._past(state), self._memory(state), strict=True):
            x = self._attend_to_past(x, layer.own, past, times)
            x = self._attend_to_memory(x, layer, memory, hide, times)
            x = self._feed_forward(x, layer.own, times)
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
        self, x: Tensor, layer: Own, past: tuple[Tensor, Tensor, Tensor, Tensor], times: Times
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

    def _feed_forward(self, x: Tensor, layer: Own, times: Times) -> Tensor:
        """`(R, d_model)` -> `(R, d_model)`."""
        y = F.layer_norm(x, *layer.norm_ff) if self.pre_norm else x
        return self._add(x, times(self.activation(times(y, layer.w_1)), layer.w_2), layer.norm_ff)

    def _add(self, x: Tensor, new: Tensor, norm: Norm) -> Tensor:
        added = new.add_(x)
        return added if self.pre_norm else F.layer_norm(added, *norm)


class Block:
    """Where the matrices of a step stand one after the other, in large pages where Linux gives them: a step reads them
    all, and waits less often for where the next page is."""

    def __init__(self, panels: bool) -> None:
        self.panels = panels
        self.free: Array = np.empty(0, dtype=np.float32)

    def put(self, array: Array) -> Array:
        """A copy of it."""
        if array.size > self.free.size:
            n_bytes = max(BLOCK_BYTES, array.nbytes)
            if hasattr(mmap, "MADV_HUGEPAGE"):
                memory = mmap.mmap(-1, n_bytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
                with suppress(OSError):  # a kernel that has none
                    memory.madvise(mmap.MADV_HUGEPAGE)
            else:
                memory = mmap.mmap(-1, n_bytes)
            self.free = np.frombuffer(memory, dtype=np.float32)  # keeps it as long as an array has a part of it
        place, self.free = self.free[: array.size].reshape(array.shape), self.free[array.size :]
        place[:] = array
        return place

    def side_by_side(self, *parts: nn.Linear, scales: tuple[float, ...] = ()) -> Matrix:
        """Several that are fed the same."""
        scales = scales or (1,) * len(parts)
        weights, biases = (
            [getattr(p, name) * s for p, s in zip(parts, scales, strict=True)] for name in ("weight", "bias")
        )
        return self.matrix(torch.cat(weights), torch.cat(biases))

    def matrix(self, weight: Tensor, bias: Tensor | None) -> Matrix:
        """From a weight `(out, in)`."""
        turned = weight.detach().T
        if turned.device.type != "cpu" or turned.dtype != torch.float32:
            return Matrix(turned.contiguous(), bias, None, None, None)
        added = None if bias is None else bias.detach().numpy()
        panels = self.put(_in_panels(turned.numpy())) if self.panels else None
        array = self.put(turned.numpy())
        return Matrix(torch.from_numpy(array), bias, array, added, panels)


def _in_panels(array: Array) -> Array:
    """`(in, out)` -> `(n, in, PANEL)`."""
    d_in, d_out = array.shape
    filled = np.pad(array, ((0, 0), (0, -d_out % PANEL)))
    return filled.reshape(d_in, -1, PANEL).transpose(1, 0, 2)


def _layer(layer: DecoderLayer, scale: float, block: Block) -> Layer:
    cross = layer.cross_attention
    return Layer(
        own=_own(layer, scale, block),
        norm_cross=_norm(layer.residual_cross.norm),
        q_cross=block.side_by_side(cross.w_q, scales=(scale,)),
        o_cross=block.side_by_side(cross.w_o),
    )


def _own(layer: EncoderLayer | DecoderLayer, scale: float, block: Block) -> Own:
    own, ff = layer.self_attention, layer.feed_forward
    return Own(
        norm_self=_norm(layer.residual_self.norm),
        qkv=block.side_by_side(own.w_q, own.w_k, own.w_v, scales=(scale, 1, 1)),
        o=block.side_by_side(own.w_o),
        norm_ff=_norm(layer.residual_ff.norm),
        w_1=block.side_by_side(ff.w_1),
        w_2=block.side_by_side(ff.w_2),
    )


def _norm(norm: nn.LayerNorm) -> Norm:
    return list(norm.normalized_shape), norm.weight, norm.bias, norm.eps


def _by_torch(x: Tensor, matrix: Matrix) -> Tensor:
    return x @ matrix.weight if matrix.bias is None else torch.addmm(matrix.bias, x, matrix.weight)


def _by_numpy(x: Tensor, matrix: Matrix) -> Tensor:
    y = x.numpy() @ matrix.array
    if matrix.added is not None:
        y += matrix.added
    return torch.from_numpy(y)


def _by_panels(x: Tensor, matrix: Matrix, few: range) -> Tensor:
    R, d_out = len(x), matrix.weight.size(1)
    if R not in few or matrix.panels is None:
        return _by_numpy(x, matrix)
    rows = x.numpy() if R > 1 else x.numpy().repeat(2, axis=0)  # two rows are sooner multiplied than one
    y = np.matmul(rows, matrix.panels)[:, :R].transpose(1, 0, 2).reshape(R, -1)
    y = np.ascontiguousarray(y[:, :d_out])
    if matrix.added is not None:
        y += matrix.added
    return torch.from_numpy(y)


@cache
def few_rows() -> range:
    """How many rows numpy multiplies sooner panel by panel on this machine: none, from two on, or from one on.

    It depends on the kernels that its BLAS has taken: those of AVX-512 gain, others lose.
    """
    matrices = [np.ones((1024, 256), dtype=np.float32) for _ in range(6)]  # more than the caches near a core hold
    block = Block(panels=True)
    laid_out = [block.matrix(torch.from_numpy(matrix.T), None) for matrix in matrices]

    def seconds(times: Times, n_rows: int) -> float:
        x, took = torch.ones(n_rows, 1024), []
        for _ in range(5):
            began = time.perf_counter()
            for matrix in laid_out:
                times(x, matrix)
            took.append(time.perf_counter() - began)
        return min(took)

    by_panels = partial(_by_panels, few=range(1, FEW_ROWS + 1))
    one, several = (seconds(_by_numpy, n) > PAYS * seconds(by_panels, n) for n in (1, 4))
    return range(1 if one else 2, FEW_ROWS + 1) if several else range(0)
