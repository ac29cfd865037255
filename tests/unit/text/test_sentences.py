"""A long text comes apart into what fits, and nothing of it is lost."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwise.text.sentences import addresses, around_addresses, split


@given(st.text(alphabet="ab. ,;!?\n\r\u2028\u3002\u00e4", max_size=120), st.integers(1, 30))
def test_parts_fit_and_are_the_text(text, limit):
    parts = split(text, "en", lambda part: len(part) <= limit)
    assert "".join(part.before + part.text + part.after for part in parts) == text
    assert all(len(part.text) <= limit and part.text == part.text.strip() for part in parts)


def test_sentences_first_then_clauses_then_words():
    def texts(limit):
        return [part.text for part in split("One two, three four. Five six.", "en", lambda part: len(part) <= limit)]

    assert texts(21) == ["One two, three four.", "Five six."]
    assert texts(12) == ["One two,", "three four.", "Five six."]
    assert texts(6) == ["One", "two,", "three", "four.", "Five", "six."]


def test_no_sentence_is_longer_than_a_line():
    parts = split("A title\nOne two. Three\n\n- four\r\n- five", "en", lambda part: True)
    assert [part.text for part in parts] == ["A title", "One two.", "Three", "", "- four", "- five"]


@pytest.mark.parametrize(
    ("text", "language", "expected"),
    [
        ("Das ist die 2. Auflage. Sie ist neu.", "de", ["Das ist die 2. Auflage.", "Sie ist neu."]),
        ("Er wohnt im 3. Stock im 20. Jahrhundert.", "de", ["Er wohnt im 3. Stock im 20. Jahrhundert."]),
        (
            "Er kam 1990. Dann ging er. Es kostet 3.50. Gut.",
            "de",
            ["Er kam 1990.", "Dann ging er.", "Es kostet 3.50.", "Gut."],
        ),
        ("Ich bin 20.", "de", ["Ich bin 20."]),
        ("I am 20. You are 30.", "en", ["I am 20.", "You are 30."]),
    ],
)
def test_an_ordinal_ends_no_sentence(text, language, expected):
    assert [part.text for part in split(text, language, lambda part: True)] == expected


def test_addresses():
    text = (
        "See https://example.org/a?b=c, www.example.org/. Or (me@mail.example.org)! Not a@b, not http:// and not a.b."
    )
    assert addresses(text) == ["https://example.org/a?b=c", "www.example.org/", "me@mail.example.org"]
    parts = around_addresses(text)
    assert "".join("".join(part) for part in parts) == text
    assert [part.text for part in parts[:3]] == ["See", "https://example.org/a?b=c", ","]
    assert around_addresses("") == []
