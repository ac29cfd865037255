"""Scores of translations beside references, on sacreBLEU, each with the signature that makes it comparable."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from headwise.errors import InputError, MissingExtra


@dataclass(frozen=True)
class Score:
    """One score and how it was computed."""

    name: str
    value: float
    signature: str

    def __str__(self) -> str:
        return f"{self.name} {self.value:.2f}  {self.signature}"


def bleu(translations: Sequence[str], references: Sequence[str]) -> Score:
    """sacreBLEU over the whole, cased."""
    return _score("BLEU", translations, references)


def chrf(translations: Sequence[str], references: Sequence[str]) -> Score:
    """chrF over the whole."""
    return _score("CHRF", translations, references)


def _score(metric: str, translations: Sequence[str], references: Sequence[str]) -> Score:
    if len(translations) != len(references):
        raise InputError(f"{len(translations)} translations and {len(references)} references: they go line by line")
    if not translations:
        raise InputError("there is nothing to score")
    try:
        from sacrebleu import metrics
    except ModuleNotFoundError:
        raise MissingExtra("sacrebleu", extra="train") from None
    counter: Any = getattr(metrics, metric)()
    result = counter.corpus_score(list(translations), [list(references)])
    return Score(result.name, result.score, str(counter.get_signature()))
