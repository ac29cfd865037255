"""Repetition loops ("salad salad salad"): seen, and cut."""

import re
import zlib
from collections import Counter

RATIO = 2.4  # a text that shrinks more than this when compressed says the same again and again
RUN, TIMES = 4, 5  # and so does one in which so many words in a row come so often
AT_ONCE = re.compile(r"([^\W\d_].{1,29}?)\1{3}")  # and one with the same letters or words four times at once
LONGEST = 12  # words that are looked for as one repeated phrase


def loops(text: str, source: str = "") -> bool:
    """Whether a text repeats itself, unless its source does so too and is not much shorter."""
    return repeats(text) and not (repeats(source) and len(text) <= 2 * len(source) + 20)


def cut(text: str) -> str:
    """The text with what is repeated at once, three times or more, said once; then up to where it still repeats."""
    spaced = re.findall(r"\S+\s*", text)
    words = [word.rstrip() for word in spaced]
    kept: list[str] = []
    i = 0
    while i < len(words):
        n, times = _run(words, i)
        kept += spaced[i : i + n]
        i += n * times
    while kept and repeats("".join(kept)):
        kept = kept[: len(kept) // 2]
    return "".join(kept).rstrip()


def repeats(text: str) -> bool:
    """Whether it compresses too well, says something four times at once, or has four words in a row five times.

    Not so where hardly a word comes again and no word has its own letters again, which is seen soonest.
    """
    words = text.split()
    n_again = len(words) - len(set(words))
    within = any([len(word) - len(set(word)) > 5 for word in words if len(word) > 7])  # as in hahahaha
    if n_again < 2 and not within:
        return False
    raw = text.encode("utf-8", "replace")
    if len(raw) > RATIO * len(zlib.compress(raw)):
        return True
    # Four times at once is within one word, or has a whole word three times.
    if (within or max(Counter(words).values()) > 2) and AT_ONCE.search(f"{text} "):
        return True
    if n_again < TIMES - 1:  # no word comes so often
        return False
    runs = Counter(tuple(words[i : i + RUN]) for i in range(len(words) - RUN + 1))
    return max(runs.values(), default=0) >= TIMES


def _run(words: list[str], i: int) -> tuple[int, int]:
    """How many words from the i-th on are repeated at once, and how often; (1, 1) if not three times."""
    for n in range(1, LONGEST + 1):
        end = i + n
        while words[end : end + n] == words[i : i + n]:
            end += n
        if end - i >= 3 * n:
            return n, (end - i) // n
    return 1, 1
