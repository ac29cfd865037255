"""Scores of translations beside references: sacreBLEU's with their signatures, exact match and error rates."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from headwise.errors import InputError, MissingExtra
from headwise.evaluate.distance import distance

References = Sequence[str | None]  # line by line; None where a line has fewer references than others


@dataclass(frozen=True)
class Score:
    """One score and how it was computed."""

    name: str
    value: float
    signature: str

    def __str__(self) -> str:
        return f"{self.name} {self.value:.2f}  {self.signature}"


def bleu(translations: Sequence[str], *references: References) -> Score:
    """sacreBLEU over the whole, cased."""
    return _sacrebleu("BLEU", translations, references)


def chrf(translations: Sequence[str], *references: References) -> Score:
    """chrF over the whole."""
    return _sacrebleu("CHRF", translations, references)


def ter(translations: Sequence[str], *references: References) -> Score:
    """Translation edit rate over the whole."""
    return _sacrebleu("TER", translations, references)


def exact(translations: Sequence[str], *references: References) -> Score:
    """The share of lines that equal any of their references, white space around them left out, in percent."""
    _check(translations, references)
    right = sum(
        any(ref is not None and out.strip() == ref.strip() for ref in refs)
        for out, *refs in zip(translations, *references, strict=True)
    )
    return Score("exact", 100 * right / len(translations), f"nrefs:{len(references)}|any")


def character_errors(translations: Sequence[str], *references: References) -> Score:
    """Characters to change, add or take away a character of the nearest reference, in percent."""
    return _error_rate("CER", list, translations, references)


def token_errors(translations: Sequence[str], *references: References) -> Score:
    """The same for what white space parts: words, or phonemes of a pronunciation."""
    return _error_rate("token errors", str.split, translations, references)


def _error_rate(
    name: str, units: Callable[[str], list[str]], translations: Sequence[str], references: Sequence[References]
) -> Score:
    _check(translations, references)
    wrong = length = 0
    for out, *refs in zip(translations, *references, strict=True):
        found = units(out.strip())
        given = [units(ref.strip()) for ref in refs if ref is not None]
        distances = [(distance(found, ref), len(ref)) for ref in given]
        nearest = min(distances, key=lambda pair: pair[0] / max(1, pair[1]))
        wrong, length = wrong + nearest[0], length + nearest[1]
    return Score(name, 100 * wrong / max(1, length), f"nrefs:{len(references)}|nearest")


def _sacrebleu(metric: str, translations: Sequence[str], references: Sequence[References]) -> Score:
    _check(translations, references)
    try:
        from sacrebleu import metrics
    except ModuleNotFoundError:
        raise MissingExtra("sacrebleu", extra="train") from None
    counter: Any = getattr(metrics, metric)()
    result = counter.corpus_score(list(translations), [list(each) for each in references])
    return Score(result.name, result.score, str(counter.get_signature()))


def _check(translations: Sequence[str], references: Sequence[References]) -> None:
    if not references or not translations:
        raise InputError("there is nothing to score")
    for each in references:
        if len(translations) != len(each):
            raise InputError(f"{len(translations)} translations and {len(each)} references: they go line by line")
    if any(ref is None for ref in references[0]):
        raise InputError("every line needs a reference")
