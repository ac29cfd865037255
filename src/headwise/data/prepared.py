"""A corpus as ids: prepared once, then memory-mapped, so that it may be larger than memory."""

import hashlib
import itertools
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from headwise.atomic import new_folder
from headwise.data.corpus import NO_COPIES, Corpus
from headwise.errors import DataError, FolderError
from headwise.text.special import SPECIAL
from headwise.text.tokenizer import Tokenizer

FORMAT_VERSION = 2
BLOCK = 4096  # pairs that are encoded at once
IDS = 1 << 20  # that are looked at at once
FACTS = "facts.json"
Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True)
class Side:
    """The ids of all texts of one side, end to end; text i is `ids[offsets[i] : offsets[i + 1]]`.

    Cut in several ways, the texts of the second way follow all those of the first, and so on.
    """

    ids: Array
    offsets: Array

    def __getitem__(self, i: int) -> Array:
        return self.ids[self.offsets[i] : self.offsets[i + 1]]

    def lengths(self) -> Array:
        """Pieces of each text, `(n_samples * n_pairs,)` as int32."""
        return np.diff(self.offsets).astype(np.int32)


@dataclass(frozen=True)
class Prepared:
    """All pairs as ids, and how they came to be."""

    src: Side
    tgt: Side
    begins: tuple[int, ...]  # the first pair of each corpus
    n_empty: int  # pairs left out for an empty side
    n_long: int  # pairs left out for more than max_pieces on a side
    fingerprint: str  # of corpora, tokenizer and settings
    n_samples: int = 1  # ways in which each pair is cut into pieces

    def __len__(self) -> int:
        return (len(self.src.offsets) - 1) // self.n_samples

    def said(self, n_pieces: int) -> tuple[int, ...]:
        """The pieces that targets have, of `n_pieces`, ascending, and those that stand for no text.

        Others fill them up to a multiple of 16, with which a matrix is multiplied sooner.
        """
        has = np.zeros(n_pieces, bool)
        has[: len(SPECIAL)] = True
        for begin in range(0, len(self.tgt.ids), IDS):
            has[self.tgt.ids[begin : begin + IDS]] = True
        has[np.flatnonzero(~has)[: -has.sum() % 16]] = True
        return tuple(np.flatnonzero(has).tolist())


def prepare(
    corpora: Sequence[Corpus],
    tokenizer: Tokenizer,
    folder: Path,
    max_pieces: int = 256,
    dropout: float = 0.0,
    n_samples: int = 1,
) -> Prepared:
    """Encode all pairs into `folder`, or take what lies there if it was made of the very same.

    A tokenizer with language tags puts that of its target before each source.
    With `dropout`, BPE dropout cuts each pair in `n_samples` ways; a pair is too long if it is so without it.
    """
    fingerprint = _fingerprint(corpora, tokenizer, [max_pieces, None, dropout, n_samples])
    if not (folder / FACTS).exists():
        with new_folder(folder) as unfinished:
            facts = _write(corpora, tokenizer, unfinished, max_pieces, [dropout] * n_samples)
            facts |= {"format_version": FORMAT_VERSION, "fingerprint": fingerprint}
            (unfinished / FACTS).write_text(json.dumps(facts, indent=2))
    prepared = open_prepared(folder)
    if prepared.fingerprint != fingerprint:
        raise FolderError(f"{folder} was prepared from other text or with other settings; choose another folder")
    return prepared


def open_prepared(folder: Path) -> Prepared:
    """What was prepared there, memory-mapped."""
    try:
        facts = json.loads((folder / FACTS).read_text())
        if facts["format_version"] != FORMAT_VERSION:
            raise DataError(f"{folder} was prepared by another version of headwise; remove it and prepare again")
        src, tgt = (_open_side(folder, side, facts) for side in ("src", "tgt"))
        counts = facts["n_empty"], facts["n_long"]
        return Prepared(src, tgt, tuple(facts["begins"]), *counts, facts["fingerprint"], facts["n_samples"])
    except (OSError, ValueError, KeyError) as error:
        raise DataError(f"{folder} holds no prepared data: {error}") from None


def _open_side(folder: Path, side: str, facts: dict[str, Any]) -> Side:
    offsets = _map(folder / f"{side}.offsets", np.dtype(np.int64), facts["n_pairs"] * facts["n_samples"] + 1)
    return Side(_map(folder / f"{side}.ids", np.dtype(facts["dtype"]), facts["n_pieces"][side]), offsets)


