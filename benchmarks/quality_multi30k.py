"""How well does the tiny shape translate after 30, 60 and 100 minutes on this machine? Multi30k, English to German.

python benchmarks/quality_multi30k.py [--out runs/quality_multi30k] [--val]

From raw text by headwise's own commands, with nothing else running, all of it in the tiny shape:

1. a model in each direction, side by side, a thread each; each translates its side of the training text;
2. the first of them goes on, with the pairs as they are and with both translations, and makes its own anew;
3. it goes on with these, at half the dropout, while the rate falls.

All minutes of training and translating count. All choices were made on val; test 2016 is translated once, or not at all
with --val. BLEU is given twice: of lower-cased, punctuation-normalised, Moses-tokenised text, as the published 41.02
was measured, and cased sacreBLEU with its signature. Run again, it goes on.
"""

import argparse
import json
import math
import os
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from protocol import RESULTS, machine

DATA = Path(os.environ.get("HEADWISE_DATA", Path(__file__).parents[2] / "shared" / "data")) / "multi30k"
MARK, REFERENCE_TOKENS = 41.02, 12_103  # Wu et al. 2021, and how long the reference is when measured as they did
MINUTES = 100
RECIPE = {
    "model.norm": "pre",
    "model.share_embeddings": "two-way",
    "tokenizer.joint": "false",
    "tokenizer.vocab_size": 4000,
    "train.schedule": "cosine",
    "train.warmup_steps": 1000,
    "train.validate_every": 1000,
    "train.save_every": 250,
    "train.average_checkpoints": 5,
    "train.keep_checkpoints": 1000,  # so that 30 and 60 minutes can be looked at afterwards
    "search.beam_size": 5,
    "search.alpha": 1.5,
}
FIRST = {"data.batch_tokens": 2048, "train.peak_lr": 0.003, "train.max_steps": 5000}
SECOND = {
    "data.batch_tokens": 4096,
    "train.peak_lr": 0.004,
    "train.max_steps": 12_000,
    "train.max_minutes": 57,
}
END = {
    "model.dropout": 0.15,
    "data.batch_tokens": 2048,
    "train.peak_lr": 0.0012,
    "train.warmup_steps": 200,
    "train.max_steps": 4000,
}
ONE = ("--threads", "1")
Texts = tuple[Path, Path]


def headwise(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "headwise", *arguments]


def train(run: Path, pairs: list[Texts], dev: Texts, settings: dict[str, Any], *flags: str) -> list[str]:
    files = [part for src, tgt in pairs for part in ("--src", str(src), "--tgt", str(tgt))]
    files += ["--dev-src", str(dev[0]), "--dev-tgt", str(dev[1])]
    sets = [part for name, value in (RECIPE | settings).items() for part in ("--set", f"{name}={value}")]
    return headwise("train", *files, "--out", str(run), "--preset", "tiny", *sets, *flags)


def translate(run: Path, given: Path, made: Path, *flags: str) -> list[str]:
    return headwise("translate", "--model", str(run), "--input", str(given), "--output", str(made), "--resume", *flags)


def side_by_side(*commands: list[str]) -> None:
    running = [subprocess.Popen(command) for command in commands]
    if any([process.wait() for process in running]):
        sys.exit("a command failed; run again, it goes on")


def timed(took: Path, *commands: list[str]) -> float:
    """Run commands side by side, once; the minutes that they took, which are kept in a file."""
    if not took.exists():
        began = time.monotonic()
        side_by_side(*commands)
        took.write_text(f"{(time.monotonic() - began) / 60:.2f}\n")
    return float(took.read_text())


def trained(*runs: Path) -> float:
    """The minutes of training of runs that were side by side."""
    from headwise.train.log import read_log

    return max(e["minutes"] for run in runs for e in read_log(run / "log.jsonl") if e["event"] == "end")


def learn(out: Path) -> dict[str, float]:
    """Train in `out`; the minutes that each part took."""
    en, de, dev_en, dev_de = (DATA / name for name in ("train.en", "train.de", "val.en", "val.de"))
    there, back, second, end = (out / name for name in ("there", "back", "second", "end"))
    made_de, made_en, anew_de = (out / name for name in ("made.de", "made.en", "anew.de"))
    dev, took = (dev_en, dev_de), {}
    side_by_side(
        train(there, [(en, de)], dev, FIRST, *ONE),
        train(back, [(de, en)], dev[::-1], FIRST, *ONE, "--quiet"),
    )
    took["a model in each direction"] = trained(there, back)
    took["their translations"] = timed(
        out / "made.txt", translate(there, en, made_de, *ONE), translate(back, de, made_en, *ONE)
    )
    pairs = [(en, de), (en, made_de), (made_en, de)]
    side_by_side(train(second, pairs, dev, SECOND, "--init", str(there / "model")))
    took["the second model"] = trained(second)
    took["its translations"] = timed(out / "anew.txt", translate(second, en, anew_de))
    pairs = [(en, de), (en, anew_de), (made_en, de)]
    left = math.floor(10 * (MINUTES - sum(took.values()))) / 10
    last = END | {"train.max_minutes": left}
    side_by_side(train(end, pairs, dev, last, "--init", str(second / "model")))
    took["the end"] = trained(end)
    return took


