"""card.md: what a person should know of a model that was trained here."""

from pathlib import Path
from typing import Any

from headwise import __version__
from headwise.config import RunConfig


def card_of(config: RunConfig, facts: dict[str, Any], n_pairs: int, n_dev: int) -> str:
    """From the settings and what was measured at the end."""
    data, model, train = config.data, config.model, config.train
    names = [Path(name).name for c in data.train for name in (c.src, c.tgt, c.pairs) if name is not None]
    scores = "\n".join(f"- {name} {value:.2f}, `{signature}`" for name, (value, signature) in facts["scores"].items())
    began = f"\nIt was trained further from `{Path(train.init).name}`." if train.init else ""
    back = ", and back" if data.both_ways else ""
    return f"""# {data.source_lang} to {data.target_lang}{back}

A Transformer of {model.n_encoder_layers} + {model.n_decoder_layers} layers, d_model {model.d_model}, d_ff {model.d_ff},
{model.n_heads} heads, {model.vocab_size:,} pieces; trained by headwise {__version__}.{began}

## Data

{n_pairs:,} pairs from {", ".join(names)}. Their licence is not known to headwise and travels with this model.

## Training

{facts["step"]:,} updates, {facts["n_tokens"]:,} target pieces, {facts["minutes"]:.1f} minutes, seed {train.seed}.
The mean of {len(facts["averaged"])} checkpoints. All settings stand in `config.json`.

## Scores on the {n_dev:,} pairs that were validated on

Beam {config.search.beam_size}, {config.search.length_penalty}, alpha {config.search.alpha:g}.

- perplexity {facts["perplexity"]:.2f} a piece
{scores}
"""
