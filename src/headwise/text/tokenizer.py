"""Subwords and characters, on the `tokenizers` library; text comes back as it went in."""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from math import inf
from typing import Any, Literal

import tokenizers
from tokenizers import Regex, decoders, models, normalizers, pre_tokenizers, trainers

from headwise.config import TokenizerConfig
from headwise.errors import InputError
from headwise.text.scripts import LATIN, scripts
from headwise.text.special import EOS_ID, SPECIAL, UNK, language_tag


class Tokenizer:
    """Text to ids for source and target, which share one vocabulary or have one each."""

    def __init__(self, source: tokenizers.Tokenizer, target: tokenizers.Tokenizer) -> None:
        self._source, self._target = source, target
        self.languages = _tagged_languages(source)  # the target languages that can be asked for

    @classmethod
    def learn(
        cls,
        source: Iterable[str],
        target: Iterable[str],
        config: TokenizerConfig,
        n_pairs: int,
        languages: Sequence[str] = (),
    ) -> "Tokenizer":
        """From the lines of both sides, side by side; `languages` get a tag each.

        The same lines give the same bytes, but for `unigram`, where the library's sums depend on the order in which a
        hash table is walked.
        """
        special = [*SPECIAL, *map(language_tag, languages)]
        n_pieces = config.vocab_size or vocabulary_for(n_pairs)
        if config.joint:
            shared = _learn(_alternate(source, target), config, n_pieces, special)
            return cls(shared, shared)
        return cls(_learn(source, config, n_pieces, special), _learn(target, config, n_pieces, special))

    @classmethod
    def from_text(cls, text: str) -> "Tokenizer":
        """From the saved form; ValueError if it is not one."""
        try:
            raw = json.loads(text)
            parts = [raw["source"], raw["target"]] if "source" in raw else [raw]
            sides = [tokenizers.Tokenizer.from_str(json.dumps(part)) for part in parts]
        except Exception as error:  # the library raises bare Exceptions
            raise ValueError(f"not a tokenizer: {error}") from None
        for side in sides:
            if [side.id_to_token(i) for i in range(len(SPECIAL))] != list(SPECIAL):
                raise ValueError(f"not a tokenizer of headwise: its first pieces are not {', '.join(SPECIAL)}")
        return cls(sides[0], sides[-1])

    def to_text(self) -> str:
        """The saved form: the library's own JSON where the vocabulary is shared, else one for each side."""
        if self.joint:
            return self._source.to_str()
        sides = {"source": json.loads(self._source.to_str()), "target": json.loads(self._target.to_str())}
        return json.dumps(sides, ensure_ascii=False)

    def with_dropout(self, p: float) -> "Tokenizer":
        """The same BPE with merges left out at random, each with probability p; the library cannot be seeded."""
        sides = []
        for side in (self._source, self._target):
            raw = json.loads(side.to_str())
            raw["model"]["dropout"] = p or None
            sides.append(tokenizers.Tokenizer.from_str(json.dumps(raw)))
        return Tokenizer(*sides)

    @property
    def joint(self) -> bool:
        """Whether both sides share one vocabulary."""
        return self._source is self._target

    @property
    def src_vocab_size(self) -> int:
        """Pieces of the source."""
        return self._source.get_vocab_size()

    @property
    def vocab_size(self) -> int:
        """Pieces of the target."""
        return self._target.get_vocab_size()

    def encode_source(self, texts: Sequence[str], to: str | None = None) -> list[list[int]]:
        """Ids of each text, the tag of the language `to` before them, the end after them."""
        tag = [] if to is None else [self._tag_id(to)]
        return [[*tag, *ids, EOS_ID] for ids in _encode(self._source, texts)]

    def encode_target(self, texts: Sequence[str]) -> list[list[int]]:
        """Ids of each text, the end after them."""
        return [[*ids, EOS_ID] for ids in _encode(self._target, texts)]

    def decode(self, ids: Sequence[int]) -> str:
        """The target text; pieces that stand for no text leave nothing."""
        n_special = len(SPECIAL) + len(self.languages)
        return self._target.decode([i for i in ids if i >= n_special], skip_special_tokens=False)

    def words(self, ids: Sequence[int], side: Literal["source", "target"]) -> list[int]:
        """To which word of the text, counted from 0 and parted by white space, each piece belongs; -1 for none."""
        tokenizer = self._source if side == "source" else self._target
        n_special = len(SPECIAL) + len(self.languages)
        found, text_ids = [], []
        for i in ids:
            if i < n_special:
                found.append(-1)
                continue
            text_ids.append(i)
            found.append(max(0, len(tokenizer.decode(text_ids, skip_special_tokens=False).split()) - 1))
        return found

    def pieces(self, ids: Sequence[int], side: Literal["source", "target"]) -> list[str]:
        """The text of each piece; those that stand for no text by their names."""
        tokenizer = self._source if side == "source" else self._target
        names = [*SPECIAL, *map(language_tag, self.languages)]
        return [names[i] if i < len(names) else tokenizer.decode([i], skip_special_tokens=False) for i in ids]

    def can_read(self, text: str) -> bool:
        """False if most of its letters are of writing systems of which no letter was learned."""
        if text.isascii():
            return True
        letters = scripts(text)
        return set(letters) <= {LATIN} or 2 * sum(one in self._scripts for one in letters) >= len(letters)

    @cached_property
    def _scripts(self) -> set[str]:
        """The writing systems of which there is a whole letter in the pieces of the source; Latin is in the bytes."""
        pieces = self._source.decode_batch([[i] for i in range(self.src_vocab_size)], skip_special_tokens=False)
        return {LATIN, *scripts("".join(pieces))}

    def _tag_id(self, language: str) -> int:
        if language not in self.languages:
            known = ", ".join(self.languages) or "none: it has one direction"
            raise InputError(f"this model cannot be asked for {language!r}; it knows {known}")
        return len(SPECIAL) + self.languages.index(language)


