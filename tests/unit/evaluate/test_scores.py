"""Scores are sacreBLEU's own, with its signature."""

import pytest
import torch  # noqa: F401

from headwise.errors import InputError
from headwise.evaluate.scores import bleu, character_errors, chrf, exact, ter, token_errors

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


def test_ter_and_several_references():
    assert ter(OUT, REF).value == sacrebleu.corpus_ter(OUT, [REF]).score
    other = ["the cat sat on the mat", None]
    assert bleu(OUT, REF, other).value == sacrebleu.corpus_bleu(OUT, [REF, other]).score
    assert bleu(OUT, REF, other).value > bleu(OUT, REF).value


def test_exact_and_error_rates_take_the_nearest_reference():
    outs, refs = ["K AE T", "D AO G "], ["K AE T S", "D AO G"]
    assert exact(outs, refs).value == 50
    assert exact(outs, refs, ["K AE T", None]).value == 100
    assert token_errors(outs, refs).value == pytest.approx(100 / 7)
    assert token_errors(outs, refs, ["K AE T", None]).value == 0
    assert character_errors(["abc", ""], ["abd", "x"]).value == pytest.approx(50)
    with pytest.raises(InputError, match="every line needs a reference"):
        exact(outs, ["K AE T", None])
