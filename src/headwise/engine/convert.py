"""A model in CTranslate2's form, written from the bundle's arrays."""

import platform
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from headwise.atomic import new_folder
from headwise.bundle import Bundle
from headwise.config import ModelConfig
from headwise.machine import instructions
from headwise.sinusoids import DIALECTS, sinusoids

TABLE_ROWS = 2048  # positions that are written; a longer source is refused
ACTIVATIONS = {"relu": "RELU", "gelu": "GELU", "silu": "SWISH"}


def write_model(bundle: Bundle, folder: Path, largest: int | None = None) -> None:
    """The bundle's model in CTranslate2's form.

    float32, which the library converts to other types when it loads, or with int8 matrices up to `largest`.
    """
    with new_folder(folder) as unfinished:
        spec = make_spec(bundle.config.model, bundle.weights, largest, bundle.said)
        spec.save(str(unfinished))


def largest_int8() -> int:
    """The largest weight that does no harm on this machine.

    x86 without VNNI adds two products of 8 bits in 16, where 255 * 127 twice is too much; 255 * 63 twice is not.
    """
    if platform.machine().lower() not in ("x86_64", "amd64"):
        return 127
    return 127 if "vnni" in instructions() else 63


def make_spec(
    config: ModelConfig, arrays: Mapping[str, Any], largest: int | None = None, said: Sequence[int] = ()
) -> Any:
    """The same model in CTranslate2's words, whose target has the pieces `said`, or all."""
    rows = list(said) or list(range(config.vocab_size))
    specs = _specs()
    spec = specs.TransformerSpec.from_config(
        (config.n_encoder_layers, config.n_decoder_layers),
        config.n_heads,
        pre_norm=config.norm == "pre",
        activation=getattr(specs.Activation, ACTIVATIONS[config.activation]),
        alignment_layer=max(0, config.n_decoder_layers - 2),
        alignment_heads=config.n_heads,
    )
    source = "embedding.weight" if config.share_embeddings == "three-way" else "src_embedding.weight"
    _set_matrix(spec.encoder.embeddings[0], arrays[source], largest)
    _set_matrix(spec.decoder.embeddings, arrays["embedding.weight"][rows], largest)
    for stack, side in (("encoder", spec.encoder), ("decoder", spec.decoder)):
        side.scale_embeddings = config.scale_embeddings
        side.position_encodings.encodings = _positions(config, arrays, "src" if stack == "encoder" else "tgt")
        if config.norm == "pre":
            side.layer_norm.gamma, side.layer_norm.beta = arrays[f"{stack}.norm.weight"], arrays[f"{stack}.norm.bias"]
        for i, layer in enumerate(side.layer):
            _set_layer(layer, arrays, f"{stack}.layers.{i}", largest, is_decoder=stack == "decoder")
    own = config.share_embeddings == "none"
    _set_matrix(spec.decoder.projection, arrays["output.weight" if own else "embedding.weight"][rows], largest)
    if config.output_bias:
        spec.decoder.projection.bias = arrays["output.bias"][rows]
    spec.register_source_vocabulary([str(i) for i in range(config.src_vocab_size)])
    spec.register_target_vocabulary([str(i) for i in rows])
    spec.config.bos_token = spec.config.decoder_start_token = str(config.bos_id)
    spec.config.eos_token, spec.config.unk_token = str(config.eos_id), str(3)
    spec.config.add_source_bos = spec.config.add_source_eos = False
    spec.config.layer_norm_epsilon = config.norm_eps
    spec.validate()
    spec.optimize()
    return spec


def _set_matrix(target: Any, array: Any, largest: int | None) -> None:
    """As it is, or each row as integers up to `largest` and the factor that made them."""
    if largest is None:
        target.weight = array
        return
    size = np.abs(array).max(axis=1)
    factor = (largest / np.where(size > 0, size, largest)).astype(np.float32)
    target.weight, target.weight_scale = np.rint(array * factor[:, None]).astype(np.int8), factor


def _positions(config: ModelConfig, arrays: Mapping[str, Any], side: str) -> Any:
    if config.positions == "learned":
        return arrays[f"positions.{side}.weight"]
    return sinusoids(0, TABLE_ROWS, config.d_model, DIALECTS[config.positions])  # type: ignore[index]


def _set_layer(layer: Any, arrays: Mapping[str, Any], ours: str, largest: int | None, is_decoder: bool) -> None:
    def linear(target: Any, *names: str) -> None:
        _set_matrix(target, np.concatenate([arrays[f"{ours}.{name}.weight"] for name in names]), largest)
        target.bias = np.concatenate([arrays[f"{ours}.{name}.bias"] for name in names])

    def norm(target: Any, name: str) -> None:
        target.gamma, target.beta = arrays[f"{ours}.{name}.norm.weight"], arrays[f"{ours}.{name}.norm.bias"]

    attention = "self_attention.w_"
    linear(layer.self_attention.linear[0], f"{attention}q", f"{attention}k", f"{attention}v")
    linear(layer.self_attention.linear[1], f"{attention}o")
    norm(layer.self_attention.layer_norm, "residual_self")
    if is_decoder:
        attention = "cross_attention.w_"
        linear(layer.attention.linear[0], f"{attention}q")
        linear(layer.attention.linear[1], f"{attention}k", f"{attention}v")
        linear(layer.attention.linear[2], f"{attention}o")
        norm(layer.attention.layer_norm, "residual_cross")
    linear(layer.ffn.linear_0, "feed_forward.w_1")
    linear(layer.ffn.linear_1, "feed_forward.w_2")
    norm(layer.ffn.layer_norm, "residual_ff")


def _specs() -> Any:
    """The library's descriptions of models; they would import torch, which they need for its own tensors only."""
    hide = "torch" not in sys.modules
    if hide:
        sys.modules["torch"] = None  # type: ignore[assignment]
    try:
        from ctranslate2 import specs
    finally:
        if hide:
            del sys.modules["torch"]
    return specs
