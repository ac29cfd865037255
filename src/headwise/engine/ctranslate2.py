"""The fast engine: CTranslate2, without torch."""

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property, partial
from math import nan
from pathlib import Path
from typing import Literal, TypeVar, get_args

import ctranslate2
import numpy as np

from headwise.config import ModelConfig, SearchConfig
from headwise.engine.contract import Array, Ids
from headwise.engine.convert import TABLE_ROWS
from headwise.engine.layout import Layout
from headwise.errors import InputError
from headwise.machine import flags
from headwise.search.hypothesis import Hypothesis

T = TypeVar("T")
ComputeType = Literal["float32", "int8", "bfloat16"]
TYPES: list[ComputeType] = [
    kind for kind in get_args(ComputeType) if kind in ctranslate2.get_supported_compute_types("cpu")
]
AVX512 = {"avx512f", "avx512cd", "avx512vl", "avx512dq", "avx512bw"}
BATCH_TOKENS = 1024  # source pieces decoded at once by a worker
NARROW, NARROW_TOKENS = 256, 2048  # by a model no wider than this
INT8_TOKENS = 1536  # in int8, counted times the beam


def unsupported(model: ModelConfig, search: SearchConfig, prefixes: bool = False) -> list[str]:
    """Why CTranslate2 cannot do what is asked for; empty if it can.

    Its rules change probabilities, and what a prefix costs is left out of a score, so a beam finds something else.
    """
    reasons = []
    if model.positions in ("rotary", "none"):
        reasons.append(f"positions '{model.positions}'")
    if model.n_heads * model.d_k != model.d_model or model.d_v != model.d_k:
        reasons.append("heads whose widths do not add up to d_model")
    if search.temperature:
        reasons.append("sampling that is the same in any company")
    if search.length_penalty != "length+eos":
        reasons.append(f"length penalty '{search.length_penalty}'")
    if search.stop != "finished" and search.beam_size > 1:
        reasons.append(f"stop '{search.stop}'")
    if search.beam_size > 1 and search.min_pieces:
        reasons.append("least length in a beam")
    if search.beam_size > 1 and search.no_repeat:
        reasons.append("rule against repeats in a beam")
    if search.beam_size > 1 and prefixes:
        reasons.append("prefix in a beam")
    return reasons


