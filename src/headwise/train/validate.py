"""Validation: loss and perplexity of every dev pair, scores and samples of real decoding."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch

from headwise.config import RunConfig, SearchConfig
from headwise.data.batches import Batches
from headwise.engine.torch import TorchEngine
from headwise.evaluate.scores import Score, bleu, chrf
from headwise.model.transformer import Transformer
from headwise.text.tokenizer import Tokenizer
from headwise.train.loop import Teacher, tensors
from headwise.train.setup import DevPair
from headwise.translator import Translator

N_SAMPLES = 5  # sentences shown


@dataclass(frozen=True)
class Validation:
    """What dev says of a model."""

    loss: float  # nats a target piece, without label smoothing
    scores: tuple[Score, ...]  # none where nothing was decoded
    samples: tuple[tuple[str, str, str], ...]  # source, reference, translation

    @property
    def perplexity(self) -> float:
        """A target piece."""
        return math.exp(min(self.loss, 700.0))

    def value(self, metric: str) -> float:
        """By this metric, the higher the better."""
        if metric == "loss":
            return -self.loss
        return next(score.value for score in self.scores if score.name.lower().startswith(metric))


def validate(
    model: Transformer,
    said: Sequence[int],
    config: RunConfig,
    tokenizer: Tokenizer,
    dev: Batches,
    pairs: Sequence[DevPair],
    search: SearchConfig,
    bfloat16: bool,
) -> Validation:
    """The loss over `dev`, and the scores of translating `pairs`, choosing among the pieces `said`."""
    model.eval()
    plain = Teacher(model, config.train.model_copy(update={"label_smoothing": 0.0, "r_drop": 0.0}), bfloat16)
    total, n_tokens = 0.0, 0
    with torch.no_grad():
        for rows in dev.epoch(0):
            batch = dev.load(rows)
            total += plain(*tensors(batch, model.embedding.weight.device))[1].item()
            n_tokens += batch.n_tokens
    if not pairs:
        return Validation(total / n_tokens, (), ())
    translator = Translator(tokenizer, TorchEngine(model, said), search)
    by_target = {
        to: [i for i, pair in enumerate(pairs) if pair.to == to] for to in dict.fromkeys(pair.to for pair in pairs)
    }
    translations = [""] * len(pairs)
    for to, asked in by_target.items():
        for i, one in zip(asked, translator.translate([pairs[i].src for i in asked], to=to), strict=True):
            translations[i] = one.text
    scores = _scores(pairs, translations, range(len(pairs)))
    if len(by_target) > 1:
        scores += [score for to, asked in by_target.items() for score in _scores(pairs, translations, asked, f" {to}")]
    shown = [(pair.src, pair.ref, text) for pair, text in zip(pairs, translations, strict=True)]
    every = max(1, len(pairs) // N_SAMPLES)
    return Validation(total / n_tokens, tuple(scores), tuple(shown[::every][:N_SAMPLES]))


def _scores(pairs: Sequence[DevPair], translations: list[str], rows: Sequence[int], which: str = "") -> list[Score]:
    """Of these rows, `which` being added to the names."""
    texts, references = [translations[i] for i in rows], [pairs[i].ref for i in rows]
    return [replace(score, name=score.name + which) for score in (bleu(texts, references), chrf(texts, references))]
