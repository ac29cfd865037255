"""The models in the box, from the pairs of Tatoeba to the folders: train, translate, train on, score, write.

python recipes/box.py DATA --run runs/box

First one model learns both directions (tatoeba-en-de.toml, then tatoeba-en-de-end.toml). From it a model of each
direction is trained on (tatoeba-one-way.toml, then tatoeba-one-way-end.toml), English to German first. Each learns also
from translations, of its targets back into its source and of English that has no German here: that to German from those
by the model of both directions, that to English from those by the one to German. Then both go on twice with
translations that they make by then, two of each sentence, and with words by themselves, which are found in the pairs
(tatoeba-again-1.toml, tatoeba-again-2.toml), and end each time on pairs and words (tatoeba-again-1-end.toml,
tatoeba-again-2-end.toml); that to English has a little more of the words at last (tatoeba-again-2-words.toml).

DATA holds train.en-de.tsv, dev.en-de.tsv and test.en-de.tsv, and train.en-fr.tsv and train.en-es.tsv, of which the
English is taken, and sentences that stay as they are. Half a day on two cores; interrupted and started again, it goes
on. The test set is translated once in each direction, by the very model that is written, computed in float32; then once
more as `headwise translate` does it, for the time. Nothing that is there is overwritten.
"""

import argparse
import json
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))
import numpy as np
from phrases import alone, phrases
from protocol import machine

from headwise.atomic import write_text
from headwise.bundle import Bundle, find_model
from headwise.config import RunConfig, check, without_folders
from headwise.data.corpus import Corpus
from headwise.evaluate.scores import bleu, chrf
from headwise.home import BOX
from headwise.loading import load
from headwise.models import size
from headwise.text.languages import NAMES
from headwise.text.special import SPECIAL
from headwise.text.tokenizer import Tokenizer
from headwise.train.log import read_log

Pair = tuple[str, str]
RECIPES = Path(__file__).parent
DEEPER = 2  # more encoder layers in the end
COMMONEST = 2000  # words
# As the models in the box were made, which the clock ended: the minutes stand in the run files.
UPDATES = {
    "first": {"de": 9580, "en": 7265},
    "again-1": {"de": 5912, "en": 5895},
    "again-2": {"de": 10_995, "en": 10_968},
}
# Both go on twice: the runs of each time, and how often an epoch has what stands beside the pairs.
TIMES: dict[int, dict[str, dict[str, int]]] = {
    1: {
        "again-1": {"words": 8, "phrases": 2, "new-1": 1, "back-1": 1},
        "again-1-end": {"words": 8, "phrases": 2, "common": 16},
    },
    2: {
        "again-2": {"words": 4, "phrases": 1, "new-2": 1, "back-2": 1},
        "again-2-end": {"words": 4, "phrases": 1, "common": 8},
        "again-2-words": {"words": 8, "phrases": 1, "common": 100},
    },
}
ALONE = {"again-2-words": "en"}  # of this target alone
CARD = """# {source} to {target}

A model that comes with headwise: a Transformer of {layers} layers, d_model {d_model}, {vocabulary:,} pieces,
{parameters:,} parameters, stored as int8 with a scale a row. `headwise translate{to} "{example}"` uses it.

## Data, licence, attribution

Trained on sentences of [Tatoeba](https://tatoeba.org) alone, by way of the exports of
[manythings.org/anki](https://www.manythings.org/anki), under
[CC BY 2.0 FR](https://creativecommons.org/licenses/by/2.0/fr/). Whoever passes this model on names Tatoeba and its
contributors, as here. {n_pairs:,} pairs of English and German; some stand there once more in upper case, in lower case,
without their last mark, with other numbers, or with a number, an address or an emoji. {n_same:,} French and Spanish
sentences that stay as they are. {n_words:,} words by themselves, as they go together in the pairs. And translations by
these models as they were earlier in training: {n_new:,} more English sentences with their German, and what stands on
the {target} side of the pairs with {source} of their own.

## Training

`python recipes/box.py`, on one CPU core or two:

{steps}

## Scores

On the {n_test:,} sentences of `test.en-de.tsv`, a half of the test set v2021-08-07 of the Tatoeba Challenge,
beam {beam}. No choice was made by it.

{scores}

## What it is bad at

Everyday sentences of up to about fifteen words are what it has seen. It is bad at long sentences, at news and other
written prose, at code, at names and at words that are rare in Tatoeba: it may leave them out, or put a common word in
their place. {you}
It knows no context beyond the sentence. Do not rely on it where a wrong translation does harm.
"""
YOU = {
    "de": "It says *du* where *Sie* was meant, and the other way round.",
    "en": "What *sie* or *ihr* stands for it can only guess.",
}
OWN = {
    "this one": "first",
    "this one, the end": "last",
    "this one, once more": "again-1",
    "this one, once more, the end": "again-1-end",
    "this one, again": "again-2",
    "this one, again, the end": "again-2-end",
    "this one, words once more": "again-2-words",
}
EXAMPLE = {"de": ("", "Where is the station?"), "en": (" --to en", "Wo ist der Bahnhof?")}


