"""Lines in, lines out, in blocks: bounded memory, and an interrupted output file that can be gone on with."""

import contextlib
import hashlib
import json
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

from headwise.atomic import write_text
from headwise.data.corpus import Corpus, cannot_read
from headwise.errors import FolderError

BLOCK = 512  # lines that are translated together
BLOCK_BYTES = 2**20  # a block has no more than one line beyond so many

# the number of the first text and the texts of a block -> the lines of output that each of them gives
Work = Callable[[int, list[str]], Iterable[list[str]]]


def stream(source: BinaryIO, sink: BinaryIO, name: Path, work: Work, n_there: int = 0) -> Iterator[int]:
    """Work off the lines of `source`, and say after each block how many are done; the first `n_there` are in the sink.

    Blocks begin where they would have begun without an interruption, so that the same texts are decoded together. A
    person at a terminal gets an answer to each line.
    """
    done = 0
    for block in blocks(source, 1 if source.isatty() else BLOCK):
        if done + len(block) > n_there:
            texts = [Corpus.decode(line.removesuffix(b"\n"), i, name) for i, line in enumerate(block, start=done + 1)]
            for number, outputs in enumerate(work(done, texts), start=done):
                if number >= n_there:
                    sink.writelines(output.encode("utf-8") + b"\n" for output in outputs)
            sink.flush()
            yield done + len(block)
        done += len(block)


def blocks(source: BinaryIO, most: int) -> Iterator[list[bytes]]:
    """Lines with their line feeds, up to `most` together, fewer where they are long."""
    block: list[bytes] = []
    size = 0
    for line in iter(source.readline, b""):  # binary: only a line feed ends a line
        block.append(line)
        size += len(line)
        if len(block) == most or size >= BLOCK_BYTES:
            yield block
            block, size = [], 0
    if block:
        yield block


class Output:
    """A file that lines are added to; beside it a note, while it is unfinished, of what it is made from."""

    def __init__(self, file: Path, made_from: dict[str, str]) -> None:
        self.file, self.made_from = file, made_from
        self.note = file.with_name(f".{file.name}.unfinished")

    @contextlib.contextmanager
    def opened(self, resume: bool, n_inputs: Callable[[BinaryIO], tuple[int, int]]) -> Iterator[tuple[BinaryIO, int]]:
        """The file at its end, and how many inputs are in it; `n_inputs` counts those, and the bytes that they take."""
        done = 0
        if resume and self.file.exists():
            self._check()
            with self.file.open("rb+") as handle:
                done, n_bytes = n_inputs(handle)
                handle.truncate(n_bytes)
        elif self.file.exists():
            way = "add --resume to go on" if self.note.exists() else "choose another name"
            raise FolderError(f"{self.file} is there already; {way}, or move it away")
        write_text(self.note, json.dumps(self.made_from, indent=1) + "\n")
        with self.file.open("ab") as handle:
            yield handle, done
        self.note.unlink()

    def _check(self) -> None:
        try:
            before = json.loads(self.note.read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise FolderError(f"{self.file} is finished, or was not written by headwise; choose another name") from None
        except ValueError:
            raise FolderError(f"{self.note} cannot be read; remove {self.file} and begin anew") from None
        differs = [name for name, value in self.made_from.items() if before.get(name) != value]
        if differs:
            raise FolderError(f"{self.file} was begun with another {' and '.join(differs)}; choose another name")


def whole_lines(handle: BinaryIO) -> tuple[int, int]:
    """How many lines end with a line feed, and the bytes up to there."""
    n = n_bytes = 0
    for line in handle:
        if line.endswith(b"\n"):
            n, n_bytes = n + 1, n_bytes + len(line)
    return n, n_bytes


def whole_groups(handle: BinaryIO) -> tuple[int, int]:
    """The same for `number ||| ...`: the last number may lack some of its lines, so it is done again."""
    last, begin, n_bytes = 0, 0, 0
    for line in handle:
        if line.endswith(b"\n"):
            number = int(line.split(b" ", 1)[0])
            if number != last:
                last, begin = number, n_bytes
            n_bytes += len(line)
    return last, begin


def sha256(file: Path) -> str:
    """Of a file of any size."""
    try:
        with file.open("rb") as handle:
            return hashlib.file_digest(handle, "sha256").hexdigest()
    except OSError as error:
        raise cannot_read(file, error) from None


def count(file: Path) -> int:
    """Lines of a file, the last one also where nothing ends it."""
    with file.open("rb") as handle:
        return sum(1 for _ in handle)


def stdin() -> BinaryIO:
    """Standard input as bytes."""
    return sys.stdin.buffer
