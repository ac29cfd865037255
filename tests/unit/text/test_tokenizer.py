"""Text comes back as it went in; special pieces are special; learning is repeatable."""

import json
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwise.config import ModelConfig, TokenizerConfig
from headwise.errors import InputError
from headwise.text import special
from headwise.text.tokenizer import Tokenizer, vocabulary_for

ENGLISH = ["The cat sat on the mat.", "A man, a plan, a canal!", "Where is the station?"] * 20
GERMAN = ["Die Katze saß auf der Matte.", "Ein Mann, ein Plan, ein Kanal!", "Wo ist der Bahnhof?"] * 20


def learn(languages=(), **settings) -> Tokenizer:
    config = TokenizerConfig(**{"vocab_size": 330, **settings})
    return Tokenizer.learn(ENGLISH, GERMAN, config, n_pairs=60, languages=languages)


BPE = learn()
STRICT = learn(normalise="none")
UNIGRAM = learn(kind="unigram", joint=False)


@given(st.text())
def test_what_goes_in_comes_out(text):
    nfc = unicodedata.normalize("NFC", text)
    for tokenizer in (BPE, UNIGRAM):
        assert tokenizer.decode(tokenizer.encode_target([text])[0]) == nfc
    assert STRICT.decode(STRICT.encode_target([text])[0]) == text


@pytest.mark.parametrize("text", ["", " ", "  two  spaces ", "a\tb", "e\u0301", "日本語", "👩‍👩‍👧", "\u2028\x85\x0b", "\x00", "ß" * 1000, "שלום", "</s>", "<2de> <pad>"])  # fmt: skip
def test_awkward_texts(text):
    for tokenizer in (BPE, UNIGRAM, learn(["de", "en"])):
        ids = tokenizer.encode_target([text])[0]
        assert tokenizer.decode(ids) == unicodedata.normalize("NFC", text)
        assert ids.count(special.EOS_ID) == 1
        assert ids[-1] == special.EOS_ID


def test_special_ids_are_those_of_the_model():
    sizes = {"vocab_size": 31, "d_model": 14, "d_ff": 19, "n_heads": 7, "n_encoder_layers": 2, "n_decoder_layers": 1}
    model = ModelConfig(**sizes)
    assert (model.pad_id, model.bos_id, model.eos_id) == (special.PAD_ID, special.BOS_ID, special.EOS_ID)
    vocabulary = json.loads(BPE.to_text())["model"]["vocab"]
    assert [vocabulary[piece] for piece in ("<pad>", "<s>", "</s>", "<unk>")] == [0, 1, 2, 3]


def test_tags_stand_first_in_the_source():
    tokenizer = learn(["de", "en"])
    assert tokenizer.languages == ["de", "en"]
    plain, tagged = tokenizer.encode_source(["a"]), tokenizer.encode_source(["a"], to="en")
    assert tagged == [[5, *plain[0]]]
    assert tokenizer.decode(tagged[0]) == "a"
    with pytest.raises(InputError, match="cannot be asked for 'fr'; it knows de, en"):
        tokenizer.encode_source(["a"], to="fr")
    with pytest.raises(InputError, match="it knows none: it has one direction"):
        BPE.encode_source(["a"], to="fr")


@pytest.mark.parametrize(
    "settings", [{}, {"joint": False}, {"kind": "characters"}, {"kind": "characters", "joint": False}]
)
def test_learning_twice_gives_the_same_bytes(settings):
    assert learn(["de"], **settings).to_text() == learn(["de"], **settings).to_text()


@pytest.mark.parametrize("settings", [{}, {"joint": False}, {"kind": "unigram"}, {"kind": "characters"}])
def test_the_saved_form_comes_back(settings):
    tokenizer = learn(["en", "de"], **settings)
    again = Tokenizer.from_text(tokenizer.to_text())
    assert again.encode_source(ENGLISH, to="de") == tokenizer.encode_source(ENGLISH, to="de")
    assert again.encode_target(GERMAN) == tokenizer.encode_target(GERMAN)
    assert (again.joint, again.languages, again.vocab_size) == (
        tokenizer.joint,
        tokenizer.languages,
        tokenizer.vocab_size,
    )
    assert again.to_text() == tokenizer.to_text()


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"source": {}}', '{"version": "1.0", "model": {"type": "BPE", "vocab": {"a": 0}, "merges": []}}'])  # fmt: skip
def test_what_is_no_tokenizer_is_refused(text):
    with pytest.raises(ValueError, match="not a tokenizer"):
        Tokenizer.from_text(text)


def test_sides_may_have_vocabularies_of_their_own():
    tokenizer = learn(joint=False, kind="characters")
    german = set("".join(GERMAN))
    assert tokenizer.vocab_size == 4 + len(german)
    assert tokenizer.src_vocab_size == 4 + len(set("".join(ENGLISH)))
    assert not tokenizer.joint


def test_characters():
    tokenizer = learn(kind="characters")
    assert len(tokenizer.encode_source(["Katze"])[0]) == 6
    assert tokenizer.decode(tokenizer.encode_target(["Katze, der Matte"])[0]) == "Katze, der Matte"
    assert special.UNK_ID in tokenizer.encode_source(["Ω"])[0]


def test_half_a_surrogate_pair_is_refused():
    with pytest.raises(InputError, match="holds half of a surrogate pair"):
        BPE.encode_source(["fine", "a\ud800b"])


@pytest.mark.parametrize(
    ("n_pairs", "size"),
    [
        (0, 4000),
        (19_999, 4000),
        (20_000, 10_000),
        (199_999, 10_000),
        (200_000, 16_000),
        (2_000_000, 32_000),
        (9**9, 32_000),
    ],
)
def test_size_by_the_number_of_pairs(n_pairs, size):
    assert vocabulary_for(n_pairs) == size


def test_pieces_are_the_text_that_they_stand_for_or_their_names():
    tokenizer = Tokenizer.learn(["ab c"], ["é"], TokenizerConfig(kind="characters", joint=False), 1)
    assert tokenizer.pieces(tokenizer.encode_source(["c bx"])[0], "source") == ["c", " ", "b", "<unk>", "</s>"]
    assert tokenizer.pieces(tokenizer.encode_target(["é"])[0], "target") == ["é", "</s>"]


def test_which_writing_systems_were_learned():
    for tokenizer in (BPE, UNIGRAM):
        assert all(map(tokenizer.can_read, ("", "a", "Où ?", "42 👍", "a ж")))
        assert not any(map(tokenizer.can_read, ("ж", "日本 a")))
    russian = Tokenizer.learn(["кот"] * 9, ["cat"] * 9, TokenizerConfig(vocab_size=300, joint=False), 9)
    assert (russian.can_read("ж"), russian.can_read("cat"), russian.can_read("日本")) == (True, True, False)
    letters = Tokenizer.learn(["кот"], ["cat"], TokenizerConfig(kind="characters"), 1)
    assert (letters.can_read("ж"), letters.can_read("日本")) == (True, False)
