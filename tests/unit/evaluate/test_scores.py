"""Scores are sacreBLEU's own, with its signature."""

import pytest
import torch  # noqa: F401

from headwise.errors import InputError
from headwise.evaluate.scores import bleu, chrf

sacrebleu = pytest.importorskip("sacrebleu")
OUT = ["the cat sat on the mat", "hello there"]
REF = ["the cat sat on a mat", "hello , there"]


def test_against_sacrebleu():
    assert bleu(OUT, REF).value == sacrebleu.corpus_bleu(OUT, [REF]).score
    assert chrf(OUT, REF).value == sacrebleu.corpus_chrf(OUT, [REF]).score
    assert bleu(REF, REF).value == pytest.approx(100)
    assert str(bleu(OUT, REF)).startswith("BLEU ")
    assert "tok:13a" in bleu(OUT, REF).signature
    assert "nc:6" in chrf(OUT, REF).signature


def test_line_by_line():
    with pytest.raises(InputError, match="1 translations and 2 references"):
        bleu(["one"], REF)
    with pytest.raises(InputError, match="nothing to score"):
        bleu([], [])
