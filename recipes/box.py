"""From the run of recipes/tatoeba-en-de.toml to the model in the box: float16, with a card of what was measured.

python recipes/box.py runs/box --test test.en-de.tsv --out src/headwise/box/en-de

The test set is translated once in each direction, by the very model that is written. The folder must not be there.
"""

import argparse
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from headwise.bundle import Bundle, find_model
from headwise.data.corpus import Corpus
from headwise.evaluate.scores import bleu, chrf
from headwise.loading import load
from headwise.train.log import read_log

CARD = """# English to German, and back

The model that comes with headwise: a Transformer of {layers} layers, d_model {d_model}, {vocabulary:,} pieces,
{parameters:,} parameters, stored as float16. `headwise translate "Where is the station?"` uses it; `--to en` turns it
round.

## Data, licence, attribution

Trained on sentence pairs of [Tatoeba](https://tatoeba.org) alone, by way of the exports of
[manythings.org/anki](https://www.manythings.org/anki): {pairs}, both ways, under
[CC BY 2.0 FR](https://creativecommons.org/licenses/by/2.0/fr/). Whoever passes this model on names Tatoeba and its
contributors, as here. In training some pairs stand once more in upper case, in lower case, without their last mark, or
with a number, an address or an emoji.

## Training

`headwise train recipes/tatoeba-en-de.toml`: {steps:,} updates, {pieces:,} target pieces, {minutes:.0f} minutes on two
CPU cores with other work beside them for a part of the time. The mean of {averaged} checkpoints of a moving average.

## Scores

On the {n_test:,} sentences of `test.en-de.tsv`, a half of the test set v2021-08-07 of the Tatoeba Challenge,
scored once; beam {beam}. The set was not looked at before.

{scores}

## What it is bad at

Everyday sentences of up to about fifteen words are what it has seen. It is bad at long sentences, at news and other
written prose, at names and at words that are rare in Tatoeba: it may leave them out, or put a common word in their
place. It says *du* where *Sie* was meant, and the other way round. It knows no context beyond the sentence. Do not rely
on it where a wrong translation does harm.
"""


def main(run: Path, test: Path, out: Path) -> None:
    """Score, then write."""
    events = read_log(run / "log.jsonl")
    end = [e for e in events if e["event"] == "end"][-1]
    start = [e for e in events if e["event"] == "start"][-1]
    model = Bundle.read(find_model(run))
    pairs = list(Corpus(test).pairs())
    unfinished = out.with_name(f".{out.name}.unscored")
    replace(model, stored="float16", card="").write(unfinished)  # what is scored is what is written
    lines, found = [], {}
    for to, (sources, references) in {"de": _sides(pairs), "en": _sides(pairs)[::-1]}.items():
        translations = [one.text for one in load(unfinished, compute_type="float32").translate(sources, to=to)]
        for score in (bleu(translations, references), chrf(translations, references)):
            lines.append(f"- to {to}: {score.name} {score.value:.2f}, `{score.signature}`")
            found[f"{score.name} {to}"] = [round(score.value, 2), score.signature]
    c = model.config
    facts: dict[str, Any] = {
        "layers": f"{c.model.n_encoder_layers} + {c.model.n_decoder_layers}",
        "d_model": c.model.d_model,
        "vocabulary": c.model.vocab_size,
        "parameters": sum(array.size for array in model.weights.values()),
        "pairs": f"{start['pairs']:,} pairs with the copies",
        "steps": end["step"],
        "pieces": end["n_tokens"],
        "minutes": end["minutes"],
        "averaged": len(end["averaged"]),
        "n_test": len(pairs),
        "beam": c.search.beam_size,
        "scores": "\n".join(lines),
    }
    replace(Bundle.read(unfinished), card=CARD.format(**facts)).write(out)
    for path in (*unfinished.iterdir(), unfinished):
        path.unlink() if path.is_file() else path.rmdir()
    print(json.dumps(found, indent=1))


def _sides(pairs: list[tuple[str, str]]) -> tuple[list[str], list[str]]:
    return [src for src, _ in pairs], [tgt for _, tgt in pairs]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path)
    parser.add_argument("--test", type=Path, required=True)
    parser.add_argument("--out", type=Path, default=Path("src/headwise/box/en-de"))
    arguments = parser.parse_args()
    main(arguments.run, arguments.test, arguments.out)
