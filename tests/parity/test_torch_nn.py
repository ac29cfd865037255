"""With copied weights the model is `torch.nn.Transformer`'s, forward and step by step."""

import math

import pytest
import torch
from torch import nn

from headwise.config import ModelConfig
from headwise.model.attention import MultiHeadAttention
from headwise.model.transformer import Transformer

D, H, D_FF, N_ENCODER, N_DECODER, V, EPS = 24, 4, 37, 3, 2, 53, 1e-5


def copy_attention(ours: MultiHeadAttention, theirs: nn.MultiheadAttention) -> None:
    theirs.in_proj_weight.copy_(torch.cat((ours.w_q.weight, ours.w_k.weight, ours.w_v.weight)))
    theirs.in_proj_bias.copy_(torch.cat((ours.w_q.bias, ours.w_k.bias, ours.w_v.bias)))
    theirs.out_proj.load_state_dict(ours.w_o.state_dict())


def copy_layer(ours: nn.Module, theirs: nn.Module, residuals: list[str]) -> None:
    copy_attention(ours.self_attention, theirs.self_attn)
    if "residual_cross" in residuals:
        copy_attention(ours.cross_attention, theirs.multihead_attn)
    theirs.linear1.load_state_dict(ours.feed_forward.w_1.state_dict())
    theirs.linear2.load_state_dict(ours.feed_forward.w_2.state_dict())
    for i, name in enumerate(residuals, start=1):
        getattr(theirs, f"norm{i}").load_state_dict(getattr(ours, name).norm.state_dict())


@torch.no_grad()
def twins(norm: str, activation: str) -> tuple[Transformer, nn.Transformer]:
    torch.manual_seed(8)
    config = ModelConfig(
        vocab_size=V, d_model=D, d_ff=D_FF, n_heads=H, n_encoder_layers=N_ENCODER, n_decoder_layers=N_DECODER,
        norm=norm, activation=activation, norm_eps=EPS,
    )  # fmt: skip
    ours = Transformer(config).eval()
    for parameter in ours.parameters():
        if parameter.dim() == 1:
            parameter += 0.3 * torch.randn_like(parameter)
    pre = norm == "pre"
    shape = {"d_model": D, "nhead": H, "dim_feedforward": D_FF, "activation": activation, "norm_first": pre}
    shape |= {"batch_first": True, "layer_norm_eps": EPS}
    theirs = nn.Transformer(
        **shape,
        custom_encoder=nn.TransformerEncoder(
            nn.TransformerEncoderLayer(**shape),
            N_ENCODER,
            norm=nn.LayerNorm(D, EPS) if pre else None,
            enable_nested_tensor=False,
        ),
        custom_decoder=nn.TransformerDecoder(
            nn.TransformerDecoderLayer(**shape), N_DECODER, norm=nn.LayerNorm(D, EPS) if pre else None
        ),
    ).eval()
    for our_layer, their_layer in zip(ours.encoder.layers, theirs.encoder.layers, strict=True):
        copy_layer(our_layer, their_layer, ["residual_self", "residual_ff"])
    for our_layer, their_layer in zip(ours.decoder.layers, theirs.decoder.layers, strict=True):
        copy_layer(our_layer, their_layer, ["residual_self", "residual_cross", "residual_ff"])
    if pre:
        theirs.encoder.norm.load_state_dict(ours.encoder.norm.state_dict())
        theirs.decoder.norm.load_state_dict(ours.decoder.norm.state_dict())
    return ours, theirs


def their_logits(ours: Transformer, theirs: nn.Transformer, src: torch.Tensor, tgt_in: torch.Tensor) -> torch.Tensor:
    """Embeddings, sinusoids and output written out here; everything between is torch's."""

    def embed(ids: torch.Tensor) -> torch.Tensor:
        table = torch.zeros(ids.size(1), D)
        for pos in range(ids.size(1)):
            for i in range(0, D, 2):
                table[pos, i], table[pos, i + 1] = math.sin(pos / 10000 ** (i / D)), math.cos(pos / 10000 ** (i / D))
        return ours.embedding.weight[ids] * math.sqrt(D) + table

    hidden = theirs(
        embed(src),
        embed(tgt_in),
        tgt_mask=torch.ones(tgt_in.size(1), tgt_in.size(1), dtype=torch.bool).triu(1),  # theirs: True hides
        src_key_padding_mask=src == 0,
        memory_key_padding_mask=src == 0,
    )
    return hidden @ ours.embedding.weight.T


@pytest.mark.parametrize(("norm", "activation"), [("post", "relu"), ("pre", "relu"), ("post", "gelu")])
@torch.no_grad()
def test_logits_agree_with_torch_nn_transformer(norm, activation):
    ours, theirs = twins(norm, activation)
    src, tgt_in = torch.randint(3, V, (6, 17)), torch.randint(3, V, (6, 13))
    for row, n in enumerate([17, 1, 5, 16, 9, 2]):
        src[row, n:] = 0
    expected = their_logits(ours, theirs, src, tgt_in)
    assert expected.std() > 0.5
    assert (ours(src, tgt_in) - expected).abs().max() <= 1e-4

    state = ours.start(src)
    for t in range(13):
        log_probs, state = ours.step(tgt_in[:, t], state)
        anew = their_logits(ours, theirs, src, tgt_in[:, : t + 1])[:, -1].log_softmax(dim=-1)
        assert (log_probs - anew).abs().max() <= 1e-4
