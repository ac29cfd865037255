"""Lines are what stands between line feeds; every fault is named by file and line."""

import gzip
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwise.data.corpus import Corpus, hold_out, raw_lines, spread
from headwise.errors import DataError, UnequalLines


def write(folder: Path, **files: bytes) -> dict[str, Path]:
    paths = {name: folder / name for name in files}
    for name, data in files.items():
        paths[name].write_bytes(data)
    return paths


def read(folder: Path, src: bytes, tgt: bytes) -> list[tuple[str, str]]:
    files = write(folder, src=src, tgt=tgt)
    return list(Corpus(files["src"], files["tgt"]).pairs())


@pytest.mark.parametrize(
    "inside", ["\r", "\u2028", "\u2029", "\x85", "\x0b", "\x0c", "\x1c", "\x1d", "\x1e", "\x00", "\ufeff", "\t"]
)
def test_only_a_line_feed_ends_a_line(inside, tmp_path):
    src = f"one{inside}more\ntwo\n".encode()
    assert read(tmp_path, src, b"eins\nzwei\n") == [(f"one{inside}more", "eins"), ("two", "zwei")]


def test_a_last_line_needs_no_line_feed(tmp_path):
    assert read(tmp_path, b"one\ntwo", b"eins\nzwei\n") == [("one", "eins"), ("two", "zwei")]
    assert read(tmp_path, b"", b"") == []


def test_byte_order_mark_and_crlf_are_not_text(tmp_path):
    assert read(tmp_path, b"\xef\xbb\xbfone\r\ntwo\r\r\n", b"eins\nzwei\n") == [("one", "eins"), ("two\r", "zwei")]


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\n\r\ufeff")), max_size=20))
def test_any_text_comes_through(tmp_path_factory, lines):
    data = "".join(f"{line}\n" for line in lines).encode()
    folder = tmp_path_factory.mktemp("corpus")
    assert read(folder, data, data) == [(line, line) for line in lines]
    assert list(raw_lines(folder / "src")) == data.split(b"\n")[:-1]


def test_gzip_by_its_content_not_its_name(tmp_path):
    files = write(tmp_path, **{"train.en": gzip.compress(b"one\ntwo\n"), "train.de": b"eins\nzwei\n"})
    assert list(Corpus(*files.values()).pairs()) == [("one", "eins"), ("two", "zwei")]
    (tmp_path / "train.en").write_bytes(gzip.compress(b"one\ntwo\n" * 9999)[:50])
    with pytest.raises(DataError, match=r"train.en is damaged"):
        list(Corpus(*files.values()).pairs())


def test_tab_separated_pairs(tmp_path):
    files = write(tmp_path, pairs=b"Hello\tHallo\tGuten Tag\nalone\n\tkein\n")
    assert list(Corpus(files["pairs"]).pairs()) == [("Hello", "Hallo"), ("alone", ""), ("", "kein")]


@pytest.mark.parametrize(("src", "tgt", "counts"), [(b"a\nb\nc\n", b"a\n", (3, 1)), (b"", b"a\nb", (0, 2))])
def test_unequal_files_are_counted_to_the_end(src, tgt, counts, tmp_path):
    with pytest.raises(UnequalLines) as caught:
        read(tmp_path, src, tgt)
    assert str(caught.value) == (
        f"{tmp_path / 'src'} has {counts[0]} lines, {tmp_path / 'tgt'} has {counts[1]}: "
        "parallel files must match line by line"
    )


def test_spread_takes_from_everywhere(tmp_path):
    files = write(
        tmp_path,
        a="".join(f"{i}\t\n" for i in range(70)).encode(),
        b="".join(f"{i}\t\n" for i in range(70, 100)).encode(),
    )
    corpora = [Corpus(files["a"]), Corpus(files["b"])]
    assert [src for src, _ in spread(corpora, 100, 30)] == [str(i) for i in range(0, 100, 4)]
    assert len(list(spread(corpora, 100, 100))) == 100


def test_what_is_no_utf8_is_named_by_file_line_and_byte(tmp_path):
    with pytest.raises(DataError, match=r"tgt, line 2, byte 4: 0xe9 is not UTF-8; convert the file"):
        read(tmp_path, b"a\nb\n", b"a\ncaf\xe9\n")


def test_what_cannot_be_read(tmp_path):
    with pytest.raises(DataError, match=r"cannot read .*none: No such file"):
        list(raw_lines(tmp_path / "none"))
    with pytest.raises(DataError, match=r"cannot read .*: Is a directory"):
        list(raw_lines(tmp_path))


def test_held_out_by_hash(tmp_path):
    """As many different pairs as asked for, none of them left in the rest, the same whatever the order."""
    pairs = [(f"text {i % 90}", f"Text {i % 90}") for i in range(100)] + [("", "leer"), ("empty", " ")]
    found = []
    for name, order in (("a", pairs), ("b", pairs[::-1])):
        (tmp_path / name).write_text("".join(f"{src}\t{tgt}\n" for src, tgt in order))
        rest, held = hold_out([Corpus(tmp_path / name)], 7)
        left, out = (
            [pair for corpus in part for pair in corpus.pairs() if all(map(str.strip, pair))] for part in (rest, held)
        )
        assert len(set(out)) == 7
        assert sorted(left + out) == sorted(pair for pair in pairs if all(map(str.strip, pair)))
        assert not set(left) & set(out)
        found.append(set(out))
    assert found[0] == found[1]


def test_a_part_names_the_lines_of_the_file(tmp_path):
    (tmp_path / "pairs").write_bytes(b"a\tb\nc\xff\td\n")
    with pytest.raises(DataError, match="line 2, byte 2"):
        list(Corpus(tmp_path / "pairs", part=(0, 2**64)).pairs())