class CTranslate2Engine:
    """Generates from a model folder in CTranslate2's form.

    Where its target has only the pieces `said`, `whole` says where the model lies that has all of them.
    """

    def __init__(
        self,
        folder: Path,
        model: ModelConfig,
        compute_type: ComputeType,
        threads: int,
        said: Ids = (),
        whole: Callable[[], Path] | None = None,
    ) -> None:
        self.model = model
        self.compute_type, self.workers = compute_type, threads
        self.said, self.whole_folder = frozenset(said), whole
        if flags() >= AVX512:  # which CTranslate2 uses only when told to, before its first model
            os.environ.setdefault("CT2_FORCE_CPU_ISA", "AVX512")

        def loaded(workers: int, threads: int) -> ctranslate2.Translator:
            return ctranslate2.Translator(
                str(folder),
                device="cpu",
                compute_type=compute_type,
                inter_threads=workers,
                intra_threads=threads,
                max_queued_batches=-1,  # else it is waited for them before the first result can be taken
            )

        self.layout = Layout(loaded, threads)
        self.translator = self.layout.workers

    @cached_property
    def whole(self) -> "CTranslate2Engine":
        """The same with all pieces, for targets that have one which is never said."""
        assert self.whole_folder is not None
        return CTranslate2Engine(self.whole_folder(), self.model, self.compute_type, self.workers)

    def generate(
        self,
        sources: Sequence[Ids],
        search: SearchConfig,
        prefixes: Sequence[Ids] = (),
        numbers: Sequence[int] = (),
        scores: bool = True,
    ) -> Iterator[tuple[int, list[Hypothesis]]]:
        """The place of each source and its hypotheses, best first, while others are still decoded.

        `prefixes` are what they begin with, if any. Where one has a piece that is never said, all may be. Without
        `scores` there are none.
        """
        if not all(map(self._says, prefixes)):
            yield from self.whole.generate(sources, search, prefixes, numbers, scores)
            return
        if reasons := unsupported(self.model, search, bool(prefixes)):
            raise InputError(f"the engine ctranslate2 has no {', '.join(reasons)}; use --engine torch")
        longest = max((len(source) for source in sources), default=0) + search.extra_pieces
        if longest > TABLE_ROWS:
            raise InputError(
                f"{longest} pieces, source or output, are more than the {TABLE_ROWS} that ctranslate2 gets"
            )
        # CTranslate2 tells of other probabilities where it was made to say something.
        made = scores and bool(prefixes or search.min_pieces or search.no_repeat)
        late: dict[int, list[int]] = {}  # by their limits
        again: dict[int, list[Hypothesis]] = {}
        # All are given the most that any may have. Greedy search would have said the same up to its own limit, where
        # it is cut and scored anew; a beam that came near it is decoded again.
        for i, found, told in self._called(range(len(sources)), longest, sources, search, prefixes, scores):
            limit = len(sources[i]) + search.extra_pieces
            if search.beam_size > 1 and max(map(len, found)) >= limit - 1:
                late.setdefault(limit, []).append(i)
                continue
            hypotheses = _hypotheses(found, told, limit, search)
            if made or (scores and not hypotheses[0].complete):
                again[i] = hypotheses
            else:
                yield i, hypotheses
        for limit, indices in late.items():
            for i, found, told in self._called(indices, limit, sources, search, prefixes, scores):
                yield i, _hypotheses(found, told, limit, search)
        yield from zip(again, self._rescored([sources[i] for i in again], [*again.values()], search), strict=True)

    def _called(
        self,
        indices: Sequence[int],
        limit: int,
        sources: Sequence[Ids],
        search: SearchConfig,
        prefixes: Sequence[Ids],
        scores: bool,
    ) -> Iterator[tuple[int, list[list[str]], list[float]]]:
        """What CTranslate2 finds for some of the sources in at most `limit` steps: hypotheses and their scores.

        The longest sources come first, as it decodes them.
        """
        budget = NARROW_TOKENS if self.model.d_model <= NARROW else BATCH_TOKENS
        if self.compute_type == "int8":
            budget = INT8_TOKENS // search.beam_size
        indices = sorted(indices, key=lambda i: -len(sources[i]))
        call = partial(
            ctranslate2.Translator.translate_batch,
            source=[_names(sources[i]) for i in indices],
            target_prefix=[_names(prefixes[i]) for i in indices] if prefixes else None,
            beam_size=search.beam_size,
            num_hypotheses=search.beam_size,
            length_penalty=search.alpha,
            max_decoding_length=limit,
            min_decoding_length=search.min_pieces,
            no_repeat_ngram_size=search.no_repeat,
            max_input_length=0,
            return_scores=scores,
            batch_type="tokens",
            max_batch_size=self._size([sources[i] for i in indices], budget),
        )
        if len(indices) == 1:
            results = iter(self.layout.alone(len(sources[indices[0]]), call))
        else:
            results = (result.result() for result in call(self.translator, asynchronous=True))
        for i, found in zip(indices, results, strict=True):
            yield i, found.hypotheses, found.scores  # each of them is made anew whenever it is asked for

    def _size(self, texts: Sequence[Ids], budget: int) -> int:
        """Pieces a batch: what the budget allows, and no more than leaves a share for every worker."""
        return max(1, min(budget, sum(map(len, texts)) // self.workers + 1))

    def _rescored(
        self, sources: Sequence[Ids], found: list[list[Hypothesis]], search: SearchConfig
    ) -> list[list[Hypothesis]]:
        """The same hypotheses with the log probabilities that the model gives them."""
        pairs = [(source, h) for source, hypotheses in zip(sources, found, strict=True) for h in hypotheses]
        scores = iter(self.score([source for source, _ in pairs], [[*h.ids, self.model.eos_id] for _, h in pairs]))
        rescored = []
        for hypotheses in found:
            log_probs = [sum(next(scores)[: len(h.ids) + h.complete]) for h in hypotheses]
            rescored.append([_told(h, p, search) for h, p in zip(hypotheses, log_probs, strict=True)])
        return rescored

    def score(self, sources: Sequence[Ids], targets: Sequence[Ids]) -> list[list[float]]:
        """The log probability of every piece of each target, its end included, given its source.

        It is that among all pieces where a target has one that is never said.
        """
        if not all(map(self._says, targets)):
            return self._apart(CTranslate2Engine.score, sources, targets)
        without_end = [target[:-1] for target in targets]  # CTranslate2 adds it
        results = self.translator.score_batch(
            [_names(source) for source in sources],
            [_names(target) for target in without_end],
            max_input_length=0,
            batch_type="tokens",
            max_batch_size=self._size(targets, BATCH_TOKENS),
        )
        return [list(result.log_probs) for result in results]

    def attention(self, sources: Sequence[Ids], targets: Sequence[Ids]) -> list[Array]:
        """What each piece, the end left out, looks at, `(T_tgt, T_src)`: the mean of the second-last layer's heads."""
        if not all(map(self._says, targets)):
            return self._apart(CTranslate2Engine.attention, sources, targets)
        results = self.translator.translate_batch(
            [_names(source) for source in sources],
            target_prefix=[_names(target) for target in targets],
            beam_size=1,
            max_decoding_length=max(map(len, targets), default=1),
            min_decoding_length=0,
            max_input_length=0,
            return_attention=True,
            batch_type="tokens",
            max_batch_size=BATCH_TOKENS,
        )
        return [
            np.array(result.attention[0][: len(target)], np.float32)
            for result, target in zip(results, targets, strict=True)
        ]

    def _says(self, pieces: Ids) -> bool:
        return not self.said or self.said.issuperset(pieces)

    def _apart(
        self,
        ask: "Callable[[CTranslate2Engine, list[Ids], list[Ids]], list[T]]",
        sources: Sequence[Ids],
        targets: Sequence[Ids],
    ) -> list[T]:
        """What is asked of each pair: of the whole model where the target has a piece that is never said."""
        found: dict[int, T] = {}
        for engine, says in ((self, True), (self.whole, False)):
            chosen = [i for i, target in enumerate(targets) if self._says(target) == says]
            if chosen:
                asked = ask(engine, [sources[i] for i in chosen], [targets[i] for i in chosen])
                found |= zip(chosen, asked, strict=True)
        return [found[i] for i in range(len(targets))]


def _names(pieces: Sequence[int]) -> list[str]:
    """Pieces are known to CTranslate2 by their numbers, so that no text can be mistaken for a special piece."""
    return [str(piece) for piece in pieces]


def _hypotheses(found: list[list[str]], scores: list[float], limit: int, search: SearchConfig) -> list[Hypothesis]:
    hypotheses = []
    for pieces, score in zip(found, scores or [nan] * len(found), strict=False):
        complete = len(pieces) < limit
        log_prob = score * max(1, len(pieces) + complete) ** search.alpha
        hypotheses.append(Hypothesis(tuple(map(int, pieces[:limit])), log_prob, score, complete))
    return hypotheses


def _told(h: Hypothesis, log_prob: float, search: SearchConfig) -> Hypothesis:
    score = log_prob / max(1, len(h.ids) + h.complete) ** search.alpha
    return replace(h, log_prob=log_prob, score=score)
