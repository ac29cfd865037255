"""Words and phrases that stand for each other in pairs of sentences, so that a model also learns what they are alone.

Words are aligned by IBM's model 1 with a leaning to the diagonal (Dyer et al. 2013), in both directions; phrases are
what such alignments keep together (Koehn, Och and Marcu 2003).
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

Pair = tuple[str, str]
TOKEN = re.compile(r"[^\W\d_]+(?:['\u2019-][^\W\d_]+)*|\d+|[^\w\s]")
LONGEST = 3  # words of a phrase
ROUNDS = 6
DIAGONAL = 4.0  # how much it leans
BY_ITSELF = 10  # how much it counts where marks stand around it on both sides, as around "No" in "No, thanks."


def phrases(pairs: Iterable[Pair]) -> list[Pair]:
    """Each word and phrase of the first side with what mostly stands for it on the other, where that is clear.

    The commonest come first. What is a whole text of the pairs is left out: what it means alone stands there ("No." is
    "Nein.", not "keine").
    """
    texts = [tuple(TOKEN.findall(side) for side in pair) for pair in pairs]
    whole = {" ".join(word for word in first if word[0].isalpha()).lower() for first, _ in texts}
    sides = [as_inside([text[n] for text in texts]) for n in (0, 1)]
    together: Counter[Pair] = Counter()
    for first, second, links in zip(*sides, aligned(*sides), strict=True):
        for kept, by_itself in set(kept_together(first, second, links)):
            together[kept] += BY_ITSELF if by_itself else 1
    totals: tuple[Counter[str], Counter[str]] = (Counter(), Counter())
    best: dict[str, tuple[int, str]] = {}
    for (one, other), n in together.items():
        totals[0][one] += n
        totals[1][other] += n
        best[one] = max(best.get(one, (0, "")), (n, other))
    return [
        (one, other)
        for one, (n, other) in sorted(best.items(), key=lambda item: -item[1][0])
        if one.lower() not in whole and clear(" " not in one, n, n / totals[0][one], n / totals[1][other])
    ]


def clear(word: bool, n: int, forth: float, back: float) -> bool:
    """Whether what stands together in so many pairs and has these probabilities is a translation; found by looking."""
    if n < 3:
        return word and n == 2 and min(forth, back) >= 0.5
    return forth >= (0.3 if word else 0.4) and back >= 0.1


def alone(found: Iterable[Pair]) -> Iterator[Pair]:
    """As they are, and as somebody writes them who begins with a capital, as a phrase does that has one anyway."""
    for one, other in found:
        yield one, capital(other) if " " in one and one[0].isupper() else other
        if one[0].islower():
            yield capital(one), capital(other)


def capital(text: str) -> str:
    return text[0].upper() + text[1:]


def as_inside(side: list[list[str]]) -> list[list[str]]:
    """The words as they are written inside a sentence, also at its beginning."""
    forms: dict[str, Counter[str]] = {}
    for words in side:
        for i, word in enumerate(words):
            if i and words[i - 1].isalpha():
                forms.setdefault(word.lower(), Counter())[word] += 1
    usual = {word: form.most_common(1)[0][0] for word, form in forms.items()}
    return [
        [word if i and words[i - 1].isalpha() else usual.get(word.lower(), word) for i, word in enumerate(words)]
        for words in side
    ]


def aligned(firsts: list[list[str]], seconds: list[list[str]]) -> Iterator[NDArray[np.bool_]]:
    """Which words of each pair go together, `(words of the first, words of the second)`."""
    numbers = [numbered(side) for side in (firsts, seconds)]
    shapes = [(len(a), len(b)) for a, b in zip(firsts, seconds, strict=True)]
    first = np.concatenate([np.repeat(a, len(b)) for a, b in zip(*numbers, strict=True)])
    second = np.concatenate([np.tile(b, len(a)) for a, b in zip(*numbers, strict=True)])
    prior = np.concatenate([np.ravel(leaning(n, m)) for n, m in shapes])
    starts = np.cumsum([0, *(n * m for n, m in shapes)])
    rows = np.concatenate([[0], np.cumsum([n for n, _ in shapes])])
    columns = np.concatenate([[0], np.cumsum([m for _, m in shapes])])
    row = np.concatenate([rows[k] + np.repeat(np.arange(n), m) for k, (n, m) in enumerate(shapes)])
    column = np.concatenate([columns[k] + np.tile(np.arange(m), n) for k, (n, m) in enumerate(shapes)])
    _, cell = np.unique(first * (second.max() + 1) + second, return_inverse=True)
    forth = shares(cell, first, column, prior)
    back = shares(cell, second, row, prior)
    for k, (n, m) in enumerate(shapes):
        here = slice(starts[k], starts[k + 1])
        yield united(forth[here].reshape(n, m), back[here].reshape(n, m))


def numbered(side: list[list[str]]) -> list[NDArray[np.int64]]:
    numbers: dict[str, int] = {}
    return [np.array([numbers.setdefault(w.lower(), len(numbers)) for w in words], dtype=np.int64) for words in side]


def leaning(n: int, m: int) -> NDArray[np.float64]:
    """More where both words stand as far into their sentences."""
    places = np.abs((np.arange(n) + 0.5)[:, None] / max(n, 1) - (np.arange(m) + 0.5) / max(m, 1))
    return np.exp(-DIAGONAL * places)


def shares(
    cell: NDArray[np.int64], given: NDArray[np.int64], competitors: NDArray[np.int64], prior: NDArray[np.float64]
) -> NDArray[np.float64]:
    """How much each link is its word's, where those of a number in `competitors` compete; `cell` is a pair of words."""
    of = np.zeros(cell.max() + 1, dtype=np.int64)
    of[cell] = given
    probability = np.ones(len(of))
    for _ in range(ROUNDS):
        share = probability[cell] * prior
        share /= np.bincount(competitors, share)[competitors]
        count = np.bincount(cell, share)
        probability = count / np.bincount(of, count)[of]
    return share


