"""How fast does headwise train beside a plain torch.nn.Transformer loop and beside Hugging Face's MarianMTModel?

python benchmarks/train_speed.py [tiny small base]        about 3 minutes for tiny, 10 for small

Same shapes, Multi30k batches, smoothed loss, Adam and dropout; each in a process of its own, alternating; in float32,
and in bfloat16 autocast where the processor has it. Prints target pieces a second, the share of the machine's matrix
peak, `ratio <preset> <speed of headwise over the faster peer, each at its better type>`, and `ratio-float32`.
"""

import argparse
import json
import math
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from protocol import alternate, report

DATA = Path(os.environ.get("HEADWISE_DATA", Path(__file__).parents[2] / "shared" / "data")) / "multi30k"
BATCH_TOKENS, VOCABULARY = 4096, 10_000
WARMUP, STEPS, ROUNDS = 2, 6, 3  # steps before and while the clock runs, in each round


def prepare_data(folder: Path) -> None:
    from headwise.config import TokenizerConfig
    from headwise.data.corpus import Corpus
    from headwise.data.prepared import prepare
    from headwise.text.tokenizer import Tokenizer

    corpus = Corpus(DATA / "train.en", DATA / "train.de")
    source, target = zip(*corpus.pairs(), strict=True)
    tokenizer = Tokenizer.learn(source, target, TokenizerConfig(vocab_size=VOCABULARY), len(source))
    prepare([corpus], tokenizer, folder)


def measure(contestant: str) -> dict[str, list[float]]:
    """Seconds a thousand target pieces in each step, of `name/preset/type`."""
    import torch

    from headwise.config import load_config
    from headwise.data.batches import Batches, Position
    from headwise.data.prepared import open_prepared

    name, preset, kind = contestant.split("/")
    config = load_config(preset, overrides=[f"model.vocab_size={VOCABULARY}", "model.dropout=0.3"])
    torch.manual_seed(1)
    batches = Batches(open_prepared(Path(os.environ["PREPARED"])), BATCH_TOKENS, seed=1).after(Position())
    half = kind == "bfloat16"
    step = {"headwise": headwise, "torch.nn": torch_nn, "marian": marian}[name](config, half)
    seconds = []
    for i in range(WARMUP + STEPS):
        batch = next(batches)
        began = time.perf_counter()
        loss = step(batch)
        assert math.isfinite(loss)
        if i >= WARMUP:
            seconds.append((time.perf_counter() - began) / batch.n_tokens * 1000)
    return {"seconds a thousand pieces": seconds}


def headwise(config: Any, half: bool) -> Any:
    from headwise.model.transformer import Transformer
    from headwise.train.allocator import keep_memory
    from headwise.train.loop import learn, make_optimizer

    keep_memory()
    model = Transformer(config.model)
    optimizer = make_optimizer(model, config.train)
    waiting: list[Any] = []
    updates = learn(model, optimizer, iter(waiting.pop, None), config.train, 10, bfloat16=half)

    def step(batch: Any) -> float:
        waiting.append(batch)
        return next(updates).loss

    return step


def plain_step(parameters: Any, logits_of: Any, half: bool) -> Any:
    """The loop that everybody writes: logits, cross entropy that ignores padding, Adam."""
    import torch
    from torch.nn import functional as F

    optimizer = torch.optim.Adam(parameters, lr=1e-4, betas=(0.9, 0.98), eps=1e-9)

    def step(batch: Any) -> float:
        src, tgt_in, tgt_out = (torch.from_numpy(x) for x in (batch.src, batch.tgt_in, batch.tgt_out))
        with torch.autocast("cpu", torch.bfloat16, enabled=half):
            logits = logits_of(src, tgt_in)
            loss = F.cross_entropy(logits.flatten(0, 1), tgt_out.flatten(), ignore_index=0, label_smoothing=0.1)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.item()

    return step