def main(data: Path, run: Path, out: Path, result: Path) -> None:
    """All of it."""
    for path in (*(out / "-".join(pair) for pair in BOX), result):
        if path.exists():
            sys.exit(f"{path} is there already; choose another name")
    first, last = run / "first", run / "last"
    pairs, dev = f"--pairs={data / 'train.en-de.tsv'}", f"--dev-pairs={data / 'dev.en-de.tsv'}"
    train(first, "tatoeba-en-de.toml", pairs, dev)
    same = written(run / "same.tsv", ((one, one) for one in others(data)))
    train(last, "tatoeba-en-de-end.toml", f"--init={first}", pairs, f"--pairs={same}", dev)
    for source, target in BOX:
        one_way(data, run, source, target)
    for n in TIMES:
        for source, target in BOX:
            once_more(data, run, source, target, n)
    test = list(Corpus(data / "test.en-de.tsv").pairs())
    both = {"both directions": first, "both directions, the end": last}
    content: dict[str, Any] = {told: history(folder) for told, folder in both.items()}
    for pair in BOX:
        name = "-".join(pair)
        own = {told: run / name / folder for told, folder in OWN.items() if (run / name / folder).is_dir()}
        turned = [one[::-1] for one in test] if pair[0] == "de" else test
        content[name] = put(out / name, both | own, turned, pair)
        content[name] |= {told: history(folder) for told, folder in own.items()}
    write_text(result, json.dumps(content | machine(), indent=1) + "\n")


def put(folder: Path, runs: dict[str, Path], test: list[Pair], languages: Pair) -> dict[str, Any]:
    """Write the model of the last run, with a card of how it scores as it is written."""
    model = Bundle.read(find_model(list(runs.values())[-1]))
    model = replace(model, config=without_folders(model.config), stored="int8", card="")
    unfinished = folder.with_name(f".{folder.name}.unscored")
    model.write(unfinished)  # what is scored is what is written
    try:
        scores, speed = scored(unfinished, test), timed(unfinished, [source for source, _ in test])
        told = "\n".join(f"- {name} {value:.2f}, `{signature}`" for name, (value, signature) in scores.items())
        card = CARD.format(scores=told, n_test=len(test), **facts_of(model, runs, languages))
        replace(Bundle.read(unfinished), card=card).write(folder)
    finally:
        shutil.rmtree(unfinished)
    print(f"{folder.name}\n{told}")
    return {"test": scores, "speed": speed, "bytes": size(folder), "settings": model.config.model_dump()}