def united(forth: NDArray[np.float64], back: NDArray[np.float64]) -> NDArray[np.bool_]:
    """What both directions say; then what stands beside it and one of them says, where a word has nothing yet."""
    n, m = forth.shape
    if not n or not m:
        return np.zeros((n, m), dtype=bool)
    one, other = np.zeros((n, m), dtype=bool), np.zeros((n, m), dtype=bool)
    one[forth.argmax(0), np.arange(m)] = True
    other[np.arange(n), back.argmax(1)] = True
    links, waiting = one & other, [tuple(link) for link in np.argwhere(one ^ other)]
    grown = True
    while grown:
        grown = False
        for i, j in waiting:
            if links[i, j] or (links[i].any() and links[:, j].any()):
                continue
            if links[max(i - 1, 0) : i + 2, max(j - 1, 0) : j + 2].any():
                links[i, j] = grown = True
    return links


def kept_together(first: list[str], second: list[str], links: NDArray[np.bool_]) -> Iterator[tuple[Pair, bool]]:
    """What no link leaves, of words alone, with a link at each end; and whether it stands by itself on both sides."""
    to, fro = [np.flatnonzero(row).tolist() for row in links], [np.flatnonzero(row).tolist() for row in links.T]
    for begin in range(len(first)):
        low, high = len(second), -1
        for end in range(begin, min(begin + LONGEST, len(first))):
            if not first[end][0].isalpha():
                break
            if not to[end]:
                if end == begin:
                    break
                continue
            low, high = min(low, to[end][0]), max(high, to[end][-1])
            if high - low > LONGEST:
                break
            inside = second[low : high + 1]
            if all(word[0].isalpha() for word in inside) and all(
                begin <= i <= end for j in range(low, high + 1) for i in fro[j]
            ):
                by_itself = is_by_itself(first, begin, end) and is_by_itself(second, low, high)
                yield (" ".join(first[begin : end + 1]), " ".join(inside)), by_itself


def is_by_itself(words: list[str], begin: int, end: int) -> bool:
    return not any(words[i][0].isalnum() for i in (begin - 1, end + 1) if 0 <= i < len(words))
