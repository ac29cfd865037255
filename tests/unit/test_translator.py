"""Texts come back whole and in order, with what was asked for; a model that knows nothing shows it best."""

import numpy as np
import pytest

from headwise.alignment import align
from headwise.config import SearchConfig, TokenizerConfig
from headwise.errors import ConfigError, InputError
from headwise.loading import load
from headwise.text.loops import loops
from headwise.text.tokenizer import Tokenizer
from headwise.translator import Translator

TEXTS = [
    "the quick brown fox",
    "a",
    "Zwölf Boxkämpfer jagen",
    "",
    " \t ",
    "the dog. ",
    "\u2028",
    "🦊 d e",
    "salad " * 9,
]


@pytest.fixture(scope="module")
def translator(babbler):
    return load(babbler, engine="ctranslate2", compute_type="float32", threads=2)


def test_one_or_many(translator):
    one = translator.translate(TEXTS[0])
    many = translator.translate(TEXTS)
    assert [t.source for t in many] == TEXTS
    assert one == many[0]
    assert str(one) == one.text
    assert translator.translate([]) == []


def test_what_has_no_word_comes_back_as_it_is(translator):
    for text in ("", " ", "\t\t", "\u3000", "\u2028"):
        found = translator.translate(text)
        assert (found.text, found.log_prob, found.complete) == (text, 0.0, True)


def test_what_is_written_in_letters_that_were_never_learned_comes_back_as_it_is(babbler, translator):
    for text in ("Привет, как дела?", "  今日はとても寒いです。", "Привет fox"):
        found = translator.translate(text, n_best=2, details=True)
        assert (found.text, found.source, found.log_prob, found.complete) == (text, text, 0.0, True)
    assert translator.translate("the quick brown fox, или").log_prob < 0
    parts = load(babbler, engine="ctranslate2", threads=2, search={"split_pieces": 12})
    found = parts.translate("Привет, как дела? The dog. The fox.", details=True)
    assert found.text.startswith("Привет, как дела? ")
    assert min(i for i, _ in found.alignment) >= 3


def test_an_address_that_is_lost_comes_back(translator):
    """What the babbler says has none of them; where the languages are not known, that may be meant."""
    text = "the dog https://example.org/a?b=c and the fox, me@example.org."
    assert "example.org" not in translator.translate(text).text
    knowing = Translator(translator.tokenizer, translator.engine, translator.search, ("en", "de"))
    found = knowing.translate(text, n_best=2, details=True)
    dog, fox, dot = (knowing.translate(part).text for part in ("the dog", "and the fox,", "."))
    assert found.text == f"{dog} https://example.org/a?b=c {fox} me@example.org{dot}"
    assert (found.source, found.n_parts, len(found.alternatives)) == (text, 5, 1)
    assert found.alternatives[0].text.count("example.org") == 2
    assert knowing.translate("www.example.org").text == "www.example.org"


def test_white_space_around_a_text_stays(translator):
    inner = translator.translate("the dog").text
    assert translator.translate("  the dog\t ").text == f"  {inner}\t "


def test_alternatives_come_best_first_and_without_the_best(translator):
    found = translator.translate("the quick brown fox", n_best=3)
    assert len(found.alternatives) == 2
    scores = [found.score, *(a.score for a in found.alternatives)]
    assert scores == sorted(scores, reverse=True) or found.loop
    assert translator.translate("the quick brown fox").alternatives == ()


def test_details_add_up(translator):
    best = translator.translate(TEXTS, n_best=3, details=True)
    for found in (each for one in best for each in (one, *one.alternatives)):
        if not found.text.strip() or found.loop == "cut":
            continue
        assert (
            sum(piece.log_prob for piece in found.pieces) == pytest.approx(found.log_prob, rel=1e-3)
            or not found.complete
        )
        for i, j in found.alignment:
            assert 0 <= i < len(found.source.split())
            assert 0 <= j < len(found.text.split())


def test_where_each_sentence_is_wanted_alone_a_short_text_is_split_too(babbler):
    translator = load(babbler, engine="ctranslate2", compute_type="float32", search={"split_sentences": True})
    fox, dog = (translator.translate(text) for text in ("The quick brown fox.", "The lazy dog!"))
    found = translator.translate(["The quick brown fox.  The lazy dog!\n", "The lazy dog!", "", " "])
    assert [one.text for one in found] == [f"{fox.text}  {dog.text}\n", dog.text, "", " "]
    assert [one.n_parts for one in found] == [2, 1, 1, 1]
    assert found[0].log_prob == pytest.approx(fox.log_prob + dog.log_prob)


def test_a_long_text_is_translated_in_parts_with_its_white_space(babbler):
    translator = load(babbler, engine="ctranslate2", compute_type="float32", search={"split_pieces": 20})
    text = "  The quick brown fox jumps.  It is lazy!\tIs it? " + "verylongword" * 9 + " end\n"
    found = translator.translate(text, details=True)
    assert found.n_parts > 4
    assert found.text.startswith("  ")
    assert found.text.endswith("\n")
    assert ".  " in text
    assert found.text.count("\t") >= 1
    alone = translator.translate("It is lazy!")
    assert alone.n_parts == 1
    assert alone.text in found.text