def _map(file: Path, dtype: np.dtype[Any], n: int) -> Array:
    if file.stat().st_size != n * dtype.itemsize:
        raise ValueError(f"{file.name} has {file.stat().st_size} bytes, not {n * dtype.itemsize}")
    return np.memmap(file, dtype, mode="r", shape=(n,)) if n else np.empty(0, dtype)


def _fingerprint(corpora: Sequence[Corpus], tokenizer: Tokenizer, settings: list[Any]) -> str:
    digest = hashlib.sha256(json.dumps([FORMAT_VERSION, tokenizer.to_text(), *settings]).encode())
    for corpus in corpora:
        digest.update(f"\0corpus {corpus.part}".encode())
        if tokenizer.languages:
            digest.update(f" to {corpus.to}".encode())
        if corpus.turned:
            digest.update(b" turned")
        if corpus.copies != NO_COPIES:
            digest.update(corpus.copies.model_dump_json().encode())
        for src, tgt in corpus.raw_pairs():
            digest.update(b"%d %d " % (len(src), len(tgt)))
            digest.update(src + tgt)
    return digest.hexdigest()


def _write(
    corpora: Sequence[Corpus],
    tokenizer: Tokenizer,
    folder: Path,
    max_pieces: int,
    dropouts: Sequence[float],
) -> dict[str, Any]:
    """Stream everything through the tokenizer into the files of a folder, once for each of `dropouts`."""
    dtype = np.uint16 if max(tokenizer.src_vocab_size, tokenizer.vocab_size) <= 2**16 else np.int32
    with (
        open(folder / "src.ids", "xb") as src_ids,
        open(folder / "src.offsets", "xb") as src_offsets,
        open(folder / "tgt.ids", "xb") as tgt_ids,
        open(folder / "tgt.offsets", "xb") as tgt_offsets,
    ):
        src_end = _append(src_ids, src_offsets, [[]], dtype, 0)  # the first offset is 0
        tgt_end = _append(tgt_ids, tgt_offsets, [[]], dtype, 0)
        for dropout in dropouts:
            cut = tokenizer.with_dropout(dropout) if dropout else tokenizer
            begins, n_pairs, n_empty, n_long = [], 0, 0, 0
            for corpus in corpora:
                begins.append(n_pairs)
                to = corpus.to if tokenizer.languages else None
                for block in _blocks(corpus.pairs()):
                    full = [(src, tgt) for src, tgt in block if src.strip() and tgt.strip()]
                    encoded = _encode(tokenizer, full, to)
                    fits = [max(len(src), len(tgt)) <= max_pieces for src, tgt in encoded]
                    kept = list(itertools.compress(encoded if cut is tokenizer else _encode(cut, full, to), fits))
                    n_empty += len(block) - len(full)
                    n_long += len(full) - len(kept)
                    n_pairs += len(kept)
                    src_end = _append(src_ids, src_offsets, [src for src, _ in kept], dtype, src_end)
                    tgt_end = _append(tgt_ids, tgt_offsets, [tgt for _, tgt in kept], dtype, tgt_end)
    return {
        "n_pairs": n_pairs,
        "n_samples": len(dropouts),
        "n_pieces": {"src": src_end, "tgt": tgt_end},
        "begins": begins,
        "n_empty": n_empty,
        "n_long": n_long,
        "dtype": np.dtype(dtype).name,
    }


def _encode(tokenizer: Tokenizer, pairs: list[tuple[str, str]], to: str | None) -> list[tuple[list[int], list[int]]]:
    sources = tokenizer.encode_source([src for src, _ in pairs], to)
    return list(zip(sources, tokenizer.encode_target([tgt for _, tgt in pairs]), strict=True))


def _blocks(pairs: Iterator[tuple[str, str]]) -> Iterator[list[tuple[str, str]]]:
    while block := list(itertools.islice(pairs, BLOCK)):
        yield block


def _append(ids: BinaryIO, offsets: BinaryIO, texts: list[list[int]], dtype: Any, end: int) -> int:
    """Write texts at the end of a side; where it ends now."""
    ends = end + np.cumsum([len(text) for text in texts], dtype=np.int64)
    ids.write(np.fromiter(itertools.chain.from_iterable(texts), dtype).tobytes())
    offsets.write(ends.tobytes())
    return int(ends[-1]) if texts else end
