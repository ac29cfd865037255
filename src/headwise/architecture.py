"""What a configuration amounts to, without torch: every parameter by name and shape, FLOPs and bytes."""

from collections.abc import Iterator
from math import prod

from pydantic import BaseModel

from headwise.config import ModelConfig

Shape = tuple[int, ...]


def parameters(config: ModelConfig) -> dict[str, Shape]:
    """Every parameter of the model by name; a shared matrix stands here once."""
    return dict(_parameters(config))


def _parameters(config: ModelConfig) -> Iterator[tuple[str, Shape]]:
    yield "embedding.weight", (config.vocab_size, config.d_model)
    if config.share_embeddings != "three-way":
        yield "src_embedding.weight", (config.src_vocab_size, config.d_model)
    if config.positions == "learned":
        yield "positions.src.weight", (config.max_positions, config.d_model)
        yield "positions.tgt.weight", (config.max_positions, config.d_model)
    for stack, n_layers, attentions in (
        ("encoder", config.n_encoder_layers, ("self",)),
        ("decoder", config.n_decoder_layers, ("self", "cross")),
    ):
        for layer in range(n_layers):
            for kind in attentions:
                yield from _attention(f"{stack}.layers.{layer}.{kind}_attention", config)
            yield from _linear(f"{stack}.layers.{layer}.feed_forward.w_1", config.d_model, config.d_ff)
            yield from _linear(f"{stack}.layers.{layer}.feed_forward.w_2", config.d_ff, config.d_model)
            for kind in (*attentions, "ff"):
                yield from _norm(f"{stack}.layers.{layer}.residual_{kind}.norm", config)
        if config.norm == "pre":
            yield from _norm(f"{stack}.norm", config)
    if config.share_embeddings == "none":
        yield "output.weight", (config.vocab_size, config.d_model)
    if config.output_bias:
        yield "output.bias", (config.vocab_size,)


def _attention(name: str, config: ModelConfig) -> Iterator[tuple[str, Shape]]:
    d_keys, d_values = config.n_heads * config.d_k, config.n_heads * config.d_v
    yield from _linear(f"{name}.w_q", config.d_model, d_keys)
    yield from _linear(f"{name}.w_k", config.d_model, d_keys)
    yield from _linear(f"{name}.w_v", config.d_model, d_values)
    yield from _linear(f"{name}.w_o", d_values, config.d_model)


def _linear(name: str, d_in: int, d_out: int) -> Iterator[tuple[str, Shape]]:
    yield f"{name}.weight", (d_out, d_in)
    yield f"{name}.bias", (d_out,)


def _norm(name: str, config: ModelConfig) -> Iterator[tuple[str, Shape]]:
    yield f"{name}.weight", (config.d_model,)
    yield f"{name}.bias", (config.d_model,)


class ParameterCount(BaseModel):
    """Parameters by part."""

    total: int
    embeddings: int
    encoder: int
    decoder: int
    output: int


class Flops(BaseModel):
    """Floating-point operations (a multiply-add is two) at sentences of `length` pieces on both sides."""

    length: int
    training_per_token: int  # forward and backward over both sides, a target token
    encoding_per_token: int  # encoder, and the keys and values that the decoder keeps of it, a source token
    decoding_per_token: int  # one cached step of greedy search at the mean prefix, a target token


class Memory(BaseModel):
    """Bytes."""

    weights_float32: int
    weights_float16: int
    weights_int8: int  # matrices as int8 with a float32 scale a row, vectors as float32
    training_state: int  # weights, gradients and Adam's two moments in float32; activations come on top
    cache_per_token: int  # float32 keys and values kept of one decoded token, a hypothesis
    memory_per_token: int  # the same of one source token, a sentence


class Architecture(BaseModel):
    """Size and cost of a model."""

    parameters: ParameterCount
    flops: Flops
    memory: Memory


def describe(config: ModelConfig, length: int = 32) -> Architecture:
    """Parameters by part, FLOPs a token at sentences of `length` pieces, and memory."""
    shapes = parameters(config)
    sizes = {name: prod(shape) for name, shape in shapes.items()}

    def count(*parts: str) -> int:
        return sum(size for name, size in sizes.items() if name.startswith(parts))

    total = sum(sizes.values())
    matrices = [shape for shape in shapes.values() if len(shape) == 2]
    n_entries = sum(map(prod, matrices))
    kept = 4 * config.n_decoder_layers * config.n_heads * (config.d_k + config.d_v)
    return Architecture(
        parameters=ParameterCount(
            total=total,
            embeddings=count("embedding", "src_embedding", "positions"),
            encoder=count("encoder"),
            decoder=count("decoder"),
            output=count("output"),
        ),
        flops=_flops(config, length),
        memory=Memory(
            weights_float32=4 * total,
            weights_float16=2 * total,
            weights_int8=n_entries + 4 * sum(rows for rows, _ in matrices) + 4 * (total - n_entries),
            training_state=16 * total,
            cache_per_token=kept,
            memory_per_token=kept,
        ),
    )


def _flops(config: ModelConfig, length: int) -> Flops:
    d, d_ff, heads = config.d_model, config.d_ff, config.n_heads
    keys_values = 2 * d * heads * (config.d_k + config.d_v)  # the projections of one token to k and v
    attention = 2 * keys_values  # ... and to q, and of the joined heads (Equation: as wide as k and v)
    feed_forward = 4 * d * d_ff
    look = 2 * heads * (config.d_k + config.d_v)  # one query at one key: its score and its share of the values
    encoding = (
        config.n_encoder_layers * (attention + feed_forward + look * length) + config.n_decoder_layers * keys_values
    )
    output = 2 * d * config.vocab_size

    def decoding(prefix: int) -> int:
        layer = attention + (attention - keys_values) + feed_forward + look * (prefix + length)
        return config.n_decoder_layers * layer + output

    return Flops(
        length=length,
        training_per_token=3 * (encoding + decoding(length)),
        encoding_per_token=encoding,
        decoding_per_token=decoding((length + 1) // 2),
    )
