"""Words that stand for each other in pairs of sentences, so that a model also learns what a word by itself is."""

import re
from collections import Counter
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

Pair = tuple[str, str]
WORD = re.compile(r"[^\W\d_]+(?:['\u2019-][^\W\d_]+)*")


def lexicon(pairs: Iterable[Pair], at_least: int = 8, sure: float = 0.25, rounds: int = 5) -> list[Pair]:
    """Each word with the one that it goes with, as both are mostly written inside a sentence.

    By IBM's model 1 (Brown et al. 1993): what has at least the probability `sure` given the other, in both directions,
    and stands together in at least so many pairs.
    """
    sides = Side(), Side()
    rows = [[side.add(WORD.findall(text)) for side, text in zip(sides, pair, strict=True)] for pair in pairs]
    size = len(sides[1].forms)
    word = np.concatenate([np.repeat(a, len(b)) for a, b in rows])
    other = np.concatenate([np.tile(b, len(a)) for a, b in rows])
    sentence = np.repeat(np.arange(len(rows)), [len(a) * len(b) for a, b in rows])
    cells, cell, together = np.unique(word * size + other, return_inverse=True, return_counts=True)
    kinds = cells // size, cells % size
    forwards = probabilities(cell, kinds[0], sentence * size + other, rounds)
    back = probabilities(cell, kinds[1], sentence * len(sides[0].forms) + word, rounds)
    good = (np.minimum(forwards, back) > sure) & (together >= at_least)
    return [(sides[0].form(a), sides[1].form(b)) for a, b in zip(*(kind[good] for kind in kinds), strict=True)]


def alone(words: Iterable[Pair]) -> list[Pair]:
    """As they are, and as somebody writes them who begins with a capital: the translation then has one, too."""
    found = []
    for one, other in words:
        both = one[0].islower() and other[0].islower()
        found += [(one, other), (capital(one), capital(other) if both else other)]
    return list(dict.fromkeys(found))


def capital(word: str) -> str:
    return word[0].upper() + word[1:]


class Side:
    """The words of one language, numbered whatever their capitals, and how each is written."""

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}
        self.forms: list[Counter[str]] = []

    def add(self, words: list[str]) -> NDArray[np.int64]:
        """The numbers of the different words of a sentence; its first tells nothing of capitals."""
        for i, word in enumerate(words):
            number = self.numbers.setdefault(word.lower(), len(self.forms))
            if number == len(self.forms):
                self.forms.append(Counter())
            self.forms[number][word if i else word.lower()] += 100 if i else 1
        return np.array([self.numbers[word] for word in dict.fromkeys(map(str.lower, words))], dtype=np.int64)

    def form(self, number: int) -> str:
        return self.forms[number].most_common(1)[0][0]


def probabilities(
    cell: NDArray[np.int64], of: NDArray[np.int64], competitors: NDArray[np.int64], rounds: int
) -> NDArray[np.float64]:
    """Of each cell, a pair of words, given its word `of`, where those that share a number in `competitors` compete."""
    _, group = np.unique(competitors, return_inverse=True)
    found = np.ones(len(of))
    for _ in range(rounds):
        share = found[cell]
        share /= np.bincount(group, share)[group]
        count = np.bincount(cell, share)
        found = count / np.bincount(of, count)[of]
    return found
