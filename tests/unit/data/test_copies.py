"""Copies of pairs: which ones, and always the same."""

import re

import pytest

from headwise.config import CopiesConfig, CorpusConfig, DataConfig
from headwise.data.copies import copies_of
from headwise.data.corpus import Corpus, directions

PAIRS = [(f"Is this {i}?", f"Ist das {i}?") for i in range(2000)]


@pytest.mark.parametrize(
    ("shares", "copy"),
    [
        ({"upper": 1.0}, ("IS THIS 7?", "IST DAS 7?")),
        ({"lower": 1.0}, ("is this 7?", "Ist das 7?")),
        ({"no_stop": 1.0}, ("Is this 7", "Ist das 7")),
    ],
)
def test_how_a_pair_is_changed(shares, copy):
    assert list(copies_of(PAIRS[7], CopiesConfig(**shares))) == [copy]


@pytest.mark.parametrize("pair", [("no", "nein"), ("...", "nein."), ("No.", "?")])
def test_nothing_is_copied_that_would_be_the_same_or_empty(pair):
    assert not list(copies_of(pair, CopiesConfig(no_stop=1.0)))


def test_what_no_language_changes_stands_on_both_sides():
    copies = [copy for pair in PAIRS for copy in copies_of(pair, CopiesConfig(with_unknown=1.0))]
    assert len(copies) == len(PAIRS)
    alone = [one for one, other in copies if one == other]
    assert 400 < len(alone) < 600  # a quarter of them
    for (src, tgt), (one, other) in zip(PAIRS, copies, strict=True):
        if one != other:
            [thing] = {one.replace(src, "").strip(), other.replace(tgt, "").strip()}
            assert thing
    assert len(set(alone)) > 350


def test_as_many_as_asked_for_and_always_the_same():
    """With 2,000 draws of 0.3 the count lies within 600 +- 4.9 standard deviations, for any hash worth the name."""
    chosen = [bool(list(copies_of(pair, CopiesConfig(lower=0.3)))) for pair in PAIRS]
    assert 500 < sum(chosen) < 700
    assert chosen == [bool(list(copies_of(pair, CopiesConfig(lower=0.3)))) for pair in PAIRS]
    assert chosen != [bool(list(copies_of(pair, CopiesConfig(upper=0.3)))) for pair in PAIRS]


def test_a_corpus_gives_its_copies_after_each_pair_and_turned_round_too(tmp_path):
    (tmp_path / "train.tsv").write_text("Hi.\tHallo!\n")
    corpus = Corpus(tmp_path / "train.tsv", copies=CopiesConfig(upper=1.0, lower=1.0, no_stop=1.0), turned=True)
    assert list(corpus.pairs()) == [("Hallo!", "Hi."), ("HALLO!", "HI."), ("hallo!", "Hi."), ("Hallo", "Hi")]


def test_directions():
    data = DataConfig(batch_tokens=9, source_lang="en", target_lang="de", both_ways=True)
    corpora = [CorpusConfig(pairs="a.tsv", weight=2.0), CorpusConfig(src="b.en", tgt="b.fr", target_lang="fr")]
    found = [(corpus.src.name, corpus.turned, corpus.to, corpus.weight) for corpus in directions(corpora, data)]
    assert found == [
        ("a.tsv", False, "de", 2),
        ("a.tsv", True, "en", 2),
        ("b.en", False, "fr", 1),
        ("b.en", True, "en", 1),
    ]
    one_way = data.model_copy(update={"both_ways": False})
    assert [(corpus.turned, corpus.to) for corpus in directions(corpora, one_way)] == [(False, "de"), (False, "fr")]


def test_other_numbers_are_the_same_on_both_sides():
    shares = CopiesConfig(numbers=1.0)
    [(src, tgt)] = copies_of(("From 9:30 to 11 in 1999.", "1999 von 9.30 bis 11 Uhr."), shares)
    hour, minutes, end, year = re.findall("[0-9]+", src)
    assert (src, tgt) == (f"From {hour}:{minutes} to {end} in {year}.", f"{year} von {hour}.{minutes} bis {end} Uhr.")
    assert [len(minutes), len(end), len(year)] == [2, 2, 4]
    for pair in [("At 2:30.", "Um halb drei."), ("Yes.", "Ja."), ("3 and 3.", "Drei und 3.")]:
        assert not list(copies_of(pair, shares))


def test_another_english_ordinal_has_its_own_ending():
    pairs = [(f"The {n:02}th floor {n}.", f"Der {n:02}. Stock {n}.") for n in range(10, 100)]
    endings = {"1": "st", "2": "nd", "3": "rd"}
    seen = set()
    for pair in pairs:
        [(src, tgt)] = copies_of(pair, CopiesConfig(numbers=1.0))
        n = re.search("[0-9]+", tgt)[0]
        ending = "th" if n in ("11", "12", "13") else endings.get(n[-1], "th")
        assert src.startswith(f"The {n}{ending} floor")
        seen.add(ending)
    assert seen == {"st", "nd", "rd", "th"}