def mean(run: Path, minutes: float = math.inf) -> Any:
    """The model whose weights are the mean of the last checkpoints that a run had after so many minutes."""
    from headwise.bundle import Bundle
    from headwise.train.average import average
    from headwise.train.log import read_log

    timed = [e for e in read_log(run / "log.jsonl") if e["event"] in ("step", "end")]
    reached = max(e["step"] for e in timed if e["minutes"] <= minutes)
    saved = [p for p in sorted((run / "checkpoints").glob("step-*")) if int(p.name[5:]) <= reached]
    saved = saved[-RECIPE["train.average_checkpoints"] :]
    return replace(Bundle.read(saved[-1]), weights=average(saved))


def lines(name: str) -> list[str]:
    return (DATA / name).read_bytes().decode().split("\n")[:-1]


def moses_bleu(translations: list[str], references: list[str]) -> tuple[float, int]:
    """BLEU of lower-cased, punctuation-normalised, Moses-tokenised text, and the tokens of the reference."""
    import sacrebleu
    from sacremoses import MosesPunctNormalizer, MosesTokenizer

    normalizer, tokenizer = MosesPunctNormalizer("de"), MosesTokenizer("de")

    def prepared(texts: list[str]) -> list[str]:
        return [tokenizer.tokenize(normalizer.normalize(text).lower(), return_str=True, escape=False) for text in texts]

    scored = sacrebleu.corpus_bleu(prepared(translations), [prepared(references)], tokenize="none", force=True)
    return scored.score, scored.ref_len


def score(bundle: Any, name: str) -> dict[str, Any]:
    """Both BLEUs of a model on a part of Multi30k, decoded as the model says."""
    from headwise.engine.torch import TorchEngine
    from headwise.evaluate.scores import bleu, chrf
    from headwise.model.transformer import Transformer
    from headwise.text.tokenizer import Tokenizer
    from headwise.translator import Translator

    engine = TorchEngine(Transformer.from_arrays(bundle.config.model, bundle.weights))
    translator = Translator(Tokenizer.from_text(bundle.tokenizer), engine, bundle.config.search)
    translations = [found.text for found in translator.translate(lines(f"{name}.en"))]
    references = lines(f"{name}.de")
    tokenised, n_tokens = moses_bleu(translations, references)
    cased, character = bleu(translations, references), chrf(translations, references)
    return {
        "tokenised lower-cased BLEU": round(tokenised, 2),
        "reference tokens": n_tokens,
        "sacreBLEU": [round(cased.value, 2), cased.signature],
        "chrF": [round(character.value, 2), character.signature],
    }


def main(out: Path, val_only: bool) -> None:
    took = learn(out)
    from headwise.train.log import read_log

    there, second, end = (out / name for name in ("there", "second", "end"))
    final = mean(end)
    before = took["a model in each direction"] + took["their translations"]
    found: dict[str, Any] = {
        "minutes": {name: round(value, 2) for name, value in {**took, "in all": sum(took.values())}.items()},
        "val after 30 minutes": score(mean(there, minutes=30), "val"),
        "val after 60 minutes": score(mean(second, minutes=60 - before), "val"),
        **{f"val, {run.name}": score(mean(run), "val") for run in (there, second)},
        "val": score(final, "val"),
    }
    if not val_only:
        found["test 2016"] = score(final, "test_2016_flickr")
        assert found["test 2016"]["reference tokens"] == REFERENCE_TOKENS
        curves = {
            run.name: [
                [e["minutes"], e["step"], e["loss"], e["BLEU"]]
                for e in read_log(run / "log.jsonl")
                if e["event"] == "validation"
            ]
            for run in (there, out / "back", second, end)
        }
        content = {
            "found": found,
            "mark": MARK,
            **machine(),
            "settings": {"all": RECIPE, "first": FIRST, "second": SECOND, "end": END},
            "curves: minutes, step, dev loss, greedy BLEU": curves,
        }
        RESULTS.mkdir(exist_ok=True)
        (RESULTS / "quality_multi30k.json").write_text(json.dumps(content, indent=1) + "\n")
    for name, value in found.items():
        print(f"{name}: {json.dumps(value)}")
    if not val_only:
        print(f"bleu multi30k {found['test 2016']['tokenised lower-cased BLEU']} (the mark is {MARK})")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("runs/quality_multi30k"))
    parser.add_argument("--val", action="store_true", help="leave test 2016 alone, and file nothing")
    arguments = parser.parse_args()
    if not DATA.exists():
        sys.exit(f"this needs Multi30k in {DATA}; set HEADWISE_DATA to the folder that holds multi30k/")
    try:
        import sacremoses  # noqa: F401
    except ModuleNotFoundError:
        sys.exit("this needs sacremoses: pip install sacremoses")
    main(arguments.out, arguments.val)
