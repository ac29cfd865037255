"""Text to text: the straight line."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Protocol, overload

import numpy as np

from headwise.config import SearchConfig
from headwise.errors import InputError
from headwise.search.hypothesis import Hypothesis
from headwise.text.languages import find_language
from headwise.text.loops import cut, loops
from headwise.text.sentences import Part, split
from headwise.text.special import EOS_ID
from headwise.text.tokenizer import Tokenizer
from headwise.translation import Piece, Translation, joined

Array = np.ndarray[Any, np.dtype[Any]]
Ids = Sequence[int]


class Engine(Protocol):
    """Ids to ids."""

    def generate(
        self, sources: Sequence[Ids], search: SearchConfig, prefixes: Sequence[Ids] = (), numbers: Sequence[int] = ()
    ) -> list[list[Hypothesis]]:
        """The hypotheses of each source, best first."""

    def score(self, sources: Sequence[Ids], targets: Sequence[Ids]) -> list[list[float]]:
        """The log probability of every piece of each target, its end included."""

    def attention(self, sources: Sequence[Ids], targets: Sequence[Ids]) -> list[Array]:
        """What each piece of each target, its end left out, looks at: `(T_tgt, T_src)`."""


class Translator:
    """A tokenizer and an engine."""

    def __init__(
        self, tokenizer: Tokenizer, engine: Engine, search: SearchConfig, languages: tuple[str, str] = ("und", "und")
    ) -> None:
        self.tokenizer, self.engine, self.search = tokenizer, engine, search
        self.languages = languages  # of source and target
        self.why = ""  # which engine it is, and why

    @overload  # a str is a sequence of str too; this one comes first
    def translate(  # type: ignore[overload-overlap]
        self,
        text: str,
        *,
        n_best: int = ...,
        details: bool = ...,
        to: str | None = ...,
        source_lang: str | None = ...,
        prefix: str = ...,
        first: int = ...,
    ) -> Translation: ...
    @overload
    def translate(
        self,
        text: Sequence[str],
        *,
        n_best: int = ...,
        details: bool = ...,
        to: str | None = ...,
        source_lang: str | None = ...,
        prefix: str = ...,
        first: int = ...,
    ) -> list[Translation]: ...

    def translate(
        self,
        text: str | Sequence[str],
        *,
        n_best: int = 1,
        details: bool = False,
        to: str | None = None,
        source_lang: str | None = None,
        prefix: str = "",
        first: int = 0,
    ) -> Translation | list[Translation]:
        """The translation of a text, or of each of several; one without a word in it comes back as it is.

        n_best       how many alternatives are wanted, the best one included; at most the width of the beam
        details      also give pieces with their log probabilities, and which word comes from which
        to           the target language, by code or English name; needed by a model that knows several
        source_lang  the source language, by which a long text is split into sentences
        prefix       what each translation begins with
        first        the number of the first text, by which sampling draws
        """
        to, source_lang = self._target(to), self._source(source_lang)
        texts = [text] if isinstance(text, str) else text
        whole = [self._split(one, source_lang, to) for one in texts]
        parts, numbers, prefixes = [], [], []
        for i, one in enumerate(whole, start=first):
            for k, part in enumerate(part for part in one if part.text):
                parts.append(part.text)
                numbers.append(i + (k << PART_BITS))
                prefixes.append(prefix if k == 0 else "")
        found = iter(self._parts(parts, numbers, prefixes if prefix else [], n_best, details, to))
        translations = []
        for one, source in zip(whole, texts, strict=True):
            done = [next(found) if part.text else Translation("", "") for part in one]
            translations.append(joined(source, [(part.before, part.after) for part in one], done))
        return translations[0] if isinstance(text, str) else translations

    def score(self, sources: Sequence[str], targets: Sequence[str], to: str | None = None) -> list[list[float]]:
        """The log probability of every piece of each target given its source, that of its end last."""
        ids = self.tokenizer.encode_source(sources, self._target(to)), self.tokenizer.encode_target(targets)
        return self.engine.score(*ids)

    def _target(self, asked: str | None) -> str | None:
        """The language whose tag the source gets; None for a model of one direction."""
        several = self.tokenizer.languages
        if asked is None and several:
            raise InputError(f"this model knows several target languages; ask for one: {', '.join(several)}")
        found = None if asked is None else find_language(asked, several or self.languages[1:], "target")
        return found if several else None

    def _source(self, asked: str | None) -> str:
        known = [self.languages[0], *self.tokenizer.languages]
        return known[0] if asked is None else find_language(asked, known, "source")

    def _split(self, text: str, source_lang: str, to: str | None) -> list[Part]:
        """The text as one part, or a longer one as sentences."""
        core = text.strip()
        limit = self.search.split_pieces

        def fits(part: str) -> bool:
            return len(self.tokenizer.encode_source([part], to)[0]) <= limit

        if not core or fits(core):
            begin = text.index(core)
            return [Part(text[:begin], core, text[begin + len(core) :])]
        return split(text, source_lang, fits)

    def _parts(
        self, texts: list[str], numbers: list[int], prefixes: list[str], n_best: int, details: bool, to: str | None
    ) -> list[Translation]:
        """Each of them translated as a whole."""
        sources = self.tokenizer.encode_source(texts, to)  # text/    str -> ids
        begin = self._prefixes(prefixes, sources)
        found = self.engine.generate(sources, self.search, begin, numbers)  # engine/  encode, then search by step
        chosen = [[self._told(text, h) for h in hypotheses] for text, hypotheses in zip(texts, found, strict=True)]
        best, ids = self._guarded(texts, sources, begin, found, chosen)
        if details:
            best = self._detailed(best, sources, ids)
        return [replace(one, alternatives=tuple(others[1:n_best])) for one, others in zip(best, chosen, strict=True)]

    def _prefixes(self, prefixes: list[str], sources: list[list[int]]) -> list[list[int]]:
        """Their ids; none may fill all of the output that its source allows."""
        found = [ids[:-1] for ids in self.tokenizer.encode_target(prefixes)]
        for text, ids, source in zip(prefixes, found, sources, strict=False):
            if len(ids) >= len(source) + self.search.extra_pieces:
                raise InputError(f"the prefix {text[:40]!r} is as long as the whole output may be; say less")
        return found

    def _told(self, source: str, h: Hypothesis) -> Translation:
        text = self.tokenizer.decode(h.ids)  # text/    ids -> str
        return Translation(source, text, h.score, h.log_prob, complete=h.complete)

    def _guarded(
        self,
        texts: list[str],
        sources: list[list[int]],
        begin: list[list[int]],
        found: list[list[Hypothesis]],
        chosen: list[list[Translation]],
    ) -> tuple[list[Translation], list[tuple[int, ...]]]:
        """The best of each that does not loop: an alternative, or one decoded again, or what is left of it when cut."""
        best, ids = [one[0] for one in chosen], [hypotheses[0].ids for hypotheses in found]
        again = []
        for i, (text, candidates) in enumerate(zip(texts, chosen, strict=True)):
            if not loops(best[i].text, text):
                continue
            fair = [k for k, candidate in enumerate(candidates) if not loops(candidate.text, text)]
            if fair:
                best[i], ids[i] = replace(candidates[fair[0]], loop="alternative"), found[i][fair[0]].ids
            else:
                again.append(i)
        if again:
            careful = self.search.model_copy(update={"beam_size": 1, "no_repeat": NO_REPEAT, "temperature": 0.0})
            prefixes = [begin[i] for i in again] if begin else []
            for i, [h] in zip(again, self.engine.generate([sources[i] for i in again], careful, prefixes), strict=True):
                best[i], ids[i] = replace(self._told(texts[i], h), loop="again"), h.ids
                if loops(best[i].text, texts[i]):
                    best[i] = replace(best[i], text=cut(best[i].text), loop="cut")
        return best, ids

    def _detailed(
        self, best: list[Translation], sources: list[list[int]], ids: list[tuple[int, ...]]
    ) -> list[Translation]:
        """With pieces and alignments."""
        scores = self.engine.score(sources, [[*one, EOS_ID] for one in ids])
        weights = self.engine.attention(sources, ids)
        detailed = []
        for one, source, target, log_probs, attention in zip(best, sources, ids, scores, weights, strict=True):
            texts = [self.tokenizer.decode([i]) for i in target] + [""]
            pieces = tuple(Piece(*piece) for piece in zip(texts, log_probs, strict=True))
            words = self.tokenizer.words(source, "source"), self.tokenizer.words(target, "target")
            detailed.append(replace(one, pieces=pieces, alignment=align(attention, *words)))
        return detailed


PART_BITS = 32  # a text's number has so many, above them stands which part of it is meant
NO_REPEAT = 3  # pieces in a row that do not come twice when a loop is decoded again


def align(attention: Array, source_words: Sequence[int], target_words: Sequence[int]) -> tuple[tuple[int, int], ...]:
    """For each word of the target, the word of the source that its pieces look at most.

    attention `(T_tgt, T_src)`; the others say to which word each piece belongs, -1 for none.
    """
    n_source, n_target = max(source_words, default=-1) + 1, max(target_words, default=-1) + 1
    if not n_source:
        return ()
    total = np.zeros((n_target, n_source))
    for row, j in zip(attention, target_words, strict=True):
        for weight, i in zip(row, source_words, strict=True):
            if i >= 0 and j >= 0:
                total[j, i] += weight
    return tuple((int(total[j].argmax()), j) for j in range(n_target) if total[j].any())
