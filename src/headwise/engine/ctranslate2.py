"""The fast engine: CTranslate2, without torch; its form of a model is written from the bundle's arrays."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, get_args

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
TYPES: list[ComputeType] = [
    kind for kind in get_args(ComputeType) if kind in ctranslate2.get_supported_compute_types("cpu")
]
Array = np.ndarray[Any, np.dtype[Any]]
BATCH_TOKENS = 2048  # source pieces decoded at once by a worker
TABLE_ROWS = 2048  # positions that are written; a longer source is refused
ACTIVATIONS = {
    "relu": common_spec.Activation.RELU,
    "gelu": common_spec.Activation.GELU,
    "silu": common_spec.Activation.SWISH,
}


def unsupported(model: ModelConfig, search: SearchConfig, prefixes: bool = False) -> list[str]:
    """Why CTranslate2 cannot do what is asked for; empty if it can.

    Its rules change probabilities, and what a prefix costs is left out of a score, so a beam finds something else.
    """
    reasons = []
    if model.positions in ("rotary", "none"):
        reasons.append(f"positions '{model.positions}'")
    if model.n_heads * model.d_k != model.d_model or model.d_v != model.d_k:
        reasons.append("heads whose widths do not add up to d_model")
    if search.temperature is not None:
        reasons.append("sampling that is the same in any company")
    if search.length_penalty != "length+eos":
        reasons.append(f"length penalty '{search.length_penalty}'")
    if search.stop != "finished" and search.beam_size > 1:
        reasons.append(f"stop '{search.stop}'")
    if search.beam_size > 1 and search.min_pieces:
        reasons.append("least length in a beam")
    if search.beam_size > 1 and search.no_repeat:
        reasons.append("rule against repeats in a beam")
    if search.beam_size > 1 and prefixes:
        reasons.append("prefix in a beam")
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

    def generate(
        self,
        sources: Sequence[Sequence[int]],
        search: SearchConfig,
        prefixes: Sequence[Sequence[int]] = (),
        numbers: Sequence[int] = (),
    ) -> list[list[Hypothesis]]:
        """The hypotheses of each source, best first; `prefixes` are what they begin with, if there are any."""
        if reasons := unsupported(self.model, search, bool(prefixes)):
            raise InputError(f"the engine ctranslate2 has no {', '.join(reasons)}; use --engine torch")
        waiting: dict[int, Any] = {}  # all at once, so that no worker waits for the others
        for limit, indices in _by_limit(sources, search).items():
            results = self.translator.translate_batch(
                [_names(sources[i]) for i in indices],
                target_prefix=[_names(prefixes[i]) for i in indices] if prefixes else None,
                beam_size=search.beam_size,
                num_hypotheses=search.beam_size,
                length_penalty=search.alpha,
                max_decoding_length=limit,
                min_decoding_length=search.min_pieces,
                no_repeat_ngram_size=search.no_repeat,
                max_input_length=0,
                return_scores=True,
                batch_type="tokens",
                max_batch_size=BATCH_TOKENS,
                asynchronous=True,
            )
            waiting |= dict(zip(indices, results, strict=True))
        found = [
            _hypotheses(waiting[i].result(), len(source) + search.extra_pieces, search)
            for i, source in enumerate(sources)
        ]
        if prefixes or search.min_pieces or search.no_repeat:  # CTranslate2 then tells of other probabilities
            return self._rescored(sources, found, search)
        return found

    def _rescored(
        self, sources: Sequence[Sequence[int]], found: list[list[Hypothesis]], search: SearchConfig
    ) -> list[list[Hypothesis]]:
        """The same hypotheses with the log probabilities that the model gives them."""
        pairs = [(source, h) for source, hypotheses in zip(sources, found, strict=True) for h in hypotheses]
        scores = iter(self.score([source for source, _ in pairs], [[*h.ids, self.model.eos_id] for _, h in pairs]))
        rescored = []
        for hypotheses in found:
            log_probs = [sum(next(scores)[: len(h.ids) + h.complete]) for h in hypotheses]
            rescored.append([_told(h, p, search) for h, p in zip(hypotheses, log_probs, strict=True)])
        return rescored

    def score(self, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]) -> list[list[float]]:
        """The log probability of every piece of each target, its end included, given its source."""
        without_end = [target[:-1] for target in targets]  # CTranslate2 adds it
        results = self.translator.score_batch(
            [_names(source) for source in sources],
            [_names(target) for target in without_end],
            max_input_length=0,
            batch_type="tokens",
            max_batch_size=BATCH_TOKENS,
        )
        return [list(result.log_probs) for result in results]

    def attention(self, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]) -> list[Array]:
        """What each piece, the end left out, looks at, `(T_tgt, T_src)`: the mean of the second-last layer's heads."""
        results = self.translator.translate_batch(
            [_names(source) for source in sources],
            target_prefix=[_names(target) for target in targets],
            beam_size=1,
            max_decoding_length=max(map(len, targets), default=1),
            min_decoding_length=0,
            max_input_length=0,
            return_attention=True,
            batch_type="tokens",
            max_batch_size=BATCH_TOKENS,
        )
        return [
            np.array(result.attention[0][: len(target)], np.float32)
            for result, target in zip(results, targets, strict=True)
        ]


def _names(pieces: Sequence[int]) -> list[str]:
    """Pieces are known to CTranslate2 by their numbers, so that no text can be mistaken for a special piece."""
    return [str(piece) for piece in pieces]


def _by_limit(sources: Sequence[Sequence[int]], search: SearchConfig) -> dict[int, list[int]]:
    """Sources that may take equally many steps."""
    groups: dict[int, list[int]] = {}
    for i, ids in enumerate(sources):
        groups.setdefault(len(ids) + search.extra_pieces, []).append(i)
    return groups


def _hypotheses(result: Any, limit: int, search: SearchConfig) -> list[Hypothesis]:
    found = []
    for pieces, score in zip(result.hypotheses, result.scores, strict=True):
        complete = len(pieces) < limit
        log_prob = score * max(1, len(pieces) + complete) ** search.alpha
        found.append(Hypothesis(tuple(map(int, pieces)), log_prob, score, complete))
    return found


def _told(h: Hypothesis, log_prob: float, search: SearchConfig) -> Hypothesis:
    score = log_prob / max(1, len(h.ids) + h.complete) ** search.alpha
    return replace(h, log_prob=log_prob, score=score)


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
        alignment_layer=max(0, config.n_decoder_layers - 2),
        alignment_heads=config.n_heads,
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
    spec.register_source_vocabulary([str(i) for i in range(config.src_vocab_size)])
    spec.register_target_vocabulary([str(i) for i in range(config.vocab_size)])
    spec.config.bos_token = spec.config.decoder_start_token = str(config.bos_id)
    spec.config.eos_token, spec.config.unk_token = str(config.eos_id), str(3)
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