def one_way(data: Path, run: Path, source: str, target: str) -> None:
    """From the model of both ways to that of one, which learns also from translations by a model that is there."""
    here, both = run / f"{source}-{target}", run / "last"
    maker = both if target == "de" else run / "en-de" / "last"
    english, targets = new_english(data), sentences(data, target)
    german = [made[0] for made in translated(here, "new", english, maker, "de")]
    sources = [made[0] for made in translated(here, f"train.{target}", targets, maker, source)]
    new = [pair[::-1] if source == "de" else pair for pair in zip(english, german, strict=True)]
    made = {"new": new, "back": [*zip(sources, targets, strict=True)]}
    write_start(both, here / "start", sentences(data, target))
    pairs, same, told = common(data, run, (source, target))
    own = {pairs: 1, same: 1}
    files = own | {written(here / f"{name}.tsv", rows): 1 for name, rows in made.items()}
    steps = f"--set=train.max_steps={UPDATES['first'][target]}"
    train(here / "first", "tatoeba-one-way.toml", f"--init={here / 'start'}", steps, *as_pairs(files), *told)
    train(here / "last", "tatoeba-one-way-end.toml", f"--init={here / 'first'}", *as_pairs(own), *told)


def once_more(data: Path, run: Path, source: str, target: str, n: int) -> None:
    """On from the model of one way, with translations by those of both, two of each sentence to translate from."""
    here, again = run / f"{source}-{target}", run / f"again-{n}"
    makers = {language: stored(run, pair, n) for pair, language in zip(BOX, ("de", "en"), strict=True)}
    english, targets = new_english(data), sentences(data, target)
    german = translated(again, "new", english, makers["de"], "de", n_best=2)
    sources = translated(again, f"train.{target}", targets, makers[source], source, n_best=2)
    if source == "de":
        new = [(one, known) for made, known in zip(german, english, strict=True) for one in made]
    else:
        new = [(known, made[0]) for known, made in zip(english, german, strict=True)]
    back = [(one, known) for made, known in zip(sources, targets, strict=True) for one in made]
    pairs, same, told = common(data, run, (source, target))
    beside = by_themselves(here, pairs)
    beside |= {name: written(here / f"{name}.tsv", rows) for name, rows in {f"new-{n}": new, f"back-{n}": back}.items()}
    start = makers[target]
    if n == 1:
        start = here / "deeper"
        write_deeper(makers[target], start)
    for name in runs(n, target):
        files = {pairs: 1, same: 1} | {beside[of]: times for of, times in TIMES[n][name].items()}
        steps = [f"--set=train.max_steps={UPDATES[name][target]}"] if name in UPDATES else []
        train(here / name, f"tatoeba-{name}.toml", f"--init={start}", *steps, *as_pairs(files), *told)
        start = here / name


def runs(n: int, target: str) -> list[str]:
    """What is run the n-th time that both go on."""
    return [name for name in TIMES[n] if ALONE.get(name, target) == target]


def stored(run: Path, languages: Pair, n: int) -> Path:
    """The model of one way before both go on for the n-th time, in the form that the box has."""
    here = run / "-".join(languages)
    last, folder = "last" if n == 1 else runs(n - 1, languages[1])[-1], here / f"stored-{n}"
    if not folder.is_dir():
        replace(Bundle.read(find_model(here / last)), stored="int8").write(folder)
    return folder


def by_themselves(here: Path, pairs: Path) -> dict[str, Path]:
    """Words and phrases that are found in the pairs, and the commonest words once more."""
    found = phrases(Corpus(pairs).pairs()) if not (here / "phrases.tsv").exists() else []
    of_one = [pair for pair in found if " " not in pair[0]]
    rows = {"words": of_one, "common": of_one[:COMMONEST], "phrases": [pair for pair in found if " " in pair[0]]}
    return {name: written(here / f"{name}.tsv", alone(of)) for name, of in rows.items()}


def common(data: Path, run: Path, languages: Pair) -> tuple[Path, Path, list[str]]:
    """The pairs in this direction, what stays as it is, and what every run of the direction is told."""
    here, turn = run / "-".join(languages), languages[0] == "de"
    pairs, dev = (
        written(here / f"{part}.tsv", Corpus(data / f"{part}.en-de.tsv", turned=turn).pairs())
        for part in ("train", "dev")
    )
    told = [f"--source-lang={languages[0]}", f"--target-lang={languages[1]}", f"--dev-pairs={dev}"]
    return pairs, run / "same.tsv", told