def vocabulary_for(n_pairs: int) -> int:
    """How many pieces to learn from so many pairs, unless the settings say."""
    return next(
        size for pairs, size in ((20_000, 4000), (200_000, 10_000), (2e6, 16_000), (inf, 32_000)) if n_pairs < pairs
    )


def _tagged_languages(tokenizer: tokenizers.Tokenizer) -> list[str]:
    """The languages whose tags follow the special pieces."""
    found = []
    for i in range(len(SPECIAL), tokenizer.get_vocab_size()):
        piece = tokenizer.id_to_token(i) or ""
        if not re.fullmatch("<2.+>", piece):
            break
        found.append(piece[2:-1])
    return found


def _alternate(source: Iterable[str], target: Iterable[str]) -> Iterator[str]:
    for pair in zip(source, target, strict=True):
        yield from pair


def _encode(tokenizer: tokenizers.Tokenizer, texts: Sequence[str]) -> list[list[int]]:
    try:
        if len(texts) < 2:  # without the library's threads, which cost more than that
            return [tokenizer.encode(text, add_special_tokens=False).ids for text in texts]
        return [encoding.ids for encoding in tokenizer.encode_batch_fast(texts, add_special_tokens=False)]
    except TypeError:
        for text in texts:
            if any("\ud800" <= character <= "\udfff" for character in text):
                raise InputError(f"{text[:40]!r} holds half of a surrogate pair, which is no character") from None
        raise


def _learn(lines: Iterable[str], config: TokenizerConfig, n_pieces: int, special: list[str]) -> tokenizers.Tokenizer:
    if config.kind == "characters":
        return _characters(lines, config, special)
    bytes_as_characters = sorted(pre_tokenizers.ByteLevel.alphabet())
    shared: dict[str, Any] = {
        "special_tokens": special,
        "initial_alphabet": bytes_as_characters,
        "show_progress": False,
    }
    model: Any
    trainer: Any
    if config.kind == "bpe":
        model, trainer = models.BPE(), trainers.BpeTrainer(vocab_size=n_pieces, **shared)
    else:
        model = models.Unigram()
        trainer = trainers.UnigramTrainer(vocab_size=n_pieces, unk_token=UNK, **shared)
    tokenizer = tokenizers.Tokenizer(model)
    if config.normalise == "nfc":
        tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.train_from_iterator(lines, trainer)
    return _without_magic(tokenizer)


def _without_magic(tokenizer: tokenizers.Tokenizer) -> tokenizers.Tokenizer:
    """The same without "added tokens", so that a text which holds `</s>` is text and not an end."""
    raw = json.loads(tokenizer.to_str())
    raw["added_tokens"] = []
    return tokenizers.Tokenizer.from_str(json.dumps(raw))


def _characters(lines: Iterable[str], config: TokenizerConfig, special: list[str]) -> tokenizers.Tokenizer:
    """A piece for each character that was seen; any other is unknown."""
    normalizer = normalizers.NFC() if config.normalise == "nfc" else None
    seen: set[str] = set()
    for line in lines:
        seen.update(normalizer.normalize_str(line) if normalizer else line)
    pieces = [*special, *sorted(seen)]
    tokenizer = tokenizers.Tokenizer(models.WordLevel({piece: i for i, piece in enumerate(pieces)}, unk_token=UNK))
    if normalizer:
        tokenizer.normalizer = normalizer
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(r"[\s\S]"), "isolated")
    tokenizer.decoder = decoders.Fuse()
    return tokenizer
