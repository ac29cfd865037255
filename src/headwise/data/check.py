"""What is wrong with a corpus, before anything is learned from it: errors stop training, warnings are counted."""

import re
from array import array
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from headwise.data.corpus import BOM, Corpus, clean
from headwise.errors import DataError, UnequalLines

MAX_CHARACTERS = 1000
MAX_RATIO, RATIO_FROM = 9, 30  # times as long, where the longer side has at least so many characters
CONTROL = re.compile(r"[\x00-\x08\x0e-\x1b\x1f\x7f\x80-\x84\x86-\x9f\ufffe\uffff]")
PSEUDO_BREAK = re.compile("[\x0b\x0c\r\x1c\x1d\x1e\x85\u2028\u2029]")
PROFILE_PAIRS, PROFILE_WORDS = 20_000, 200  # what the two languages look like is learned from so much
N_SHOWN = 5  # first lines that are named

# Everything that is looked for, what it is called, and what to do about it.
LOOKED_FOR = {
    "encoding": ("invalid UTF-8", "convert the file to UTF-8"),
    "lines": ("unequal lines", "find where the two files part, and mend it there"),
    "readable": ("unreadable", "see the message"),
    "nothing": ("nothing left", "no line has two sides; in a file of pairs a tab parts them"),
    "empty": ("empty side", "such pairs are left out"),
    "duplicate": ("duplicate pairs", "remove them, or they count as often as they stand there"),
    "overlap": ("dev pairs in train", "remove them from one of the two, or the score on dev means little"),
    "swapped": ("swapped sides", "source and target look exchanged; exchange the files or the columns"),
    "same": ("source equals target", "an untranslated line teaches copying"),
    "long": (f"over {MAX_CHARACTERS} characters", "split or remove them; over 256 pieces they are left out"),
    "ratio": (f"over {MAX_RATIO} times as long", "such pairs are seldom translations"),
    "control": ("control characters", "remove them"),
    "break": ("pseudo line breaks", "U+2028, a lone CR and the like end no line here, but may in other tools"),
    "bom": ("byte order mark", "one at the start of a file is ignored; remove any other"),
    "crlf": ("CRLF line ends", "the CR is ignored"),
}
ERRORS = {"encoding", "lines", "readable", "nothing"}


@dataclass
class Finding:
    """One thing that was looked for: how often it was found, and where first."""

    kind: str
    count: int = 0
    where: list[str] = field(default_factory=list)

    @property
    def level(self) -> Literal["pass", "warning", "error"]:
        """What it means for training."""
        return "pass" if not self.count else "error" if self.kind in ERRORS else "warning"

    @property
    def name(self) -> str:
        """What it is called."""
        return LOOKED_FOR[self.kind][0]

    @property
    def fix(self) -> str:
        """What to do about it."""
        return LOOKED_FOR[self.kind][1]

    def add(self, where: str) -> None:
        """Found once more."""
        self.count += 1
        if len(self.where) < N_SHOWN:
            self.where.append(where)


@dataclass
class Report:
    """All findings over all corpora, and how many pairs there are."""

    findings: dict[str, Finding] = field(default_factory=lambda: {kind: Finding(kind) for kind in LOOKED_FOR})
    n_train: int = 0
    n_dev: int = 0

    @property
    def n_errors(self) -> int:
        """How many kinds of errors there are."""
        return sum(finding.level == "error" for finding in self.findings.values())

    @property
    def n_warnings(self) -> int:
        """How many kinds of warnings there are."""
        return sum(finding.level == "warning" for finding in self.findings.values())


def check_corpora(train: Sequence[Corpus], dev: Sequence[Corpus] = ()) -> Report:
    """Look at every line, in memory of a few bytes a pair, and report."""
    report = Report()
    languages = Languages()
    dev_hashes = set()
    for corpus in dev:
        for _, src, tgt in _checked(corpus, report):
            report.n_dev += 1
            dev_hashes.add(hash((src, tgt)))
    hashes, numbers, begins = array("q"), array("q"), []  # of each pair; and where each corpus begins
    for corpus in train:
        begins.append((len(hashes), corpus))
        for number, src, tgt in _checked(corpus, report):
            report.n_train += 1
            pair = hash((src, tgt))
            hashes.append(pair)
            numbers.append(number)
            if pair in dev_hashes:
                report.findings["overlap"].add(_place(corpus, number))
            if languages.exchanged(src, tgt, _place(corpus, number)):
                report.findings["swapped"].add(_place(corpus, number))
    for place in languages.settle():
        report.findings["swapped"].add(place)
    for corpus in dev:
        for number, src, tgt in _checked(corpus, Report()):
            if languages.exchanged(src, tgt, ""):
                report.findings["swapped"].add(_place(corpus, number))
    for i in _repeated(hashes):
        corpus = [corpus for begin, corpus in begins if begin <= i][-1]
        report.findings["duplicate"].add(_place(corpus, numbers[i]))
    if not report.n_train and not report.n_errors:
        report.findings["nothing"].add(", ".join(corpus.name for corpus in train))
    return report