def as_pairs(files: Mapping[Path, int]) -> list[str]:
    """Files of pairs, and how often an epoch has each, as arguments."""
    return [f"--pairs={file}" for file in files] + [f"--weight={times}" for times in files.values()]


def train(out: Path, recipe: str, *given: str) -> None:
    """By the recipe, until it ends."""
    if not (out / "model").is_dir():
        command = [sys.executable, "-m", "headwise", "train", str(RECIPES / recipe), *given, "--out", str(out)]
        subprocess.run(command, check=True)


def written(file: Path, pairs: Iterable[tuple[str, str]]) -> Path:
    """A file of pairs."""
    if not file.exists():
        file.parent.mkdir(parents=True, exist_ok=True)
        write_text(file, "".join(f"{one}\t{other}\n" for one, other in pairs))
    return file


def others(data: Path) -> list[str]:
    """One French or Spanish sentence in fifteen."""
    files = [data / f"train.en-{language}.tsv" for language in ("fr", "es")]
    return list(dict.fromkeys(target for file in files for _, target in list(Corpus(file).pairs())[14::15]))


def new_english(data: Path) -> list[str]:
    """The English of the French and Spanish pairs that stands in no German pair, whatever its marks and capitals."""
    files = [data / f"{part}.en-de.tsv" for part in ("train", "dev", "test")]
    known = {plain(english) for file in files for english, _ in Corpus(file).pairs()}
    found = [english for language in ("fr", "es") for english, _ in Corpus(data / f"train.en-{language}.tsv").pairs()]
    return [english for english in dict.fromkeys(found) if plain(english) not in known]


def plain(text: str) -> str:
    """Its words alone."""
    return " ".join(re.findall(r"\w+", text.lower()))


def sentences(data: Path, language: str) -> list[str]:
    """Each sentence that the pairs have in a language, once."""
    return list(dict.fromkeys(pair[language == "de"] for pair in Corpus(data / "train.en-de.tsv").pairs()))


def translated(here: Path, name: str, texts: list[str], model: Path, to: str, n_best: int = 1) -> list[list[str]]:
    """The best of each by the model, as a user has it; the file that is made is kept."""
    given, made = here / f"{name}.txt", here / f"{name}.{to}.txt"
    if not given.exists():
        here.mkdir(parents=True, exist_ok=True)
        write_text(given, "".join(f"{text}\n" for text in texts))
    interrupted = made.with_name(f".{made.name}.unfinished").exists()
    if interrupted or not made.exists():
        command = ["--model", str(model), "--to", to, "--n-best", str(n_best)]
        command += ["--input", str(given), "--output", str(made), *(["--resume"] if interrupted else [])]
        subprocess.run([sys.executable, "-m", "headwise", "translate", *command], check=True)
    found: list[list[str]] = [[] for _ in texts]
    for line in made.read_text(encoding="utf-8").split("\n")[:-1]:
        number, text, _ = line.split(" ||| ")
        found[int(number)].append(text)
    return found


def write_start(both: Path, folder: Path, targets: list[str]) -> None:
    """A model of one direction that does what that of both does: without the tags, and its vocabulary without them."""
    if folder.is_dir():
        return
    model = Bundle.read(find_model(both))
    assert model.tokenizer is not None
    raw = json.loads(model.tokenizer)
    n, n_tags = len(SPECIAL), len(Tokenizer.from_text(model.tokenizer).languages)
    vocabulary = {i: piece for piece, i in raw["model"]["vocab"].items() if not n <= i < n + n_tags}
    raw["model"]["vocab"] = {vocabulary[i]: new for new, i in enumerate(sorted(vocabulary))}
    tokenizer = Tokenizer.from_text(json.dumps(raw))
    weights = {**model.weights}
    weights["embedding.weight"] = np.delete(weights["embedding.weight"], range(n, n + n_tags), axis=0)
    config = without_folders(model.config).model_dump()
    config["data"]["both_ways"] = False
    config["model"] |= {"vocab_size": tokenizer.vocab_size, "src_vocab_size": tokenizer.src_vocab_size}
    said = sorted({*range(n), *(i for ids in tokenizer.encode_target(targets) for i in ids)})
    Bundle(check(RunConfig, config), weights, tokenizer.to_text(), said=tuple(said)).write(folder)


