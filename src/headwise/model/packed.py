"""The step of `Transformer` in fewer calls: what decoding one sentence costs is mostly the calls themselves."""

import math
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from headwise.model.layers import DecoderLayer
from headwise.model.state import DecoderState
from headwise.model.transformer import Transformer

Matrix = tuple[Tensor, Tensor]  # bias (out,) and weight (in, out): so laid out, few rows are multiplied sooner
Norm = tuple[list[int], Tensor, Tensor, float]  # what F.layer_norm takes after x


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
    """`Transformer.step` with the weights that the model has when this is made."""

    @torch.no_grad()
    def __init__(self, model: Transformer) -> None:
        config = model.config
        self.model, self.pre_norm = model, config.norm == "pre"
        self.heads, self.widths = config.n_heads, (config.d_k, config.d_v)
        self.activation = model.decoder.layers[0].feed_forward.activation
        self.layers = [_layer(layer, 1 / math.sqrt(config.d_k)) for layer in model.decoder.layers]
        self.output = (model.embedding.weight if model.output.weight is None else model.output.weight).T.contiguous()

    def __call__(self, last_ids: Tensor, state: DecoderState) -> tuple[Tensor, DecoderState]:
        """last_ids `(R,)` -> log_probs `(R, V)` of the next piece, and the state after it; the old state is used up."""
        model, state = self.model, state.with_room()
        x = model.embed(model.embedding(last_ids), model.positions["tgt"](state.n_steps, 1))  # (R, d_model)
        shown = torch.zeros_like(state.memory_keep, dtype=x.dtype).masked_fill_(~state.memory_keep, -math.inf)
        hide = shown.expand(-1, self.heads, -1, -1).flatten(0, 1)  # (B * H, 1, T_src): added to scores
        for i, layer in enumerate(self.layers):
            x = self._attend_to_past(x, layer, state, i)
            x = self._attend_to_memory(x, layer, state, i, hide)
            y = F.layer_norm(x, *layer.norm_ff) if self.pre_norm else x
            x = self._add(x, _times(self.activation(_times(y, layer.w_1)), layer.w_2), layer.norm_ff)
        logits = model.decoder.norm(x) @ self.output
        if model.output.bias is not None:
            logits += model.output.bias
        return logits.float().log_softmax(dim=-1), state._replace(n_steps=state.n_steps + 1)

    def _attend_to_past(self, x: Tensor, layer: Layer, state: DecoderState, i: int) -> Tensor:
        """`(R, d_model)` -> `(R, d_model)`."""
        R, H, t, (d_k, d_v) = x.size(0), self.heads, state.n_steps, self.widths
        past_k, past_v = state.k[i], state.v[i]  # (capacity, R, H, d)
        y = F.layer_norm(x, *layer.norm_self) if self.pre_norm else x
        q, k, v = _times(y, layer.qkv).split_with_sizes((H * d_k, H * d_k, H * d_v), dim=1)
        past_k[t], past_v[t] = k.view(R, H, d_k), v.view(R, H, d_v)
        keys, values = past_k[: t + 1].flatten(1, 2), past_v[: t + 1].flatten(1, 2)  # (t + 1, R * H, d)
        weights = torch.bmm(q.reshape(R * H, 1, d_k), keys.permute(1, 2, 0)).softmax(dim=-1)  # (R * H, 1, t + 1)
        mixed = torch.bmm(weights, values.transpose(0, 1)).view(R, H * d_v)
        return self._add(x, _times(mixed, layer.o), layer.norm_self)

    def _attend_to_memory(self, x: Tensor, layer: Layer, state: DecoderState, i: int, hide: Tensor) -> Tensor:
        """`(R, d_model)` -> `(R, d_model)`."""
        R, H, B, (d_k, d_v) = x.size(0), self.heads, state.n_sentences, self.widths
        y = F.layer_norm(x, *layer.norm_cross) if self.pre_norm else x
        q = _times(y, layer.q_cross).view(B, -1, H, d_k).transpose(1, 2).flatten(0, 1)  # (B * H, K, d_k)
        keys, values = state.memory_k[i].flatten(0, 1), state.memory_v[i].flatten(0, 1)  # (B * H, T_src, d)
        weights = torch.baddbmm(hide, q, keys.transpose(1, 2)).softmax(dim=-1)  # (B * H, K, T_src)
        mixed = torch.bmm(weights, values).view(B, H, -1, d_v).transpose(1, 2).reshape(R, H * d_v)
        return self._add(x, _times(mixed, layer.o_cross), layer.norm_cross)

    def _add(self, x: Tensor, new: Tensor, norm: Norm) -> Tensor:
        added = new.add_(x)
        return added if self.pre_norm else F.layer_norm(added, *norm)


def _layer(layer: DecoderLayer, scale: float) -> Layer:
    own, cross, ff = layer.self_attention, layer.cross_attention, layer.feed_forward
    return Layer(
        norm_self=_norm(layer.residual_self.norm),
        qkv=_matrix(own.w_q, own.w_k, own.w_v, scales=(scale, 1, 1)),
        o=_matrix(own.w_o),
        norm_cross=_norm(layer.residual_cross.norm),
        q_cross=_matrix(cross.w_q, scales=(scale,)),
        o_cross=_matrix(cross.w_o),
        norm_ff=_norm(layer.residual_ff.norm),
        w_1=_matrix(ff.w_1),
        w_2=_matrix(ff.w_2),
    )


def _matrix(*parts: nn.Linear, scales: tuple[float, ...] = (1,)) -> Matrix:
    """Several that are fed the same, side by side."""
    biases, weights = (
        [getattr(p, name) * s for p, s in zip(parts, scales, strict=True)] for name in ("bias", "weight")
    )
    return torch.cat(biases), torch.cat(weights).T.contiguous()


def _norm(norm: nn.LayerNorm) -> Norm:
    return list(norm.normalized_shape), norm.weight, norm.bias, norm.eps


def _times(x: Tensor, matrix: Matrix) -> Tensor:
    return torch.addmm(matrix[0], x, matrix[1])