def _place(corpus: Corpus, number: int) -> str:
    return f"{corpus.src}:{number}"


def _checked(corpus: Corpus, report: Report) -> Iterator[tuple[int, str, str]]:
    """The pairs of a corpus that have two sides, with their line numbers; everything else goes into the report."""
    found = report.findings
    files = (corpus.src, corpus.tgt or corpus.src)
    try:
        for number, raw in enumerate(corpus.raw_pairs(), start=1):
            texts = []
            for file, line in zip(files, raw, strict=True):
                if line.startswith(BOM) and number == 1:
                    found["bom"].add(f"{file}:1")
                if line.endswith(b"\r"):
                    found["crlf"].add(f"{file}:{number}")
                try:
                    texts.append(clean(line, number).decode("utf-8"))
                except UnicodeDecodeError as error:
                    found["encoding"].add(f"{file}:{number} byte {error.start + 1}")
            if len(texts) == 2 and _look_at(corpus, number, texts, found):
                yield number, texts[0], texts[1]
    except DataError as error:
        found["lines" if isinstance(error, UnequalLines) else "readable"].add(str(error))


def _look_at(corpus: Corpus, number: int, texts: list[str], found: dict[str, Finding]) -> bool:
    """Look at one pair; False if a side is empty."""
    place = _place(corpus, number)
    short, long = sorted(map(len, texts))
    if not all(text.strip() for text in texts):
        found["empty"].add(place)
        return False
    if long > MAX_CHARACTERS:
        found["long"].add(place)
    if long >= RATIO_FROM and long > MAX_RATIO * short:
        found["ratio"].add(place)
    if texts[0] == texts[1]:
        found["same"].add(place)
    both = f"{texts[0]} {texts[1]}"
    if not both.isprintable():  # rules out nearly every line at once
        if CONTROL.search(both):
            found["control"].add(place)
        if PSEUDO_BREAK.search(both):
            found["break"].add(place)
    if "\ufeff" in both:
        found["bom"].add(place)
    return True


def _repeated(hashes: "array[int]") -> list[int]:
    """Which of them stood there before."""
    values = np.frombuffer(hashes, dtype=np.int64) if hashes else np.empty(0, np.int64)
    order = np.argsort(values, kind="stable")
    repeated: list[int] = np.sort(order[1:][values[order][1:] == values[order][:-1]]).tolist()
    return repeated


class Languages:
    """What the two sides look like, by their commonest words that the other side has not."""

    def __init__(self) -> None:
        self._waiting: list[tuple[set[str], set[str], str]] = []
        self._words: tuple[Counter[str], Counter[str]] = (Counter(), Counter())
        self._own: tuple[frozenset[str], frozenset[str]] | None = None

    def exchanged(self, src: str, tgt: str, place: str) -> bool:
        """Whether a pair's sides look exchanged; the first pairs only teach, and are judged by `settle`."""
        sides = _words(src), _words(tgt)
        if self._own is None:
            self._waiting.append((*sides, place))
            for count, words in zip(self._words, sides, strict=True):
                count.update(words)
            if len(self._waiting) >= PROFILE_PAIRS:
                self._learn()
            return False
        return self._judge(*sides)

    def settle(self) -> Iterator[str]:
        """The places of those among the first pairs that look exchanged."""
        if self._own is None:
            self._learn()
        for src, tgt, place in self._waiting:
            if self._judge(src, tgt):
                yield place
        self._waiting.clear()

    def _learn(self) -> None:
        common = [{word for word, _ in count.most_common(PROFILE_WORDS)} for count in self._words]
        own = []
        for mine, other in ((0, 1), (1, 0)):
            own.append(frozenset(w for w in common[mine] if self._words[mine][w] > 10 * self._words[other][w] + 2))
        self._own = own[0], own[1]

    def _judge(self, src: set[str], tgt: set[str]) -> bool:
        assert self._own is not None
        of_src, of_tgt = self._own
        return len(src & of_tgt) >= 2 and len(tgt & of_src) >= 2 and not src & of_src and not tgt & of_tgt


def _words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text.lower()))
