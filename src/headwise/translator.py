"""Text to text: the straight line."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import islice
from typing import overload

from headwise.alignment import align
from headwise.config import SearchConfig
from headwise.engine.contract import Engine, in_order
from headwise.errors import InputError
from headwise.guard import Candidate, guarded
from headwise.search.hypothesis import Hypothesis
from headwise.text.languages import find_language
from headwise.text.loops import loops
from headwise.text.sentences import Part, addresses, around_addresses, split, stripped
from headwise.text.special import EOS_ID
from headwise.text.tokenizer import Tokenizer
from headwise.translation import Piece, Translation, joined

PART_BITS = 32  # a text's number has so many, above them stands which part of it is meant
NO_REPEAT = 3  # pieces in a row that do not come twice when a loop is decoded again


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
        scores: bool = ...,
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
        scores: bool = ...,
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
        scores: bool = True,
    ) -> Translation | list[Translation]:
        """The translation of a text, or of each of several.

        One without a word in it, or in a writing system of which the model has learned no letter, comes back as it is.

        n_best       how many are wanted that differ, the best one included; at most the width of the beam
        details      also give pieces with their log probabilities, and which word comes from which, of alternatives too
        to           the target language, by code or English name; else the one that the model was made for
        source_lang  the source language, by which a long text is split into sentences
        prefix       what each translation begins with
        first        the number of the first text, by which sampling draws
        scores       False: score and log_prob may be NaN, which is faster with greedy search
        """
        to = self._target(to)
        source_lang = self._source(source_lang, to)
        texts = [text] if isinstance(text, str) else text
        sources = self.tokenizer.encode_source([one.strip() for one in texts], to)  # text/    str -> ids
        whole = [self._split(*one, source_lang, to) for one in zip(texts, sources, strict=True)]
        split_up = [part.text for one in whole if len(one) > 1 for part in one if self._takes(part)]
        cut = iter(self.tokenizer.encode_source(split_up, to))
        parts, ids, numbers, prefixes = [], [], [], []
        for i, (one, source) in enumerate(zip(whole, sources, strict=True)):
            for k, part in enumerate(filter(self._takes, one)):
                parts.append(part.text)
                ids.append(source if len(one) == 1 else next(cut))
                numbers.append(first + i + (k << PART_BITS))
                prefixes.append(prefix if k == 0 else "")
        translated = self._parts(parts, ids, numbers, prefixes if prefix else [], n_best, details, scores)
        if "und" not in self.languages and not prefix:
            translated = [self._with_addresses(one, to, n_best, details, scores) for one in translated]
        found = iter(translated)
        translations = []
        for one, whole_text in zip(whole, texts, strict=True):
            done = [next(found) if self._takes(part) else Translation(part.text, part.text) for part in one]
            translations.append(joined(whole_text, [(part.before, part.after) for part in one], done))
        return translations[0] if isinstance(text, str) else translations

    def score(self, sources: Sequence[str], targets: Sequence[str], to: str | None = None) -> list[list[float]]:
        """The log probability of every piece of each target given its source, that of its end last."""
        ids = self.tokenizer.encode_source(sources, self._target(to)), self.tokenizer.encode_target(targets)
        return self.engine.score(*ids)

    def _target(self, asked: str | None) -> str | None:
        """The language whose tag the source gets; None for a model of one direction."""
        several = self.tokenizer.languages
        if asked is None and self.languages[1] in several:
            return self.languages[1]
        if asked is None and several:
            raise InputError(f"this model knows several target languages; ask for one: {', '.join(several)}")
        found = None if asked is None else find_language(asked, several or self.languages[1:], "target")
        return found if several else None

    def _source(self, asked: str | None, to: str | None) -> str:
        """The language of the text: the model's own source, or where it is turned round another one that it knows."""
        known = [self.languages[0], *self.tokenizer.languages]
        if asked is None:
            return next((one for one in known if one != to), known[0])
        return find_language(asked, known, "source")

    def _split(self, text: str, ids: list[int], source_lang: str, to: str | None) -> list[Part]:
        """The text, whose words are `ids`, as one part; or as sentences, if it is long or each is wanted alone."""
        limit = self.search.split_pieces
        short = len(ids) <= limit
        if short and not self.search.split_sentences:
            return [stripped(text)]

        def fits(part: str) -> bool:
            return short or len(self.tokenizer.encode_source([part], to)[0]) <= limit

        return split(text, source_lang, fits) or [stripped(text)]

    def _takes(self, part: Part) -> bool:
        """Whether there is something to translate in it."""
        return bool(part.text) and self.tokenizer.can_read(part.text)

    def _parts(
        self,
        texts: list[str],
        sources: list[list[int]],
        numbers: list[int],
        prefixes: list[str],
        n_best: int,
        details: bool,
        scores: bool,
    ) -> list[Translation]:
        """Each of them translated as a whole."""
        begin = self._prefixes(prefixes, sources)
        every: dict[int, list[Hypothesis]] = {}

        def decoded(chosen: Sequence[int], search: SearchConfig) -> list[list[Candidate]]:
            asked = (
                [sources[i] for i in chosen],
                search,
                [begin[i] for i in chosen] if begin else [],
                [numbers[i] for i in chosen],
            )
            results = self.engine.generate(*asked, scores)  # engine/  encode, then search by step
            return in_order((k, told(chosen[k], one)) for k, one in results)

        def told(i: int, hypotheses: list[Hypothesis]) -> list[Candidate]:
            every[i] = hypotheses
            return self._told(texts[i], hypotheses, n_best)

        def others(looping: list[int]) -> list[list[Candidate]]:
            return [self._told(texts[i], every[i], len(every[i])) for i in looping]

        def again(looping: list[int]) -> list[Candidate]:
            careful = self.search.model_copy(update={"beam_size": 1, "no_repeat": NO_REPEAT, "temperature": 0.0})
            return [best for [best] in decoded(looping, careful)]

        found = decoded(range(len(texts)), self.search)
        chosen = [candidates[:n_best] for candidates in guarded(found, others, again)]
        ids = [one.ids for candidates in chosen for one in candidates]
        each = [one.translation for candidates in chosen for one in candidates]
        if details:
            origins = [source for source, found in zip(sources, chosen, strict=True) for _ in found]
            each = self._detailed(each, origins, ids)
        told_of = iter(each)
        return [replace(next(told_of), alternatives=tuple(islice(told_of, len(found) - 1))) for found in chosen]

    def _with_addresses(
        self, one: Translation, to: str | None, n_best: int, details: bool, scores: bool
    ) -> Translation:
        """As it is; but where it has lost an address, only what stands around them is translated, piece by piece."""
        wanted = addresses(one.source)
        if not wanted or set(wanted) <= set(addresses(one.text)):
            return one
        parts = around_addresses(one.source)
        texts = [part.text for part in parts if self._takes(part) and not addresses(part.text)]
        sources = self.tokenizer.encode_source(texts, to)
        found = iter(self._parts(texts, sources, list(range(len(texts))), [], n_best, details, scores))
        done = [next(found) if part.text in texts else Translation(part.text, part.text) for part in parts]
        return joined(one.source, [(part.before, part.after) for part in parts], done)

    def _prefixes(self, prefixes: list[str], sources: list[list[int]]) -> list[list[int]]:
        """Their ids; none may fill all of the output that its source allows."""
        found = [ids[:-1] for ids in self.tokenizer.encode_target(prefixes)]
        for text, ids, source in zip(prefixes, found, sources, strict=False):
            if len(ids) >= len(source) + self.search.extra_pieces:
                raise InputError(f"the prefix {text[:40]!r} is as long as the whole output may be; say less")
        return found

    def _told(self, source: str, hypotheses: list[Hypothesis], n_best: int) -> list[Candidate]:
        """So many of them that differ in their text, which other pieces may make too."""
        distinct: dict[str, Candidate] = {}
        for h in hypotheses:
            if len(distinct) == n_best:
                break
            text = self.tokenizer.decode(h.ids)  # text/    ids -> str
            told = Translation(source, text, h.score, h.log_prob, complete=h.complete)
            distinct.setdefault(text, Candidate(told, h.ids, loops(text, source)))
        return [*distinct.values()]

    def _detailed(
        self, found: list[Translation], sources: list[list[int]], ids: list[tuple[int, ...]]
    ) -> list[Translation]:
        """With pieces and alignments."""
        scores = self.engine.score(sources, [[*one, EOS_ID] for one in ids])
        weights = self.engine.attention(sources, ids)
        detailed = []
        for one, source, target, log_probs, attention in zip(found, sources, ids, scores, weights, strict=True):
            texts = [self.tokenizer.decode([i]) for i in target] + [""]
            pieces = tuple(Piece(*piece) for piece in zip(texts, log_probs, strict=True))
            words = self.tokenizer.words(source, "source"), self.tokenizer.words(target, "target")
            detailed.append(replace(one, pieces=pieces, alignment=align(attention, *words)))
        return detailed
