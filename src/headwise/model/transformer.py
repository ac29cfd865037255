"""The Transformer (3): embeddings (3.4), stacks (3.1), output; encode, decode, project, step."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from headwise.config import ModelConfig
from headwise.errors import InputError
from headwise.model.attend import WAYS, Attend
from headwise.model.dropout import Dropout
from headwise.model.layers import DecoderLayer, EncoderLayer
from headwise.model.masks import causal_keep, padding_keep
from headwise.model.positions import added_positions
from headwise.model.state import DecoderState

Array = np.ndarray[Any, np.dtype[Any]]
MakeAttend = Callable[[ModelConfig], Attend]


class Memory(NamedTuple):
    """The encoder's output, and which of its positions are real; callers only hand it on."""

    hidden: Tensor  # (B, T_src, d_model)
    keep: Tensor  # (B, 1, 1, T_src)


class Encoder(nn.Module):
    """N layers (3.1), and for pre-norm a last norm."""

    layers: Sequence[EncoderLayer]

    def __init__(self, config: ModelConfig, attend: MakeAttend) -> None:
        super().__init__()
        layers = [EncoderLayer(config, attend(config)) for _ in range(config.n_encoder_layers)]
        self.layers = nn.ModuleList(layers)  # type: ignore[assignment]
        self.norm = last_norm(config)

    def forward(self, x: Tensor, keep: Tensor) -> Tensor:
        """`(B, T_src, d_model)` -> `(B, T_src, d_model)`."""
        for layer in self.layers:
            x = layer(x, keep)
        return self.norm(x)


class Decoder(nn.Module):
    """N layers (3.1), and for pre-norm a last norm."""

    layers: Sequence[DecoderLayer]

    def __init__(self, config: ModelConfig, attend: MakeAttend, cross_attend: MakeAttend) -> None:
        super().__init__()
        layers = [DecoderLayer(config, attend(config), cross_attend(config)) for _ in range(config.n_decoder_layers)]
        self.layers = nn.ModuleList(layers)  # type: ignore[assignment]
        self.norm = last_norm(config)

    def forward(self, x: Tensor, keep: Tensor, memory: Memory) -> Tensor:
        """All positions at once: `(B, T_tgt, d_model)` -> `(B, T_tgt, d_model)`."""
        for layer in self.layers:
            x = layer(x, keep, memory.hidden, memory.keep)
        return self.norm(x)

    def step(self, x: Tensor, state: DecoderState) -> Tensor:
        """One position of K hypotheses a sentence: `(B, K, d_model)` -> `(B, K, d_model)`."""
        for i, layer in enumerate(self.layers):
            x = layer.step(x, state, i)
        return self.norm(x)


def last_norm(config: ModelConfig) -> nn.Module:
    """Pre-norm leaves the sum of all residuals unnormed, so a norm follows the last layer."""
    return nn.LayerNorm(config.d_model, config.norm_eps) if config.norm == "pre" else nn.Identity()


