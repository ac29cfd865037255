"""The model in the box, on sentences far from what it has learned: sensible or unchanged, never a loop or an essay."""

import re

import pytest

from headwise import load
from headwise.cli.main import main
from headwise.home import BOX, box, box_model
from headwise.text.loops import loops

# What stands between ⟨⟩ must come back as it is; the marks themselves are not translated.
FAR = """
The central bank left its key interest rate unchanged on Thursday, citing weak growth in the euro area.
Rescue workers searched the rubble for a third day after the earthquake struck the coastal province.
The parliament approved the budget by 312 votes to 287 after a debate that lasted until midnight.
Researchers say the vaccine reduced severe illness by about two thirds in a trial of older adults.
Shares in the airline fell sharply after it announced the retirement of its chief executive.
WHERE IS THE STATION?
I DO NOT KNOW WHAT YOU ARE TALKING ABOUT.
PLEASE DO NOT TOUCH THE GLASS!
SALE ENDS FRIDAY
i have no idea what to do
where do you live
thanks
Station
Cat
Yes
Photosynthesis
Antidisestablishmentarianism
Why?
What on earth were you thinking when you sold the car without asking me first?
Is there a pharmacy near here that is open on Sundays?
Happy birthday! ⟨🎂⟩
I love you ⟨😀⟩
⟨👍⟩
⟨🚀🌍⟩
The train leaves at ⟨17:45⟩.
My number is ⟨5550173⟩.
⟨42⟩
⟨3.14159⟩
The room costs ⟨120⟩ euros a night.
Look at ⟨https://example.org/help⟩
⟨https://example.org/a/b?c=d⟩
Write to ⟨info@example.org⟩
Open readme.txt
print(x)
⟨Où est la gare ?⟩
⟨¿Cuántos años tienes?⟩
⟨La pioggia cade sulla città vecchia.⟩
⟨今日はとても寒いです。⟩
⟨Привет, как дела?⟩
⟨مرحبا⟩
Lorem ipsum dolor sit amet, consectetur adipiscing elit.
asdf qwer zxcv
????
...
!!!
a
salad salad salad salad
the the the the the the
Dr. Müller-Lüdenscheidt flew to Ouagadougou with Mr. Abernathy-Fitzwilliam.
He said: "I'll be back by ten," and then he left, although it was raining, although nobody had asked him to leave, and although the last bus, as everybody in the village knew very well, had gone an hour ago.
"""


FAR_BACK = """
Die Zentralbank ließ den Leitzins am Donnerstag unverändert und verwies auf das schwache Wachstum im Euroraum.
WO IST DER BAHNHOF?
ich habe keine ahnung
danke
Bahnhof
Donaudampfschifffahrtsgesellschaft
Alles Gute zum Geburtstag! ⟨🎂⟩
⟨👍⟩
Der Zug fährt um ⟨17:45⟩ ab.
Schau mal auf ⟨https://example.org/help⟩
⟨Où est la gare ?⟩
????
"""

WORDS = """
dog Hund; cat Katze; house Haus; water Wasser; bread Brot; mother Mutter; friend Freund Freundin; school Schule;
car Auto Wagen; sun Sonne; tree Baum; green grün; cold kalt Erkältung; tomorrow morgen; Monday Montag; table Tisch;
book Buch; hand Hand; city Stadt; money Geld; doctor Arzt Doktor; window Fenster; apple Apfel; station Bahnhof Station;
beautiful schön schöne; quickly schnell; thanks danke; hello hallo; computer Computer; night Nacht
"""
WORDS_BACK = """
Hund dog; Katze cat; Haus house; Wasser water; Brot bread; Mutter mother; Freund friend; Schule school; Auto car;
Sonne sun; Baum tree; grün green; kalt cold; gestern yesterday; Montag Monday; Tisch table; Buch book; Hand hand;
Stadt city town; Geld money; Arzt doctor; Fenster window; Apfel apple; Bahnhof station; schön beautiful nice; schnell
fast quickly quick; danke thanks thank_you; hallo hello hi; Computer computer; Nacht night
"""


def sentences(text: str) -> list[tuple[str, list[str]]]:
    """The sentences of a list, and what must come back of each as it is."""
    return [(re.sub("[⟨⟩]", "", line), re.findall("⟨(.*?)⟩", line)) for line in text.strip().split("\n")]


