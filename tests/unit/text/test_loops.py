"""What is a loop, what is none, and what is left of one."""

import random

import pytest

from headwise.text.loops import AT_ONCE, cut, loops, repeats

FAIR = [
    "",
    "Ein Mann in einem blauen Hemd steht auf einer Leiter und putzt ein Fenster.",
    "Nein, nein, nein!",
    "Der Mann sieht den Mann, der den Mann sieht, der den Hund sieht.",
    "1234567890 " * 2,
    "Er hat 10000000000 Euro, sehr, sehr, sehr viel.",
    "Ha ha ha!",
]
LOOPS = [
    "Salat " * 20,
    "und dann, " * 12,
    "ha" * 100,
    "Ein Hund " + "und ein Hund " * 9,
    "?" * 200,
    "Er sagte, dass er auf dem Alten und alle alle alle alle auf dem Weg gekommen war.",
    "Das ist schwachwachwachwach.",
    "Wer sagt das alles alles alles alles",
]


@pytest.mark.parametrize("text", FAIR)
def test_fair_text_is_no_loop_and_stays(text):
    assert not loops(text)
    assert cut(text).split() == text.split() or "nein" in text.lower()


@pytest.mark.parametrize("text", LOOPS)
def test_loops_are_seen_and_cut(text):
    assert loops(text)
    assert not loops(cut(text))
    assert len(cut(text)) < len(text)
    assert text.startswith(cut(text)[:2])
    assert not loops(text, text)


def test_a_source_that_repeats_itself_may_be_translated_so():
    assert not loops("Salat " * 20, "salad " * 20)
    assert loops("Salat " * 80, "salad " * 20)
    assert loops("Salat " * 20, "a salad")


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("Salat Salat Salat Salat", "Salat"),
        ("Ein Salat und ein Salat und ein Salat und ein Ei", "Ein Salat und ein Ei"),
        ("ja ja", "ja ja"),
        ("", ""),
    ],
)
def test_cut(text, left):
    assert cut(text) == left


def test_the_quick_look_misses_nothing_that_is_said_at_once():
    draw = random.Random(1)
    texts = ["".join(draw.choices("ab ", k=draw.randrange(40))) for _ in range(3000)]
    texts += [draw.choice(["", "So "]) + "".join(draw.choices("abcdefgh ", k=n)) * 4 for n in range(1, 33)]
    said = [text for text in texts if AT_ONCE.search(f"{text} ")]
    assert len(said) > 50
    assert all(map(repeats, said))