class Transformer(nn.Module):
    """Encoder and decoder; callers pass ids `(B, T)`, padded on the right with `pad_id`, and never a mask.

    `attend` puts ways of attending from outside in place of those named in the configuration, by place:
    "encoder", "decoder", "cross".
    """

    def __init__(self, config: ModelConfig, attend: Mapping[str, MakeAttend] | None = None) -> None:
        super().__init__()
        self.config = config
        named = {place: WAYS[way] for place, way in config.attention.model_dump().items()}
        ways: dict[str, MakeAttend] = {**named, **(attend or {})}
        if unknown := ways.keys() - named.keys():
            raise InputError(f"attend has no place {', '.join(map(repr, unknown))}; the places are {', '.join(named)}")

        self.embedding = nn.Embedding(config.vocab_size, config.d_model)  # target; also source and output where shared
        if config.share_embeddings != "three-way":
            self.src_embedding = nn.Embedding(config.src_vocab_size, config.d_model)
        self.positions = added_positions(config)
        self.dropout = Dropout(config.dropout)
        self.encoder = Encoder(config, ways["encoder"])
        self.decoder = Decoder(config, ways["decoder"], ways["cross"])
        self.output = Output(config)
        initialise(self)

    @classmethod
    def from_arrays(cls, config: ModelConfig, arrays: Mapping[str, Array]) -> "Transformer":
        """The model with these weights, such as a bundle's, ready to translate (in eval mode)."""
        model = cls(config)
        model.load_state_dict({name: torch.tensor(array) for name, array in arrays.items()})
        return model.eval()

    def to_arrays(self) -> dict[str, Array]:
        """A float32 copy of every parameter by name, such as a bundle takes."""
        return {name: p.detach().to("cpu", torch.float32, copy=True).numpy() for name, p in self.named_parameters()}

    def forward(self, src: Tensor, tgt_in: Tensor) -> Tensor:
        """src `(B, T_src)`, tgt_in `(B, T_tgt)` -> logits `(B, T_tgt, V)`."""
        return self.project(self.decode(self.encode(src), tgt_in))

    def encode(self, src: Tensor) -> Memory:
        """src `(B, T_src)` -> memory, its hidden part `(B, T_src, d_model)`."""
        if src.dim() != 2 or src.size(1) == 0:
            raise InputError(f"ids must be (sentences, pieces) with at least one piece, not {tuple(src.shape)}")
        keep = padding_keep(src, self.config.pad_id)
        x = self.embed(self.src_table(src), self.positions["src"](0, src.size(1)))
        return Memory(self.encoder(x, keep), keep)

    @property
    def src_table(self) -> nn.Embedding:
        """The source's embeddings."""
        return self.embedding if self.config.share_embeddings == "three-way" else self.src_embedding

    def decode(self, memory: Memory, tgt_in: Tensor) -> Tensor:
        """tgt_in `(B, T_tgt)` -> hidden `(B, T_tgt, d_model)`, each position seeing none after it."""
        keep = causal_keep(tgt_in.size(1), tgt_in.device)
        x = self.embed(self.embedding(tgt_in), self.positions["tgt"](0, tgt_in.size(1)))
        return self.decoder(x, keep, memory)

    def project(self, hidden: Tensor) -> Tensor:
        """hidden `(..., d_model)` -> logits `(..., V)`."""
        return self.output(hidden, self.embedding.weight)

    @torch.no_grad()
    def start(self, src: Tensor) -> DecoderState:
        """src `(B, T_src)` -> the state before the first step; the source's keys and values are computed here, once."""
        memory = self.encode(src)
        pairs = [layer.cross_attention.keys_values(memory.hidden) for layer in self.decoder.layers]
        return DecoderState.start(torch.stack([k for k, _ in pairs]), torch.stack([v for _, v in pairs]), memory.keep)

    @torch.no_grad()
    def step(self, last_ids: Tensor, state: DecoderState) -> tuple[Tensor, DecoderState]:
        """last_ids `(R,)` -> log_probs `(R, V)` of the next piece, and the state after it; the old state is used up."""
        state = state.with_room()
        ids = last_ids.view(state.n_sentences, -1)  # (B, K)
        x = self.embed(self.embedding(ids), self.positions["tgt"](state.n_steps, 1))
        logits = self.project(self.decoder.step(x, state)).flatten(0, 1)
        return logits.float().log_softmax(dim=-1), state._replace(n_steps=state.n_steps + 1)

    def embed(self, vectors: Tensor, positions: Tensor) -> Tensor:
        """Embeddings `(B, T, d_model)` times sqrt(d_model), plus positions, then dropout (3.4, 3.5, 5.4)."""
        scale = math.sqrt(self.config.d_model) if self.config.scale_embeddings else 1.0
        return self.dropout(vectors * scale + positions)


class Output(nn.Module):
    """The linear transformation before the softmax (3.4): the embedding matrix, or one of its own."""

    weight: nn.Parameter | None
    bias: nn.Parameter | None

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        own = config.share_embeddings == "none"
        shape = (config.vocab_size, config.d_model)
        self.register_parameter("weight", nn.Parameter(torch.empty(shape)) if own else None)
        self.register_parameter("bias", nn.Parameter(torch.zeros(shape[0])) if config.output_bias else None)

    def forward(self, hidden: Tensor, embedding: Tensor) -> Tensor:
        """`(..., d_model)` -> `(..., V)`."""
        return F.linear(hidden, embedding if self.weight is None else self.weight, self.bias)


def initialise(model: nn.Module) -> None:
    """Matrices Xavier-uniform times a gain, tables and learned positions N(0, 1/d_model), biases 0, norms 1 and 0.

    The paper does not say. A table that is multiplied by sqrt(d_model) on the way in thus has entries of variance one,
    the size of the sinusoids, and gives logits of variance one on the way out. Queries and keys begin smaller than
    Xavier, and all that is added to a residual smaller still: post-norm learns far sooner for it (docs/design.md). Ways
    of attending see to their own.
    """
    for name, parameter in model.named_parameters():
        if ".attend." in name:
            continue
        if parameter.dim() == 1:
            nn.init.constant_(parameter, 1.0 if name.endswith("norm.weight") else 0.0)
        elif "embedding" in name or "positions" in name or name == "output.weight":
            nn.init.normal_(parameter, std=parameter.size(1) ** -0.5)
        else:
            nn.init.xavier_uniform_(parameter, gain=2**-0.5 if ".w_q." in name or ".w_k." in name else 0.5)
