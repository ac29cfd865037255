"""Model and beam search are CTranslate2's on the dialect that both speak: `length+eos`, `finished`."""

import ctranslate2
import numpy as np
import pytest
import torch
from ctranslate2.specs import TransformerSpec

from headwise.config import ModelConfig, SearchConfig
from headwise.model.positions import DIALECTS, sinusoids
from headwise.model.transformer import Transformer
from headwise.search.beam import beam
from headwise.search.greedy import greedy
from headwise.search.task import Task

V = 41
PIECES = [f"p{i}" for i in range(V)]
CONFIG = ModelConfig(
    vocab_size=V, d_model=24, d_ff=31, n_heads=4, n_encoder_layers=2, n_decoder_layers=3, output_bias=True,
    share_embeddings="none",
)  # fmt: skip


@pytest.fixture(scope="module")
def model() -> Transformer:
    """Random weights, and an end that is likely enough for hypotheses to finish at different lengths."""
    torch.manual_seed(31)
    model = Transformer(CONFIG).eval()
    with torch.no_grad():
        model.output.bias[CONFIG.eos_id] = 1
    return model


@pytest.fixture(scope="module")
def theirs(model, tmp_path_factory) -> ctranslate2.Translator:
    arrays = model.to_arrays()
    spec = TransformerSpec.from_config((2, 3), CONFIG.n_heads, pre_norm=False)

    def linear(target, *names: str) -> None:
        target.weight = np.concatenate([arrays[f"{name}.weight"] for name in names])
        target.bias = np.concatenate([arrays[f"{name}.bias"] for name in names])

    def norm(target, name: str) -> None:
        target.gamma, target.beta = arrays[f"{name}.norm.weight"], arrays[f"{name}.norm.bias"]

    for stack, side in (("encoder", spec.encoder), ("decoder", spec.decoder)):
        embeddings = side.embeddings[0] if stack == "encoder" else side.embeddings
        embeddings.weight = arrays["src_embedding.weight" if stack == "encoder" else "embedding.weight"]
        side.scale_embeddings = True
        side.position_encodings.encodings = sinusoids(0, 64, CONFIG.d_model, DIALECTS["paper"]).numpy()
        for i, layer in enumerate(side.layer):
            ours = f"{stack}.layers.{i}"
            q, k, v, o = (f"{ours}.self_attention.w_{part}" for part in "qkvo")
            linear(layer.self_attention.linear[0], q, k, v)
            linear(layer.self_attention.linear[1], o)
            norm(layer.self_attention.layer_norm, f"{ours}.residual_self")
            if stack == "decoder":
                q, k, v, o = (f"{ours}.cross_attention.w_{part}" for part in "qkvo")
                linear(layer.attention.linear[0], q)
                linear(layer.attention.linear[1], k, v)
                linear(layer.attention.linear[2], o)
                norm(layer.attention.layer_norm, f"{ours}.residual_cross")
            linear(layer.ffn.linear_0, f"{ours}.feed_forward.w_1")
            linear(layer.ffn.linear_1, f"{ours}.feed_forward.w_2")
            norm(layer.ffn.layer_norm, f"{ours}.residual_ff")
    linear(spec.decoder.projection, "output")
    spec.register_source_vocabulary(PIECES)
    spec.register_target_vocabulary(PIECES)
    spec.config.bos_token, spec.config.eos_token = PIECES[CONFIG.bos_id], PIECES[CONFIG.eos_id]
    spec.config.unk_token = PIECES[3]
    spec.config.decoder_start_token = PIECES[CONFIG.bos_id]
    spec.config.add_source_eos = False
    spec.validate()
    spec.optimize(quantization="float32")
    folder = tmp_path_factory.mktemp("ctranslate2")
    spec.save(str(folder))
    return ctranslate2.Translator(str(folder), device="cpu", inter_threads=1, intra_threads=1, compute_type="float32")


def sentences() -> torch.Tensor:
    torch.manual_seed(32)
    src = torch.randint(4, V, (40, 12))
    for row in range(40):
        src[row, 1 + row % 12 :] = 0
    return src


def pieces(src: torch.Tensor) -> list[list[str]]:
    return [[PIECES[i] for i in row if i] for row in src.tolist()]


@pytest.mark.parametrize(("beam_size", "alpha"), [(1, 1.0), (2, 1.0), (4, 1.0), (4, 0.6), (7, 1.3)])
def test_the_same_hypotheses_with_the_same_scores(model, theirs, beam_size, alpha):
    src, limit = sentences(), 17
    search = SearchConfig(beam_size=beam_size, length_penalty="length+eos", alpha=alpha, stop="finished")
    task = Task(CONFIG.bos_id, CONFIG.eos_id, [limit] * len(src))
    if beam_size == 1:
        ours = [[one] for one in greedy(model.step, model.start(src), task, search)]
    else:
        ours = beam(model.step, model.start(src), task, search)
    results = theirs.translate_batch(
        pieces(src), beam_size=beam_size, num_hypotheses=beam_size, length_penalty=alpha, return_scores=True,
        max_decoding_length=limit, min_decoding_length=0, max_input_length=0,
    )  # fmt: skip
    for found, result in zip(ours, results, strict=True):
        assert [[PIECES[i] for i in one.ids] for one in found] == result.hypotheses
        assert [one.score for one in found] == pytest.approx(result.scores, abs=2e-5)
    everything = [one for found in ours for one in found]
    assert {one.complete for one in everything} == {True, False}
    assert len({len(one.ids) for one in everything}) >= 3
