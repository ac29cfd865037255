"""The model in the box, from the pairs of Tatoeba to the folder: train, train the end, score, write.

python recipes/box.py DATA --run runs/box

DATA holds train.en-de.tsv, dev.en-de.tsv and test.en-de.tsv, and train.en-fr.tsv and train.en-es.tsv for sentences that
stay as they are. Some hours; interrupted and started again, it goes on. The test set is translated once in each
direction, by the very model that is written, as float16, and computed in float32; then once more to German as
`headwise translate` does it, for the time. Nothing that is there is overwritten.
"""

import argparse
import json
import shutil
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))
from protocol import machine

from headwise.bundle import Bundle
from headwise.config import without_folders
from headwise.data.corpus import Corpus
from headwise.evaluate.scores import bleu, chrf
from headwise.loading import load
from headwise.models import size
from headwise.train.log import read_log

RECIPES = Path(__file__).parent
CARD = """# English to German, and back

The model that comes with headwise: a Transformer of {layers} layers, d_model {d_model}, {vocabulary:,} pieces,
{parameters:,} parameters, stored as float16. `headwise translate "Where is the station?"` uses it; `--to en` turns it
round.

## Data, licence, attribution

Trained on sentences of [Tatoeba](https://tatoeba.org) alone, by way of the exports of
[manythings.org/anki](https://www.manythings.org/anki), under
[CC BY 2.0 FR](https://creativecommons.org/licenses/by/2.0/fr/). Whoever passes this model on names Tatoeba and its
contributors, as here. {pairs:,} pairs, both ways; some stand there once more in upper case, in lower case, without
their last mark, or with a number, an address or an emoji. At the end also {same:,} French and Spanish sentences that
stay as they are.

## Training

`python recipes/box.py`, on two CPU cores: {first[step]:,} updates by `recipes/tatoeba-en-de.toml` in
{first[minutes]:.0f} minutes, then {last[step]:,} by `recipes/tatoeba-en-de-end.toml` in {last[minutes]:.0f}, together
{pieces:,} target pieces. The mean of {averaged} checkpoints.

## Scores

On the {n_test:,} sentences of `test.en-de.tsv`, a half of the test set v2021-08-07 of the Tatoeba Challenge,
scored once; beam {beam}. No choice was made by it.

{scores}

## What it is bad at

Everyday sentences of up to about fifteen words are what it has seen. It is bad at long sentences, at news and other
written prose, at names and at words that are rare in Tatoeba: it may leave them out, or put a common word in their
place. It says *du* where *Sie* was meant, and the other way round. It knows no context beyond the sentence. Do not rely
on it where a wrong translation does harm.
"""


def main(data: Path, run: Path, out: Path, result: Path) -> None:
    """All of it."""
    for path in (out, result):
        if path.exists():
            sys.exit(f"{path} is there already; choose another name")
    first, last, same = run / "first", run / "last", run / "same.tsv"
    pairs, dev = f"--pairs={data / 'train.en-de.tsv'}", f"--dev-pairs={data / 'dev.en-de.tsv'}"
    train(first, RECIPES / "tatoeba-en-de.toml", pairs, dev)
    if not same.exists():
        write_same([data / "train.en-fr.tsv", data / "train.en-es.tsv"], same)
    train(last, RECIPES / "tatoeba-en-de-end.toml", f"--init={first}", pairs, f"--pairs={same}", dev)

    model = Bundle.read(last / "model")
    model = replace(model, config=without_folders(model.config), stored="float16", card="")
    unfinished = out.with_name(f".{out.name}.unscored")
    model.write(unfinished)  # what is scored is what is written
    try:
        test = list(Corpus(data / "test.en-de.tsv").pairs())
        english, german = [source for source, _ in test], [target for _, target in test]
        scores = scored(unfinished, english, german)
        speed = timed(unfinished, english)
        facts = facts_of(model, first, last, n_pairs=sum(1 for _ in Corpus(data / "train.en-de.tsv").pairs()))
        facts |= {"same": len(same.read_bytes().splitlines()), "n_test": len(test), "scores": "\n".join(told(scores))}
        replace(Bundle.read(unfinished), card=CARD.format(**facts)).write(out)
    finally:
        shutil.rmtree(unfinished)
    content = {"test": scores, "speed": speed, "bytes": size(out), "first": history(first), "last": history(last)}
    content |= {"settings": model.config.model_dump(), **machine()}
    result.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    print("\n".join(told(scores)))