@pytest.mark.parametrize(("name", "text"), [("en-de", FAR), ("de-en", FAR_BACK)])
def test_far_from_its_data_it_stays_sensible(name, text):
    given = sentences(text)
    found = load(name).translate([source for source, _ in given])
    for (source, kept), one in zip(given, found, strict=True):
        assert one.text.strip(), source
        assert one.complete, source
        assert len(one.text) <= 2 * len(source) + 20, (source, one.text)
        assert not loops(one.text, source), (source, one.text)
        text = re.sub(r"([0-9])\.([0-9]{2} Uhr)", r"\1:\2", one.text)  # a time of day as German may write it
        assert all(thing in text for thing in kept), (source, one.text)


@pytest.mark.parametrize(("name", "words"), [("en-de", WORDS), ("de-en", WORDS_BACK)])
def test_it_knows_common_words_by_themselves(name, words):
    """At least nine in ten, as they are written and with a capital."""
    rows = [[word.replace("_", " ") for word in row.split()] for row in words.split(";")]
    for change in (str, str.capitalize):
        found = load(name).translate([change(word) for word, *_ in rows])
        said = [one.text.casefold().strip(".!? ") for one in found]
        wrong = [
            (word, text)
            for (word, *right), text in zip(rows, said, strict=True)
            if text not in map(str.casefold, right)
        ]
        assert len(wrong) <= len(rows) / 10, wrong


@pytest.mark.parametrize(
    ("name", "sentences"),
    [
        ("en-de", ["Two dogs play in the snow.", "They run fast!", "Do you see them?"]),
        ("de-en", ["Zwei Hunde spielen im Schnee.", "Sie laufen schnell!", "Siehst du sie?"]),
    ],
)
def test_each_sentence_of_a_text_is_translated_by_itself(name, sentences):
    together, *alone = load(name).translate([" ".join(sentences), *sentences])
    assert together.text == " ".join(one.text for one in alone)
    assert together.n_parts == len(sentences)


def test_alternatives_differ():
    """Though a beam may hold the same text in other pieces, as it did of the first of these."""
    for text in ("The dog sleeps.", "I have a cat."):
        found = load("en-de").translate(text, n_best=4)
        assert len({found.text, *(other.text for other in found.alternatives)}) == 1 + len(found.alternatives) > 1


def test_both_are_small_and_say_whose_sentences_they_learned_from():
    assert sum(path.stat().st_size for path in box().rglob("*")) < 25 * 2**20
    for source_lang, to in BOX:
        card = (box_model(source_lang, to) / "card.md").read_text(encoding="utf-8")
        for said in ("tatoeba.org", "CC BY 2.0 FR", "bad at", "BLEU"):
            assert said in card


def test_both_are_listed(capsys):
    assert main(["models", "list"]) == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines() if line.rstrip().endswith(" box")]
    assert [(*row[:4], *row[-2:]) for row in rows] == [
        ("de-en", "de", "->", "en", "int8", "box"),
        ("en-de", "en", "->", "de", "int8", "box"),
    ]


def test_without_a_model_named_it_translates_both_ways(capsys):
    assert main(["translate", "Where is the station?"]) == 0
    assert capsys.readouterr() == ("Wo ist der Bahnhof?\n", "")
    assert main(["translate", "Wo ist der Bahnhof?", "--to", "en"]) == 0
    assert capsys.readouterr().out in ("Where is the station?\n", "Where's the station?\n")
    assert main(["translate", "Wo ist der Bahnhof?", "--from", "German"]) == 0
    assert capsys.readouterr().out in ("Where is the station?\n", "Where's the station?\n")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--to", "fr"], "this model has no target language 'fr'; it knows de (German), en (English)"),
        (["--from", "fr"], "this model has no source language 'fr'; it knows en (English), de (German)"),
        (["--from", "en", "--to", "en"], "this model has no source language 'en'; it knows de (German)"),
    ],
)
def test_what_it_does_not_know(capsys, arguments, said):
    assert main(["translate", "text", *arguments]) == 2
    assert capsys.readouterr().err == f"error: {said}\n"
