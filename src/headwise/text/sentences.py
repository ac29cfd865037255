"""Texts to parts that a model can take, and back, with every character between them kept."""

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from sentencex import segment

BREAKS = (re.compile(r"(?<=[,;:\u2013\u2014\u3001\uff0c])\s*"), re.compile(r"(?<=\s)(?=\S)"))  # clauses, then words

ADDRESS = re.compile(r"((?:https?://|www\.)\S*[\w/]|[\w.+-]+@[\w-]+(?:\.[\w-]+)+)")
MARKS = ("://", "www.", "@")  # without one of these there is none

# Languages that write "20." for "20th", and how a sentence ends that may be cut there.
DOTTED = frozenset({"bs", "cs", "da", "de", "et", "eu", "fi", "hr", "hu", "is", "lb", "lv", "nb", "nn", "no", "pl",
                    "sk", "sl", "sr", "tr"})  # fmt: skip
ORDINAL = re.compile(r"(?:^|[^\w.,:])\d{1,2}\.\s+$")


class Part(NamedTuple):
    """What is translated, and the white space around it, which is not."""

    before: str
    text: str
    after: str


def split(text: str, language: str, fits: Callable[[str], bool]) -> list[Part]:
    """Sentences, none longer than a line; one that does not fit is cut at clauses, then between words, then anywhere.

    The parts put together are the text. A text without a word has no parts to translate, only white space.
    """
    sentences = (sentence for line in text.splitlines(keepends=True) for sentence in _sentences(line, language))
    return [stripped(piece) for sentence in sentences for piece in _fitting(sentence, fits, 0)]


def _sentences(line: str, language: str) -> list[str]:
    """Those of a line; one that seems to end with an ordinal goes on, since that is far more often meant."""
    found: list[str] = []
    for sentence in segment(language, line):
        if found and language in DOTTED and ORDINAL.search(found[-1]):
            found[-1] += sentence
        else:
            found.append(sentence)
    return found


def stripped(text: str) -> Part:
    """A text and the white space around it; of one that has nothing else, all is before."""
    core = text.strip()
    begin = text.index(core) if core else len(text)
    return Part(text[:begin], core, text[begin + len(core) :])


def addresses(text: str) -> list[str]:
    """Of the web and of mail, as they stand in it."""
    return ADDRESS.findall(text) if any(mark in text for mark in MARKS) else []


def around_addresses(text: str) -> list[Part]:
    """The text as what stands between its addresses, and these."""
    return [stripped(piece) for piece in ADDRESS.split(text) if piece]


def _fitting(text: str, fits: Callable[[str], bool], level: int) -> Iterator[str]:
    """As few pieces as there can be, none longer than what fits."""
    if fits(text) or len(text) < 2:
        yield text
        return
    if level == len(BREAKS):
        middle = len(text) // 2
        yield from _fitting(text[:middle], fits, level)
        yield from _fitting(text[middle:], fits, level)
        return
    begin = 0
    ends = [match.end() for match in BREAKS[level].finditer(text) if 0 < match.end() < len(text)] + [len(text)]
    gathered = 0
    for end in ends:
        if gathered > begin and not fits(text[begin:end]):
            yield from _fitting(text[begin:gathered], fits, level + 1)
            begin = gathered
        gathered = end
    yield from _fitting(text[begin:], fits, level + 1)