def train(out: Path, recipe: Path, *given: str) -> None:
    """By the recipe, until it ends."""
    if not (out / "model").is_dir():
        subprocess.run([sys.executable, "-m", "headwise", "train", str(recipe), *given, "--out", str(out)], check=True)


def write_same(corpora: list[Path], file: Path) -> None:
    """One sentence in fifteen of other languages, each with itself beside it."""
    sentences = [target for corpus in corpora for _, target in list(Corpus(corpus).pairs())[14::15]]
    file.write_text("".join(f"{one}\t{one}\n" for one in dict.fromkeys(sentences)), encoding="utf-8")


def scored(folder: Path, english: list[str], german: list[str]) -> dict[str, dict[str, Any]]:
    """BLEU and chrF of both directions."""
    found: dict[str, dict[str, Any]] = {}
    translator = load(folder, compute_type="float32")
    for to, sources, references in (("de", english, german), ("en", german, english)):
        translations = [one.text for one in translator.translate(sources, to=to)]
        both = (bleu(translations, references), chrf(translations, references))
        found[to] = {score.name: [round(score.value, 2), score.signature] for score in both}
    return found


def told(scores: dict[str, dict[str, Any]]) -> list[str]:
    """The scores as a list of Markdown."""
    return [
        f"- to {to}: {name} {value:.2f}, `{signature}`"
        for to, found in scores.items()
        for name, (value, signature) in found.items()
    ]


def timed(folder: Path, sources: list[str]) -> dict[str, Any]:
    """Sentences a second, as a user has them who says nothing."""
    translator = load(folder)
    translator.translate(sources[:100])
    began = time.perf_counter()
    translator.translate(sources)
    seconds = time.perf_counter() - began
    return {"engine": translator.why, "sentences": len(sources), "seconds": round(seconds, 1)}


def facts_of(model: Bundle, first: Path, last: Path, n_pairs: int) -> dict[str, Any]:
    """What the card tells of the model and its training."""
    c = model.config.model
    ends = [[e for e in read_log(run / "log.jsonl") if e["event"] == "end"][-1] for run in (first, last)]
    return {
        "layers": f"{c.n_encoder_layers} + {c.n_decoder_layers}",
        "d_model": c.d_model,
        "vocabulary": c.vocab_size,
        "parameters": sum(array.size for array in model.weights.values()),
        "pairs": n_pairs,
        "first": ends[0],
        "last": ends[1],
        "pieces": sum(end["n_tokens"] for end in ends),
        "averaged": len(ends[1]["averaged"]),
        "beam": model.config.search.beam_size,
    }


def history(run: Path) -> dict[str, Any]:
    """How dev rose: greedy on its first sentences while training, and all of it with the model's search at each end."""
    events = read_log(run / "log.jsonl")
    tokens = {e["step"]: e["n_tokens"] for e in events if e["event"] == "step"}
    curve = ("minutes", "step", "loss", "BLEU de", "BLEU en")
    whole = ("minutes", "step", "averaged", "loss", "scores")
    return {
        "dev, all, at each limit": [{name: e[name] for name in whole} for e in events if e["event"] == "end"],
        "dev, greedy, 200 a direction: target pieces, " + ", ".join(curve): [
            [tokens[e["step"]], *(e[name] for name in curve)] for e in events if e["event"] == "validation"
        ],
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--run", type=Path, default=Path("runs/box"))
    parser.add_argument("--out", type=Path, default=Path("src/headwise/box/en-de"))
    parser.add_argument("--result", type=Path, default=Path("benchmarks/results/box.json"))
    arguments = parser.parse_args()
    main(arguments.data, arguments.run, arguments.out, arguments.result)