def test_nothing_loops_in_the_end(translator):
    random = np.random.default_rng(3)
    words = ["fox", "dog", "the", "quick", "????", "a", "lazy", "Deich", "ja", "1"]
    texts = [" ".join(random.choice(words, random.integers(1, 12))) for _ in range(200)]
    texts += [f"{word} " * 12 for word in words]
    for found in translator.translate(texts):
        assert not loops(found.text, found.source)
        assert len(found.text) < 20 * len(found.source) + 500


def test_a_prefix_begins_the_first_part_only(babbler):
    translator = load(babbler, engine="ctranslate2", compute_type="float32", search={"beam_size": 1, "split_pieces": 8})
    found = translator.translate(["the dog", "The fox jumps. It is lazy.", ""], prefix="ein ")
    assert found[0].text.startswith("ein ")
    assert found[1].text.startswith("ein ")
    assert found[1].n_parts > 1
    assert found[2].text == ""
    again = translator.translate("It is lazy.")
    assert again.text in found[1].text
    with pytest.raises(InputError, match=r"the prefix 'x+' is as long as the whole output may be"):
        translator.translate("the dog", prefix="x" * 60)


def test_languages(babbler):
    translator = load(babbler, engine="ctranslate2", compute_type="float32")
    translator.languages = ("en", "de")
    plain = translator.translate("the dog")
    assert translator.translate("the dog", to="de", source_lang="English") == plain
    assert translator.translate("the dog", to="german") == plain
    with pytest.raises(InputError, match=r"no target language 'French'; it knows de \(German\)"):
        translator.translate("the dog", to="French")
    with pytest.raises(InputError, match=r"no source language 'de'; it knows en \(English\)"):
        translator.translate("the dog", source_lang="de")


def test_a_model_of_several_languages_is_told_which():
    tokenizer = Tokenizer.learn(["a b"], ["a b"], TokenizerConfig(vocab_size=300), 1, ["de", "fr"])
    seen = []

    class Engine:
        def score(self, sources, targets):
            seen.append(sources)
            return []

    translator = Translator(tokenizer, Engine(), SearchConfig())
    for name in ("fr", "French"):
        translator.score(["a"], ["b"], to=name)
    assert seen == [tokenizer.encode_source(["a"], "fr")] * 2
    with pytest.raises(InputError, match="knows several target languages; ask for one: de, fr"):
        translator.score(["a"], ["b"])
    with pytest.raises(InputError, match=r"no target language 'en'; it knows de \(German\), fr \(French\)"):
        translator.score(["a"], ["b"], to="en")


def test_a_model_of_both_directions_goes_its_own_way_unless_it_is_turned_round():
    tokenizer = Tokenizer.learn(["a b"], ["a b"], TokenizerConfig(vocab_size=300), 1, ["de", "en"])
    seen = []

    class Engine:
        def score(self, sources, targets):
            seen.extend(sources)
            return []

    translator = Translator(tokenizer, Engine(), SearchConfig(), ("en", "de"))
    translator.score(["a"], ["b"])
    translator.score(["a"], ["b"], to="English")
    assert seen == [tokenizer.encode_source(["a"], to)[0] for to in ("de", "en")]
    assert [translator._source(None, to) for to in ("de", "en")] == ["en", "de"]


def test_each_part_draws_numbers_of_its_own(babbler):
    translator = load(babbler, engine="ctranslate2", compute_type="float32", search={"split_pieces": 8})
    seen = []
    generate = translator.engine.generate
    translator.engine.generate = lambda s, search, p, n, scores: seen.extend(n) or generate(s, search, p, n, scores)
    translator.translate(["The dog.", "", "The dog. The dog. The dog."], first=5)
    assert seen[:2] == [5, 7]
    assert len(set(seen)) == len(seen) > 3


def test_settings_of_the_search(babbler):
    greedy = load(babbler, engine="ctranslate2", compute_type="float32", search={"beam_size": 1})
    assert greedy.search.beam_size == 1
    with pytest.raises(ConfigError, match="beam_sice"):
        load(babbler, search={"beam_sice": 1})
    with pytest.raises(InputError, match="there is no engine 'tensorflow'; choose from auto, torch, ctranslate2"):
        load(babbler, engine="tensorflow")
    with pytest.raises(InputError, match="there is no compute type 'int3'"):
        load(babbler, compute_type="int3")


def test_align():
    attention = np.array([[0.9, 0.1, 0.0], [0.2, 0.3, 0.5], [0.1, 0.6, 0.3]])
    assert align(attention, [0, 1, -1], [0, 0, 1]) == ((0, 0), (1, 1))
    assert align(attention[:0], [0, 1, -1], []) == ()
    assert align(attention, [-1, -1, -1], [0, 0, 1]) == ()
