"""What was encoded is what lies in the arrays; what was made of other text is not taken for it."""

import json
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from headwise.config import CopiesConfig, TokenizerConfig
from headwise.data.corpus import Corpus
from headwise.data.prepared import BLOCK, open_prepared, prepare
from headwise.errors import DataError, FolderError
from headwise.text.tokenizer import Tokenizer

PAIRS = [(f"number {i} of many", f"Nummer {i} von vielen{'!' * (i % 7)}") for i in range(BLOCK + 300)]
TOKENIZER = Tokenizer.learn(
    [src for src, _ in PAIRS[:500]], [tgt for _, tgt in PAIRS[:500]], TokenizerConfig(vocab_size=300), 500, ["de"]
)


def corpus(folder: Path, pairs: list[tuple[str, str]], name: str = "train.tsv") -> Corpus:
    (folder / name).write_text("".join(f"{src}\t{tgt}\n" for src, tgt in pairs))
    return Corpus(folder / name, to="de")


def test_what_targets_say(tmp_path, monkeypatch):
    """Every piece of theirs, and as many others as make a multiple of 16; in parts as at once."""
    pairs = [("number one", "Nummer eins"), ("eight", "zwei!")]
    prepared = prepare([corpus(tmp_path, pairs)], TOKENIZER, tmp_path / "data")
    in_targets = {0, 1, 2, 3, *(piece for ids in TOKENIZER.encode_target([tgt for _, tgt in pairs]) for piece in ids)}
    said = prepared.said(300)
    assert {*in_targets} < {*said}
    assert (len(said) % 16, len(said) - len(in_targets) < 16, list(said)) == (0, True, sorted({*said}))
    monkeypatch.setattr("headwise.data.prepared.IDS", 3)
    assert prepared.said(300) == said
    assert prepared.said(max(in_targets) + 1)[-1] == max(in_targets)  # where there are no others


def test_arrays_hold_what_the_tokenizer_gives(tmp_path):
    """Over more than one block, two corpora, pairs without a side and pairs that are too long among them."""
    first = corpus(tmp_path, [("", "leer"), *PAIRS, ("x" * 400, "kurz")])
    second = corpus(tmp_path, [("the last", "der letzte"), ("blank", "  ")], "more.tsv")
    prepared = prepare([first, second], TOKENIZER, tmp_path / "data", max_pieces=60)
    assert (len(prepared), prepared.n_empty, prepared.n_long, prepared.begins) == (
        len(PAIRS) + 1,
        2,
        1,
        (0, len(PAIRS)),
    )
    for i in (0, 1, BLOCK - 2, BLOCK - 1, BLOCK, len(PAIRS) - 1):
        src, tgt = PAIRS[i]
        assert prepared.src[i].tolist() == TOKENIZER.encode_source([src], "de")[0]
        assert prepared.tgt[i].tolist() == TOKENIZER.encode_target([tgt])[0]
    assert TOKENIZER.decode(prepared.tgt[len(PAIRS)]) == "der letzte"
    assert prepared.src.lengths()[0] == len(prepared.src[0])
    assert isinstance(prepared.src.ids, np.memmap)


def test_prepared_once(tmp_path):
    pairs = corpus(tmp_path, PAIRS[:9])
    prepare([pairs], TOKENIZER, tmp_path / "data")
    before = {file.name: file.stat().st_mtime_ns for file in (tmp_path / "data").iterdir()}
    prepare([pairs], TOKENIZER, tmp_path / "data")
    assert before == {file.name: file.stat().st_mtime_ns for file in (tmp_path / "data").iterdir()}


def test_other_text_or_settings_are_not_mistaken_for_it(tmp_path):
    pairs = corpus(tmp_path, PAIRS[:9])
    prepare([pairs], TOKENIZER, tmp_path / "data")
    with pytest.raises(FolderError, match="was prepared from other text or with other settings"):
        prepare([pairs], TOKENIZER, tmp_path / "data", max_pieces=255)
    for changed in ({"to": None}, {"turned": True}, {"copies": CopiesConfig(lower=0.5)}):
        with pytest.raises(FolderError, match="was prepared from other text or with other settings"):
            prepare([replace(pairs, **changed)], TOKENIZER, tmp_path / "data")
    other = corpus(tmp_path, [*PAIRS[:8], ("number 8 of man", "y" + PAIRS[8][1])], "other.tsv")
    with pytest.raises(FolderError, match="was prepared from other text"):
        prepare([other], TOKENIZER, tmp_path / "data")


def test_a_fault_leaves_nothing(tmp_path):
    (tmp_path / "bad.tsv").write_bytes(b"fine\tgut\nb\xff\tschlecht\n")
    with pytest.raises(DataError, match=r"bad.tsv, line 2, byte 2: 0xff is not UTF-8"):
        prepare([Corpus(tmp_path / "bad.tsv")], TOKENIZER, tmp_path / "data")
    assert os.listdir(tmp_path) == ["bad.tsv"]


def test_damage_is_noticed(tmp_path):
    prepare([corpus(tmp_path, PAIRS[:9])], TOKENIZER, tmp_path / "data")
    os.truncate(tmp_path / "data" / "tgt.ids", 10)
    with pytest.raises(DataError, match=r"holds no prepared data: tgt.ids has 10 bytes, not"):
        open_prepared(tmp_path / "data")
    facts = json.loads((tmp_path / "data" / "facts.json").read_text())
    (tmp_path / "data" / "facts.json").write_text(json.dumps({**facts, "format_version": 0}))
    with pytest.raises(DataError, match="prepared by another version"):
        open_prepared(tmp_path / "data")
    with pytest.raises(DataError, match="holds no prepared data"):
        open_prepared(tmp_path)


def test_nothing_but_empty_sides(tmp_path):
    assert len(prepare([corpus(tmp_path, [("", "")])], TOKENIZER, tmp_path / "data")) == 0


def test_cut_in_several_ways(tmp_path):
    """With BPE dropout each pair lies there several times, cut differently, and always says the same."""
    pairs = corpus(tmp_path, PAIRS[:40])
    prepared = prepare([pairs], TOKENIZER, tmp_path / "data", dropout=0.5, n_samples=3)
    assert (len(prepared), prepared.n_samples, prepared.begins) == (40, 3, (0,))
    for i, (_, tgt) in enumerate(PAIRS[:40]):
        ways = [prepared.tgt[sample * 40 + i].tolist() for sample in range(3)]
        assert {TOKENIZER.decode(way) for way in ways} == {tgt}
    lengths = prepared.tgt.lengths().reshape(3, 40)
    assert (lengths != lengths[0]).any()
    assert lengths.mean() > np.mean([len(ids) for ids in TOKENIZER.encode_target([tgt for _, tgt in PAIRS[:40]])])


def test_too_long_is_decided_without_dropout(tmp_path):
    """So that every way has the same pairs."""
    pairs = corpus(tmp_path, PAIRS[:40])
    n = max(len(ids) for ids in TOKENIZER.encode_target([tgt for _, tgt in PAIRS[:40]]))
    prepared = prepare([pairs], TOKENIZER, tmp_path / "data", max_pieces=n, dropout=0.5, n_samples=4)
    assert (len(prepared), prepared.n_long) == (40, 0)
    assert prepared.tgt.lengths().max() > n