def torch_nn(config: Any, half: bool) -> Any:
    import torch
    from torch import nn

    from headwise.model.positions import DIALECTS, sinusoids

    c = config.model
    embedding = nn.Embedding(c.vocab_size, c.d_model)
    nn.init.normal_(embedding.weight, std=c.d_model**-0.5)
    table = sinusoids(0, 512, c.d_model, DIALECTS["paper"])
    dropout = nn.Dropout(c.dropout)
    body = nn.Transformer(
        c.d_model, c.n_heads, c.n_encoder_layers, c.n_decoder_layers, c.d_ff, c.dropout, batch_first=True
    )

    def embed(ids: Any) -> Any:
        return dropout(embedding(ids) * math.sqrt(c.d_model) + table[: ids.size(1)])

    def logits_of(src: Any, tgt_in: Any) -> Any:
        future = torch.ones(tgt_in.size(1), tgt_in.size(1), dtype=torch.bool).triu(1)
        hidden = body(
            embed(src),
            embed(tgt_in),
            tgt_mask=future,
            src_key_padding_mask=src == 0,
            memory_key_padding_mask=src == 0,
            tgt_is_causal=True,
        )
        return hidden @ embedding.weight.T

    body.train()
    return plain_step([*embedding.parameters(), *body.parameters()], logits_of, half)


def marian(config: Any, half: bool) -> Any:
    from transformers import MarianConfig, MarianMTModel

    c = config.model
    model = MarianMTModel(
        MarianConfig(
            vocab_size=c.vocab_size,
            d_model=c.d_model,
            encoder_layers=c.n_encoder_layers,
            scale_embedding=True,
            decoder_layers=c.n_decoder_layers,
            encoder_ffn_dim=c.d_ff,
            decoder_ffn_dim=c.d_ff,
            dropout=c.dropout,
            encoder_attention_heads=c.n_heads,
            decoder_attention_heads=c.n_heads,
            activation_function="relu",
            pad_token_id=0,
            eos_token_id=2,
            decoder_start_token_id=1,
            forced_eos_token_id=2,
            use_cache=False,
        )
    ).train()

    def logits_of(src: Any, tgt_in: Any) -> Any:
        return model(input_ids=src, attention_mask=(src != 0).long(), decoder_input_ids=tgt_in, use_cache=False).logits

    return plain_step(model.parameters(), logits_of, half)


def matrix_peak(kind: str) -> float:
    """FLOPs a second of a large matrix product, the best of ten."""
    import torch

    a, b = (torch.randn(2048, 2048, dtype=getattr(torch, kind)) for _ in range(2))
    best = math.inf
    for _ in range(10):
        began = time.perf_counter()
        a @ b
        best = min(best, time.perf_counter() - began)
    return 2 * 2048**3 / best


def main(presets: list[str]) -> None:
    import torch

    from headwise.architecture import describe
    from headwise.config import load_config
    from headwise.train.precision import native

    kinds = ["float32", *(["bfloat16"] if native(torch.device("cpu")) else [])]
    peaks = {kind: matrix_peak(kind) for kind in kinds}
    names = ["headwise", "torch.nn", "marian"]
    with tempfile.TemporaryDirectory() as scratch:
        os.environ["PREPARED"] = str(Path(scratch) / "data")
        prepare_data(Path(scratch) / "data")
        found: dict[str, Any] = {}
        for preset in presets:
            found |= alternate(__file__, [f"{n}/{preset}/{kind}" for kind in kinds for n in names], ROUNDS)
    settings = {"batch_tokens": BATCH_TOKENS, "vocabulary": VOCABULARY, "steps": STEPS, "warmup": WARMUP}
    report(__file__, found, settings | {"rounds": ROUNDS, "peak FLOPs a second": peaks, "types": kinds})
    for preset in presets:
        speed = {
            (n, kind): 1000 / statistics.median(found[f"{n}/{preset}/{kind}"]["seconds a thousand pieces"])
            for n in names
            for kind in kinds
        }
        flops = describe(load_config(preset, overrides=[f"model.vocab_size={VOCABULARY}"]).model, 14).flops
        for (n, kind), rate in speed.items():
            share = rate * flops.training_per_token / peaks[kind]
            print(f"{preset} {n} {kind}: {rate:.0f} target pieces a second, {share:.0%} of the matrix peak")
        best = {n: max(speed[n, kind] for kind in kinds) for n in names}
        print(f"ratio {preset} {best['headwise'] / max(best['torch.nn'], best['marian']):.2f}")
        plain = {n: speed[n, "float32"] for n in names}
        print(f"ratio-float32 {preset} {plain['headwise'] / max(plain['torch.nn'], plain['marian']):.2f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("presets", nargs="*", default=["tiny", "small"])
    parser.add_argument("--contestant")
    arguments = parser.parse_args()
    if arguments.contestant:
        print(json.dumps(measure(arguments.contestant)))
    elif not DATA.exists():
        sys.exit(f"this needs Multi30k in {DATA}; set HEADWISE_DATA to the folder that holds multi30k/")
    else:
        main(arguments.presets)
