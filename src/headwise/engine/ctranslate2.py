"""The fast engine: CTranslate2, without torch; its form of a model is written from the bundle's arrays."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import ctranslate2
import numpy as np
from ctranslate2.specs import TransformerSpec, common_spec

from headwise.atomic import new_folder
from headwise.bundle import Bundle
from headwise.config import ModelConfig, SearchConfig
from headwise.errors import InputError
from headwise.search.hypothesis import Hypothesis
from headwise.sinusoids import DIALECTS, sinusoids

ComputeType = Literal["float32", "int8", "bfloat16"]
TABLE_ROWS = 2048  # positions that are written; a longer source is refused
ACTIVATIONS = {
    "relu": common_spec.Activation.RELU,
    "gelu": common_spec.Activation.GELU,
    "silu": common_spec.Activation.SWISH,
}


def unsupported(model: ModelConfig, search: SearchConfig) -> list[str]:
    """Why CTranslate2 cannot do what is asked for; empty if it can."""
    reasons = []
    if model.positions in ("rotary", "none"):
        reasons.append(f"positions '{model.positions}'")
    if model.n_heads * model.d_k != model.d_model or model.d_v != model.d_k:
        reasons.append("heads whose widths do not add up to d_model")
    if search.length_penalty != "length+eos":
        reasons.append(f"length penalty '{search.length_penalty}'")
    if search.stop != "finished" and search.beam_size > 1:
        reasons.append(f"stop '{search.stop}'")
    return reasons


class CTranslate2Engine:
    """Generates from a model folder in CTranslate2's form."""

    def __init__(self, folder: Path, model: ModelConfig, compute_type: ComputeType, threads: int) -> None:
        self.model = model
        self.compute_type = compute_type
        # Workers, not threads: inside one small model, threads wait for each other.
        self.translator = ctranslate2.Translator(
            str(folder), device="cpu", compute_type=compute_type, inter_threads=threads, intra_threads=1
        )

    def generate(self, sources: Sequence[Sequence[int]], search: SearchConfig) -> list[list[Hypothesis]]:
        """The hypotheses of each source, best first."""
        reasons = unsupported(self.model, search)
        if reasons:
            raise InputError(f"the engine ctranslate2 has no {', '.join(reasons)}; use --engine torch")
        found: list[list[Hypothesis]] = [[] for _ in sources]
        for limit, indices in _by_limit(sources, search).items():
            results = self.translator.translate_batch(
                [[_name(i) for i in sources[index]] for index in indices],
                beam_size=search.beam_size,
                num_hypotheses=search.beam_size,
                length_penalty=search.alpha,
                max_decoding_length=limit,
                min_decoding_length=0,
                max_input_length=0,
                return_scores=True,
                batch_type="tokens",
                max_batch_size=2048,
                suppress_sequences=[[_name(self.model.pad_id)], [_name(self.model.bos_id)]],
            )
            for index, result in zip(indices, results, strict=True):
                found[index] = [
                    _hypothesis(pieces, score, limit, search)
                    for pieces, score in zip(result.hypotheses, result.scores, strict=True)
                ]
        return found


def _name(piece: int) -> str:
    """Pieces are known to CTranslate2 by their numbers, so that no text can be mistaken for a special piece."""
    return str(piece)


def _by_limit(sources: Sequence[Sequence[int]], search: SearchConfig) -> dict[int, list[int]]:
    """Sources that may take equally many steps."""
    groups: dict[int, list[int]] = {}
    for i, ids in enumerate(sources):
        groups.setdefault(len(ids) + search.extra_pieces, []).append(i)
    return groups


def _hypothesis(pieces: Sequence[str], score: float, limit: int, search: SearchConfig) -> Hypothesis:
    complete = len(pieces) < limit
    length = max(1, len(pieces) + complete)
    return Hypothesis(tuple(map(int, pieces)), score * length**search.alpha, score, complete)


def write_model(bundle: Bundle, folder: Path) -> None:
    """The bundle's model in CTranslate2's form, float32; the library converts to other types when it loads."""
    with new_folder(folder) as unfinished:
        spec = make_spec(bundle.config.model, bundle.weights)
        spec.save(str(unfinished))


def make_spec(config: ModelConfig, arrays: Mapping[str, Any]) -> TransformerSpec:
    """The same model in CTranslate2's words."""
    spec = TransformerSpec.from_config(
        (config.n_encoder_layers, config.n_decoder_layers),
        config.n_heads,
        pre_norm=config.norm == "pre",
        activation=ACTIVATIONS[config.activation],
    )
    source = "embedding.weight" if config.share_embeddings == "three-way" else "src_embedding.weight"
    spec.encoder.embeddings[0].weight = arrays[source]
    spec.decoder.embeddings.weight = arrays["embedding.weight"]
    for stack, side in (("encoder", spec.encoder), ("decoder", spec.decoder)):
        side.scale_embeddings = config.scale_embeddings
        side.position_encodings.encodings = _positions(config, arrays, "src" if stack == "encoder" else "tgt")
        if config.norm == "pre":
            side.layer_norm.gamma, side.layer_norm.beta = arrays[f"{stack}.norm.weight"], arrays[f"{stack}.norm.bias"]
        for i, layer in enumerate(side.layer):
            _set_layer(layer, arrays, f"{stack}.layers.{i}", is_decoder=stack == "decoder")
    own = config.share_embeddings == "none"
    spec.decoder.projection.weight = arrays["output.weight" if own else "embedding.weight"]
    if config.output_bias:
        spec.decoder.projection.bias = arrays["output.bias"]
    spec.register_source_vocabulary([_name(i) for i in range(config.src_vocab_size)])
    spec.register_target_vocabulary([_name(i) for i in range(config.vocab_size)])
    spec.config.bos_token = spec.config.decoder_start_token = _name(config.bos_id)
    spec.config.eos_token, spec.config.unk_token = _name(config.eos_id), _name(3)
    spec.config.add_source_bos = spec.config.add_source_eos = False
    spec.config.layer_norm_epsilon = config.norm_eps
    spec.validate()
    spec.optimize(quantization="float32")
    return spec


def _positions(config: ModelConfig, arrays: Mapping[str, Any], side: str) -> Any:
    if config.positions == "learned":
        return arrays[f"positions.{side}.weight"]
    return sinusoids(0, TABLE_ROWS, config.d_model, DIALECTS[config.positions])  # type: ignore[index]


def _set_layer(layer: Any, arrays: Mapping[str, Any], ours: str, is_decoder: bool) -> None:
    def linear(target: Any, *names: str) -> None:
        target.weight = np.concatenate([arrays[f"{ours}.{name}.weight"] for name in names])
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
