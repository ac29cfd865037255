"""The models in the box are made in one go: recipes/box.py from end to end, with little of everything."""

import importlib.util
import itertools
import json
import re
import tomllib
from pathlib import Path
from types import SimpleNamespace

import pytest

from headwise import Bundle, load
from headwise.cli.main import main
from headwise.home import BOX, box_model

pytest.importorskip("torch")
RECIPES = Path(__file__).parents[2] / "recipes"
SMALL = {
    "d_model": 32,
    "d_ff": 64,
    "vocab_size": 400,
    "batch_tokens": 1024,
    "max_steps": 4,
    "warmup_steps": 2,
    "validate_every": 2,
    "save_every": 2,
    "decode_dev": 4,
}
WHO = {
    "the dog": "der Hund",
    "a cat": "eine Katze",
    "my friend": "mein Freund",
    "Tom": "Tom",
    "our uncle": "unser Onkel",
}
DOES = {"sees": "sieht", "likes": "mag", "finds": "findet", "has": "hat"}
WHAT = {"the house": "das Haus", "a book": "ein Buch", "two apples": "zwei Äpfel", "nothing": "nichts"}


@pytest.fixture
def script():
    spec = importlib.util.spec_from_file_location("box", RECIPES / "box.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def box(script, tmp_path, monkeypatch):
    """The script, with recipes that take seconds, and its commands run in this process."""
    small = tmp_path / "recipes"
    small.mkdir()
    for recipe in RECIPES.glob("*.toml"):
        text = recipe.read_text(encoding="utf-8")
        for name, value in SMALL.items():
            text = re.sub(rf"(?m)^{name} = [\d_]+", f"{name} = {value}", text)
        (small / recipe.name).write_text(text, encoding="utf-8")
    monkeypatch.setattr(script, "RECIPES", small)
    few = {name: dict.fromkeys(of, SMALL["max_steps"]) for name, of in script.UPDATES.items()}
    monkeypatch.setattr(script, "UPDATES", few)

    def run(command, check):
        assert check
        assert main([str(word) for word in command[3:]]) == 0, command

    monkeypatch.setattr(script, "subprocess", SimpleNamespace(run=run))
    return script


@pytest.fixture
def data(tmp_path):
    pairs = [
        (f"{a[0]} {b[0]} {c[0]}.", f"{a[1]} {b[1]} {c[1]}.")
        for a, b, c in itertools.product(WHO.items(), DOES.items(), WHAT.items())
    ]
    folder = tmp_path / "data"
    folder.mkdir()
    files = {"train.en-de": pairs[:60], "dev.en-de": pairs[60:70], "test.en-de": pairs[70:]}
    for language in ("fr", "es"):
        files[f"train.en-{language}"] = [(f"{n} {language} cats.", f"{n} chats {language}.") for n in range(30)]
    for name, rows in files.items():
        (folder / f"{name}.tsv").write_text("".join(f"{a}\t{b}\n" for a, b in rows), encoding="utf-8")
    return folder


def test_the_box_was_made_as_the_recipe_says(script):
    filed = json.loads((RECIPES.parent / "benchmarks" / "results" / "box.json").read_text(encoding="utf-8"))
    for languages in BOX:
        of = filed["-".join(languages)]
        last = script.runs(2, languages[1])[-1]
        beside = {f"{name}.tsv": times for name, times in script.TIMES[2][last].items()}
        said = Bundle.read(box_model(*languages)).config.data.train
        assert {corpus.pairs: corpus.weight for corpus in said} == {"train.tsv": 1, "same.tsv": 1} | beside
        runs = {told: name for told, name in script.OWN.items() if script.ALONE.get(name, languages[1]) == languages[1]}
        made = {told: of[told]["dev, all, at each limit"][-1]["step"] for told in of if told.startswith("this one")}
        assert {*runs} == {*made}
        for told, name in runs.items():
            assert made[told] == script.UPDATES.get(name, {}).get(languages[1], max_steps(RECIPES, name))


def max_steps(folder, name):
    name = {"first": "one-way", "last": "one-way-end"}.get(name, name)
    return tomllib.loads((folder / f"tatoeba-{name}.toml").read_text(encoding="utf-8"))["train"]["max_steps"]


def test_words_and_phrases_that_stand_for_each_other(box, data):
    found = box.phrases((one.capitalize(), other) for one, other in box.Corpus(data / "train.en-de.tsv").pairs())
    told = {("dog", "Hund"), ("sees", "sieht"), ("the house", "das Haus"), ("two apples", "zwei Äpfel")}
    assert told <= {*found}
    assert not [pair for pair in found if "." in pair[0] + pair[1] or len(pair[0].split()) > 3]
    capitals = {("Dog", "Hund"), ("Sees", "Sieht"), ("The house", "Das Haus")}
    assert told | capitals <= {*box.alone(found)}
    assert [*box.alone([("I see", "ich sehe"), ("Hund", "dog")])] == [("I see", "Ich sehe"), ("Hund", "dog")]


def test_a_deeper_model_begins_as_what_it_was(box, tmp_path):
    box.write_deeper(box_model("en", "de"), tmp_path / "deeper")
    texts = ["Where is the station?", "I don't know where my keys are."]
    one, other = (load(folder, compute_type="float32") for folder in (box_model("en", "de"), tmp_path / "deeper"))
    for a, b in zip(one.translate(texts), other.translate(texts), strict=True):
        assert a.text == b.text
        assert a.score == pytest.approx(b.score, abs=1e-4)


def test_from_pairs_to_two_models(box, data, tmp_path):
    out, result = tmp_path / "out", tmp_path / "box.json"
    box.main(data, tmp_path / "run", out, result)
    for name, text in (("en-de", "the dog sees nothing."), ("de-en", "der Hund sieht nichts.")):
        translator = load(out / name)
        assert translator.languages == tuple(name.split("-"))
        assert translator.search.split_sentences
        assert translator.translate(text).score < 0  # after so few steps there may be no word in it
        assert "60 pairs of English and German" in (out / name / "card.md").read_text(encoding="utf-8")
        assert json.loads(result.read_text(encoding="utf-8"))[name]["test"]["BLEU"][1].startswith("nrefs:1|")
    with pytest.raises(SystemExit, match="is there already"):
        box.main(data, tmp_path / "run", out, result)
