"""A parallel corpus: two files side by side, or one of tab-separated pairs; plain or gzip.

A line is what stands between two line feeds and nothing else ends one. A leading byte order mark and one carriage
return at a line's end are not part of the text.
"""

import difflib
import gzip
import hashlib
import heapq
import itertools
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from headwise.config import CopiesConfig, CorpusConfig, DataConfig
from headwise.data.copies import copies_of
from headwise.errors import DataError, UnequalLines

NO_COPIES = CopiesConfig()
BOM, GZIP = b"\xef\xbb\xbf", b"\x1f\x8b"


@dataclass(frozen=True)
class Corpus:
    """Where pairs come from: `src` and `tgt` line by line, or `src` alone with a tab in each line.

    `part` leaves only the pairs whose hash lies between two numbers, the first included. `turned`, it gives the target
    as source. `copies` follow the pairs that they are of.
    """

    src: Path
    tgt: Path | None = None
    part: tuple[int, int] | None = None
    turned: bool = False
    to: str | None = None  # the language of the target that it gives
    weight: float = 1.0  # how often it stands in an epoch
    copies: CopiesConfig = NO_COPIES

    @classmethod
    def of(cls, config: CorpusConfig) -> "Corpus":
        """The one that the settings name."""
        if config.pairs is not None:
            return cls(Path(config.pairs))
        return cls(Path(config.src or ""), Path(config.tgt or ""))

    @property
    def name(self) -> str:
        """The file, or the two files."""
        return str(self.src) if self.tgt is None else f"{self.src}, {self.tgt}"

    def raw_pairs(self) -> Iterator[tuple[bytes, bytes]]:
        """Both sides of each line as bytes, as they stand in the files."""
        if self.tgt is None:
            for line in raw_lines(self.src):
                src, tgt, *_ = *line.split(b"\t"), b""  # a line without a tab has an empty target
                yield src, tgt
            return
        counts = {self.src: 0, self.tgt: 0}
        for src, tgt in itertools.zip_longest(raw_lines(self.src), raw_lines(self.tgt)):
            counts[self.src] += src is not None
            counts[self.tgt] += tgt is not None
            if counts[self.src] == counts[self.tgt]:
                yield src, tgt
        if counts[self.src] != counts[self.tgt]:
            raise UnequalLines(
                f"{self.src} has {counts[self.src]} lines, {self.tgt} has {counts[self.tgt]}: "
                "parallel files must match line by line"
            )

    def pairs(self) -> Iterator[tuple[str, str]]:
        """Both sides of each line as text; bytes that are no UTF-8 are a DataError."""
        begin, end = self.part or (0, 2**64)
        for number, (src, tgt) in enumerate(self.raw_pairs(), start=1):
            if self.part and not begin <= pair_hash(src, tgt) < end:
                continue
            pair = self.decode(src, number, self.src), self.decode(tgt, number, self.tgt or self.src)
            if self.turned:
                pair = pair[::-1]
            yield pair
            yield from copies_of(pair, self.copies)

    @staticmethod
    def decode(line: bytes, number: int, file: Path) -> str:
        """A line as text without what ends it; the file, the line and the byte that is no UTF-8 are named."""
        try:
            return clean(line, number).decode("utf-8")
        except UnicodeDecodeError as error:
            byte = error.object[error.start]
            raise DataError(
                f"{file}, line {number}, byte {error.start + 1}: 0x{byte:02x} is not UTF-8; convert the file"
            ) from None


def directions(corpora: Sequence[CorpusConfig], data: DataConfig) -> list[Corpus]:
    """Each of these corpora of `data` in the direction it has, or in both."""
    found = []
    for config in corpora:
        languages = config.source_lang or data.source_lang, config.target_lang or data.target_lang
        corpus = replace(Corpus.of(config), weight=config.weight, to=languages[1])
        found += [corpus, replace(corpus, turned=True, to=languages[0])] if data.both_ways else [corpus]
    return found


def pair_hash(src: bytes, tgt: bytes) -> int:
    """A number below 2**64 that is the same for the same text, everywhere and always."""
    digest = hashlib.blake2b(src.removesuffix(b"\r") + b"\t" + tgt.removesuffix(b"\r"), digest_size=8)
    return int.from_bytes(digest.digest(), "big")


def hold_out(corpora: Sequence[Corpus], n: int) -> tuple[list[Corpus], list[Corpus]]:
    """What is left, and the `n` different pairs with two sides whose hashes are smallest; no pair is in both."""
    smallest: set[int] = set()
    largest_first: list[int] = []  # a heap of their negatives
    for corpus in corpora:
        for src, tgt in corpus.raw_pairs():
            if not (src.strip() and tgt.strip()):
                continue
            number = pair_hash(src, tgt)
            if number in smallest or (len(smallest) == n and number > -largest_first[0]):
                continue
            smallest.add(number)
            heapq.heappush(largest_first, -number)
            if len(smallest) > n:
                smallest.remove(-heapq.heappop(largest_first))
    border = -largest_first[0] + 1 if largest_first else 0
    return (
        [replace(corpus, part=(border, 2**64)) for corpus in corpora],
        [replace(corpus, part=(0, border)) for corpus in corpora],
    )


def spread(corpora: Sequence[Corpus], n_pairs: int, at_most: int) -> Iterator[tuple[str, str]]:
    """Every k-th of `n_pairs` pairs, so that at most `at_most` are left, from all parts of all corpora."""
    every = max(1, -(-n_pairs // at_most))
    return itertools.islice(itertools.chain.from_iterable(corpus.pairs() for corpus in corpora), 0, None, every)


def clean(line: bytes, number: int) -> bytes:
    """A line without the carriage return of its end and, if it is the first, without a byte order mark."""
    line = line.removeprefix(BOM) if number == 1 else line
    return line.removesuffix(b"\r")


def raw_lines(file: Path) -> Iterator[bytes]:
    """The lines of a file, plain or gzip, without their line feeds."""
    try:
        with open(file, "rb") as plain:
            packed = plain.peek(2).startswith(GZIP)
            for line in gzip.GzipFile(fileobj=plain) if packed else plain:  # binary: only a line feed ends a line
                yield line.removesuffix(b"\n")
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise DataError(f"{file} is damaged: {error}") from None
    except OSError as error:
        raise cannot_read(file, error) from None


def cannot_read(file: Path, error: OSError) -> DataError:
    """What to raise for it; a name that is not there brings the nearest one that is."""
    near = []
    if isinstance(error, FileNotFoundError) and file.parent.is_dir():
        near = difflib.get_close_matches(file.name, [other.name for other in file.parent.iterdir()], 1, cutoff=0.7)
    return DataError(f"cannot read {file}: {error.strerror}" + "".join(f"; did you mean '{name}'?" for name in near))
