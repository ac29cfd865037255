"""Each fault of a corpus is found, counted and placed; a sound corpus passes."""

from pathlib import Path

import pytest

from headwise.data.check import LOOKED_FOR, Report, check_corpora
from headwise.data.corpus import Corpus

ENGLISH = [f"the cat number {i} is on the mat and it is not here" for i in range(60)]
GERMAN = [f"die Katze Nummer {i} ist auf der Matte und sie ist nicht hier" for i in range(60)]


def corpus(folder: Path, src: list[str], tgt: list[str], name: str = "train") -> Corpus:
    files = [folder / f"{name}.{side}" for side in ("src", "tgt")]
    for file, lines in zip(files, (src, tgt), strict=True):
        file.write_bytes("".join(f"{line}\n" for line in lines).encode())
    return Corpus(*files)


def found(report: Report) -> dict[str, int]:
    return {kind: finding.count for kind, finding in report.findings.items() if finding.count}


def test_a_sound_corpus_passes(tmp_path):
    dev = corpus(tmp_path, [line + "!" for line in ENGLISH], GERMAN, "dev")
    report = check_corpora([corpus(tmp_path, ENGLISH, GERMAN)], [dev])
    assert found(report) == {}
    assert (report.n_train, report.n_dev, report.n_errors, report.n_warnings) == (60, 60, 0, 0)


@pytest.mark.parametrize(("kind", "src", "tgt"), [
    ("empty", "", "leer"),
    ("empty", "blank", " \t\u3000"),
    ("same", "the same", "the same"),
    ("long", "x" * 1001, "y" * 900),
    ("ratio", "no", "n" * 31),
    ("control", "a\x07b", "ab"),
    ("control", "a\x00b", "ab"),
    ("break", "a\u2028b", "ab"),
    ("break", "a\rb", "ab"),
    ("break", "a\x85b", "ab"),
    ("bom", "a\ufeffb", "ab"),
    ("crlf", "a b\r", "ab"),
    ("swapped", GERMAN[3] + "!", ENGLISH[3] + "!"),
])  # fmt: skip
def test_one_bad_line_is_counted_and_placed(kind, src, tgt, tmp_path):
    report = check_corpora([corpus(tmp_path, [*ENGLISH, src], [*GERMAN, tgt])])
    assert found(report) == {kind: 1}
    finding = report.findings[kind]
    assert finding.where == [f"{tmp_path / 'train.src'}:61"]
    assert (finding.level, finding.fix != "") == ("warning", True)


def test_the_first_lines_are_named_and_all_are_counted(tmp_path):
    report = check_corpora([corpus(tmp_path, ENGLISH + [""] * 9, GERMAN + ["x"] * 9)])
    assert report.findings["empty"].count == 9
    assert [place.rpartition(":")[2] for place in report.findings["empty"].where] == ["61", "62", "63", "64", "65"]
    assert report.n_train == 60


def test_duplicates_over_all_corpora(tmp_path):
    first = corpus(tmp_path, ["", *ENGLISH, ENGLISH[7]], ["", *GERMAN, GERMAN[7]])
    second = corpus(tmp_path, ["new and not seen", ENGLISH[3]], ["neu und nie gesehen", GERMAN[3]], "more")
    report = check_corpora([first, second])
    assert report.findings["duplicate"].where == [f"{first.src}:62", f"{second.src}:2"]


def test_a_pair_of_dev_in_train(tmp_path):
    dev = corpus(tmp_path, [ENGLISH[4], ENGLISH[5]], [GERMAN[4], "anders"], "dev")
    report = check_corpora([corpus(tmp_path, ENGLISH, GERMAN)], [dev])
    assert found(report) == {"overlap": 1}
    assert report.findings["overlap"].where == [f"{tmp_path / 'train.src'}:5"]


def test_dev_with_its_sides_exchanged(tmp_path):
    dev = corpus(tmp_path, [line + "." for line in GERMAN], [line + "." for line in ENGLISH], "dev")
    report = check_corpora([corpus(tmp_path, ENGLISH, GERMAN)], [dev])
    assert found(report) == {"swapped": 60}


def test_two_sides_of_one_language_are_never_swapped(tmp_path):
    """Spelling to spelling: the sides have no words of their own to go by."""
    report = check_corpora([corpus(tmp_path, ENGLISH, [line.replace("on", "under") for line in ENGLISH])])
    assert found(report) == {}


def test_errors(tmp_path):
    unequal = corpus(tmp_path, ENGLISH, GERMAN[:-1])
    report = check_corpora([unequal])
    assert found(report) == {"lines": 1}
    assert report.n_errors == 1
    assert "has 60 lines" in report.findings["lines"].where[0]

    (tmp_path / "train.src").write_bytes(b"fine\nb\xffad\n\xe9\n")
    (tmp_path / "train.tgt").write_bytes(b"gut\nschlecht\n\xe9\n")
    report = check_corpora([unequal])
    assert found(report) == {"encoding": 3}
    assert report.findings["encoding"].where[0] == f"{tmp_path / 'train.src'}:2 byte 2"

    assert found(check_corpora([Corpus(tmp_path / "none", tmp_path / "none")])) == {"readable": 1}
    assert found(check_corpora([corpus(tmp_path, ["", ""], ["a", ""])])) == {"empty": 2, "nothing": 1}
    assert found(check_corpora([corpus(tmp_path, [], [])])) == {"nothing": 1}


def test_a_byte_order_mark_at_the_start(tmp_path):
    files = corpus(tmp_path, ["\ufeff" + ENGLISH[0], *ENGLISH[1:]], GERMAN)
    assert check_corpora([files]).findings["bom"].where == [f"{files.src}:1"]


def test_everything_looked_for_says_what_to_do():
    assert all(name and fix for name, fix in LOOKED_FOR.values())
