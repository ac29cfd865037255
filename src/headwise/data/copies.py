"""Copies of a pair: all capitals, a source without capitals, no stop at the end, something unknown, other numbers."""

import hashlib
import re
from collections.abc import Callable, Iterator, Sequence
from random import Random

from headwise.config import CopiesConfig

Pair = tuple[str, str]
STOPS = ".!?"
ORDINAL, ENDINGS = re.compile(r"([0-9]+)(?:st|nd|rd|th)\b"), {1: "st", 2: "nd", 3: "rd"}
LETTERS, DIGITS = "abcdefghijklmnopqrstuvwxyz", "0123456789"
EMOJI = [chr(code) for first, last in ((0x1F300, 0x1F5FF), (0x1F600, 0x1F64F), (0x1F680, 0x1F6C5), (0x1F900, 0x1F9FF))
         for code in range(first, last + 1)]  # fmt: skip


def copies_of(pair: Pair, shares: CopiesConfig) -> Iterator[Pair]:
    """The copies that this pair has; what they are follows from a hash of it, so they are always the same."""
    for kind, change in CHANGES.items():
        share = getattr(shares, kind)
        draw = Random(_number(kind, pair)) if share else None
        if draw and draw.random() < share:
            copy = change(pair, draw)
            if copy != pair and all(copy):
                yield copy


def _without_stop(text: str) -> str:
    return text.rstrip().rstrip(STOPS).rstrip()


def _with_something(pair: Pair, draw: Random) -> Pair:
    """The same thing after both sides or before them, or, once in four times, nothing but the thing."""
    thing, place = _thing(draw), draw.random()
    if place < 0.25:
        return thing, thing
    src, tgt = pair
    return (f"{src} {thing}", f"{tgt} {thing}") if place < 0.75 else (f"{thing} {src}", f"{thing} {tgt}")


def _other_numbers(pair: Pair, draw: Random) -> Pair:
    """The same with other figures, where those of one side are those of the other."""
    found = [sorted(re.findall("[0-9]+", side)) for side in pair]
    if found[0] != found[1]:
        return pair
    most = {1: 24, 2: 59}  # as in times and dates, so that hours have two figures as often as one
    others = {n: f"{int(draw.random() * (most.get(len(n), 10 ** len(n) - 1) + 1)):0{len(n)}}" for n in found[0]}
    src, tgt = (re.sub("[0-9]+", lambda number: others[number[0]], side) for side in pair)
    return ORDINAL.sub(_ordinal, src), ORDINAL.sub(_ordinal, tgt)


def _ordinal(found: re.Match[str]) -> str:
    """As English ends it: 21st, 12th."""
    n = int(found[1])
    return found[1] + ("th" if 10 < n % 100 < 14 else ENDINGS.get(n % 10, "th"))


CHANGES: dict[str, Callable[[Pair, Random], Pair]] = {
    "upper": lambda pair, draw: (pair[0].upper(), pair[1].upper()),
    "lower": lambda pair, draw: (pair[0].lower(), pair[1]),
    "no_stop": lambda pair, draw: (_without_stop(pair[0]), _without_stop(pair[1])),
    "with_unknown": _with_something,
    "numbers": _other_numbers,
}


def _thing(draw: Random) -> str:
    """Something that no language changes: numbers, times, addresses, names of files, emoji."""

    def some(of: Sequence[str], least: int, most: int) -> str:
        n = least + int(draw.random() * (most - least + 1))
        return "".join(of[int(draw.random() * len(of))] for _ in range(n))

    word, number = some(LETTERS, 2, 9), some(DIGITS, 1, 7)
    forms = [
        some(EMOJI, 1, 3),
        number,
        f"{number}:{some(DIGITS, 2, 2)}",
        f"https://{word}.{some(LETTERS, 2, 3)}/{some(LETTERS + DIGITS, 0, 8)}",
        f"www.{word}.{some(LETTERS, 2, 3)}",
        f"{word}@{some(LETTERS, 3, 8)}.{some(LETTERS, 2, 3)}",
        f"#{word}",
        f"@{word}{number}",
        f"{word}.{some(LETTERS, 2, 4)}",
        f"{word.capitalize()}-{number}",
        f"({number})",
        f"{word}_{some(LETTERS, 2, 6)}()",
    ]
    return forms[int(draw.random() * len(forms))]


def _number(kind: str, pair: Pair) -> int:
    digest = hashlib.blake2b("\t".join((kind, *pair)).encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "big")