def write_deeper(last: Path, folder: Path) -> None:
    """The model with its last encoder layers once more, so that they add nothing at first: what they give out is 0."""
    if folder.is_dir():
        return
    model = Bundle.read(find_model(last))
    n, more = model.config.model.n_encoder_layers, {}
    for name, array in model.weights.items():
        layer = re.match(r"encoder\.layers\.(\d+)\.", name)
        if layer and int(layer[1]) >= n - DEEPER:
            silent = "w_o." in name or "w_2." in name
            new = name.replace(f".{layer[1]}.", f".{int(layer[1]) + DEEPER}.", 1)
            more[new] = np.zeros_like(array) if silent else array
    config = without_folders(model.config).model_dump()
    config["model"]["n_encoder_layers"] = n + DEEPER
    replace(model, config=check(RunConfig, config), weights={**model.weights, **more}, stored="float32").write(folder)


def scored(folder: Path, test: list[Pair]) -> dict[str, Any]:
    """BLEU and chrF, computed in float32."""
    found = load(folder, compute_type="float32").translate([source for source, _ in test], scores=False)
    translations, references = [one.text for one in found], [target for _, target in test]
    both = (bleu(translations, references), chrf(translations, references))
    return {score.name: [round(score.value, 2), score.signature] for score in both}


def timed(folder: Path, sources: list[str]) -> dict[str, Any]:
    """Sentences a second, as a user has them who says nothing."""
    translator = load(folder)
    translator.translate(sources[:100])
    began = time.perf_counter()
    translator.translate(sources)
    seconds = time.perf_counter() - began
    return {"engine": translator.why, "sentences": len(sources), "seconds": round(seconds, 1)}


def facts_of(model: Bundle, runs: dict[str, Path], languages: Pair) -> dict[str, Any]:
    """What the card tells of the model and its training."""
    c, (source, target), here = model.config.model, languages, runs["this one"].parent
    ends = {name: [e for e in read_log(run / "log.jsonl") if e["event"] == "end"][-1] for name, run in runs.items()}
    steps = [f"- {name}: {end['step']:,} updates in {end['minutes']:.0f} minutes" for name, end in ends.items()]
    files = {
        "n_pairs": here / "train.tsv",
        "n_new": here / "new.tsv",
        "n_words": here / "words.tsv",
        "n_same": here.parent / "same.tsv",
    }
    return {
        "source": NAMES[source],
        "target": NAMES[target],
        "to": EXAMPLE[target][0],
        "example": EXAMPLE[target][1],
        "you": YOU[target],
        "layers": f"{c.n_encoder_layers} + {c.n_decoder_layers}",
        "d_model": c.d_model,
        "vocabulary": c.vocab_size,
        "parameters": sum(array.size for array in model.weights.values()),
        "steps": "\n".join(steps),
        "beam": model.config.search.beam_size,
    } | {name: sum(1 for _ in Corpus(file).pairs()) for name, file in files.items()}


def history(run: Path) -> dict[str, Any]:
    """How dev rose: greedy on its first sentences while training, and all of it with the model's search at each end."""
    events = read_log(run / "log.jsonl")
    curve = ("minutes", "step", "loss", "BLEU")
    whole = ("minutes", "step", "averaged", "loss", "scores")
    return {
        "dev, all, at each limit": [{name: e[name] for name in whole} for e in events if e["event"] == "end"],
        "dev, greedy: " + ", ".join(curve): [[e[name] for name in curve] for e in events if e["event"] == "validation"],
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--run", type=Path, default=Path("runs/box"))
    parser.add_argument("--out", type=Path, default=Path("src/headwise/box"))
    parser.add_argument("--result", type=Path, default=Path("benchmarks/results/box.json"))
    arguments = parser.parse_args()
    main(arguments.data, arguments.run, arguments.out, arguments.result)
