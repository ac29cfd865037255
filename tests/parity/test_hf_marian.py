"""With copied weights the model is Hugging Face's `MarianMTModel`, forward and step by step."""

import pytest
import torch
from transformers import MarianConfig, MarianMTModel

from headwise.config import ModelConfig, SearchConfig
from headwise.model.transformer import Transformer
from headwise.search.greedy import greedy
from headwise.search.task import Task

V, PAD = 61, 60  # Marian's padding is its last id, and its decoder starts from it


def marian(activation: str, scale: bool) -> MarianMTModel:
    torch.manual_seed(21)
    config = MarianConfig(
        vocab_size=V, d_model=20, encoder_layers=3, decoder_layers=2, encoder_ffn_dim=29, decoder_ffn_dim=29,
        encoder_attention_heads=5, decoder_attention_heads=5, activation_function=activation, scale_embedding=scale,
        max_position_embeddings=64, pad_token_id=PAD, decoder_start_token_id=PAD, eos_token_id=0, init_std=0.3,
    )  # fmt: skip
    model = MarianMTModel(config).eval()
    with torch.no_grad():
        model.final_logits_bias.normal_()
        for parameter in model.parameters():
            if parameter.dim() == 1:
                parameter += 0.3 * torch.randn_like(parameter)
    return model


def ours_from(model: MarianMTModel) -> Transformer:
    theirs = model.config
    config = ModelConfig(
        vocab_size=V, d_model=theirs.d_model, d_ff=theirs.encoder_ffn_dim, n_heads=theirs.encoder_attention_heads,
        n_encoder_layers=theirs.encoder_layers, n_decoder_layers=theirs.decoder_layers, output_bias=True,
        activation={"relu": "relu", "swish": "silu", "gelu": "gelu"}[theirs.activation_function],
        positions="hf-marian", scale_embeddings=theirs.scale_embedding, pad_id=PAD, bos_id=PAD, eos_id=0,
    )  # fmt: skip
    names = {
        "q_proj": "w_q", "k_proj": "w_k", "v_proj": "w_v", "out_proj": "w_o",
        "self_attn": "self_attention", "encoder_attn": "cross_attention", "fc1": "feed_forward.w_1",
        "fc2": "feed_forward.w_2", "self_attn_layer_norm": "residual_self.norm",
        "encoder_attn_layer_norm": "residual_cross.norm", "final_layer_norm": "residual_ff.norm",
    }  # fmt: skip
    arrays = {"embedding.weight": model.model.shared.weight, "output.bias": model.final_logits_bias[0]}
    for name, tensor in model.model.state_dict().items():
        if ".layers." in name:
            arrays[".".join(names.get(part, part) for part in name.split("."))] = tensor
    return Transformer.from_arrays(config, {name: tensor.detach().numpy() for name, tensor in arrays.items()})


def batch() -> tuple[torch.Tensor, torch.Tensor]:
    torch.manual_seed(22)
    src, tgt_in = torch.randint(1, PAD, (5, 11)), torch.randint(1, PAD, (5, 9))
    for row, n in enumerate([11, 3, 7, 1, 10]):
        src[row, n - 1], src[row, n:] = 0, PAD
    tgt_in[:, 0] = PAD
    return src, tgt_in


@pytest.mark.parametrize(("activation", "scale"), [("swish", True), ("relu", False), ("gelu", True)])
@torch.no_grad()
def test_logits_agree_with_marian(activation, scale):
    theirs = marian(activation, scale)
    ours, (src, tgt_in) = ours_from(theirs), batch()
    seen = {"input_ids": src, "attention_mask": (src != PAD).long()}
    expected = theirs(**seen, decoder_input_ids=tgt_in, use_cache=False).logits
    assert expected.std() > 0.5
    assert (ours(src, tgt_in) - expected).abs().max() <= 1e-4

    encoded, past = theirs.model.encoder(**seen), None
    state = ours.start(src)
    for t in range(tgt_in.size(1)):
        step = theirs(
            encoder_outputs=encoded,
            attention_mask=seen["attention_mask"],
            decoder_input_ids=tgt_in[:, t : t + 1],
            past_key_values=past,
            use_cache=True,
        )
        past = step.past_key_values
        log_probs, state = ours.step(tgt_in[:, t], state)
        assert (log_probs - step.logits[:, 0].log_softmax(dim=-1)).abs().max() <= 1e-4


@torch.no_grad()
def test_greedy_search_finds_what_generate_finds():
    theirs = marian("swish", True)
    ours, (src, _) = ours_from(theirs), batch()
    found = greedy(ours.step, ours.start(src), Task(PAD, 0, [20] * 5, never=(PAD,)), SearchConfig())
    generated = theirs.generate(
        input_ids=src, attention_mask=(src != PAD).long(), num_beams=1, do_sample=False, max_new_tokens=20,
        bad_words_ids=[[PAD]], forced_eos_token_id=None,
    )  # fmt: skip
    for hypothesis, ids in zip(found, generated[:, 1:].tolist(), strict=True):
        assert list(hypothesis.ids) == (ids[: ids.index(0)] if 0 in ids else ids)
    assert len({h.ids for h in found}) > 1
