"""Copies of a pair as people also write it: all capitals, no capitals, no stop at the end."""

import hashlib
from collections.abc import Callable, Iterator

from headwise.config import CopiesConfig

Pair = tuple[str, str]
STOPS = ".!?"


def _without_stop(text: str) -> str:
    return text.rstrip().rstrip(STOPS).rstrip()


CHANGES: dict[str, Callable[[str], str]] = {"upper": str.upper, "lower": str.lower, "no_stop": _without_stop}


def copies_of(pair: Pair, shares: CopiesConfig) -> Iterator[Pair]:
    """The copies that this pair has; which pairs have one is settled by a hash, so it is always the same ones."""
    for kind, change in CHANGES.items():
        share = getattr(shares, kind)
        if share and _draw(kind, pair) < share:
            copy = change(pair[0]), change(pair[1])
            if copy != pair and all(copy):
                yield copy


def _draw(kind: str, pair: Pair) -> float:
    """A number from 0 to 1 that follows from the text."""
    digest = hashlib.blake2b("\t".join((kind, *pair)).encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "big") / 2**64
