"""How well does the tiny shape translate after 30, 60 and 100 minutes on this machine? Multi30k, English to German.

python benchmarks/quality_multi30k.py [--out runs/quality] [--minutes 100] [--val]

From raw text by headwise's own commands, with nothing else running. First a model in each direction, side by side; then
each translates its side of the training text; then the model that is scored learns from the pairs as they are and from
both translations, from scratch. All minutes count. All choices were made on val; test 2016 is translated once, by the
model that the last run leaves, or not at all with --val. BLEU is given twice: of lower-cased, punctuation-normalised,
Moses-tokenised text, as the published 41.02 was measured, and cased sacreBLEU with its signature. Run again, it goes
on.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from protocol import RESULTS, machine

DATA = Path(os.environ.get("HEADWISE_DATA", Path(__file__).parents[2] / "shared" / "data")) / "multi30k"
MARK, REFERENCE_TOKENS = 41.02, 12_103  # Wu et al. 2021, and how long the reference is when measured as they did
MARKS_MINUTES = (30, 60)  # what is there by then is scored on val
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
FIRST = {"data.batch_tokens": 2048, "train.peak_lr": 0.003, "train.max_steps": 5000}  # one thread each
LAST = {"data.batch_tokens": 4096, "train.peak_lr": 0.004, "train.max_steps": 12_000}
Texts = tuple[Path, Path]


def train(out: Path, pairs: list[Texts], dev: Texts, settings: dict[str, Any], *flags: str) -> list[str]:
    files = [part for src, tgt in pairs for part in ("--src", str(src), "--tgt", str(tgt))]
    files += ["--dev-src", str(dev[0]), "--dev-tgt", str(dev[1])]
    sets = [part for name, value in (RECIPE | settings).items() for part in ("--set", f"{name}={value}")]
    return headwise("train", *files, "--out", str(out), "--preset", "tiny", *sets, *flags)


def headwise(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "headwise", *arguments]


def side_by_side(*commands: list[str]) -> None:
    running = [subprocess.Popen(command) for command in commands]
    if any([process.wait() for process in running]):
        sys.exit("a command failed; run again, it goes on")


def minutes_of(run: Path) -> float:
    from headwise.train.log import read_log

    return float([e["minutes"] for e in read_log(run / "log.jsonl") if e["event"] == "end"][-1])


def learn(out: Path, minutes: float) -> float:
    """Train in `out`, in so many minutes at most; how many were gone before the last model began."""
    en, de, dev_en, dev_de = (DATA / name for name in ("train.en", "train.de", "val.en", "val.de"))
    there, back, made_de, made_en, took = (out / name for name in ("there", "back", "made.de", "made.en", "made.txt"))
    one = ("--threads", "1")
    side_by_side(
        train(there, [(en, de)], (dev_en, dev_de), FIRST, *one),
        train(back, [(de, en)], (dev_de, dev_en), FIRST, *one, "--quiet"),
    )
    if not took.exists():
        began = time.monotonic()
        side_by_side(*(
            headwise("translate", "--model", str(model), "--input", str(given), "--output", str(made), "--resume", *one)
            for model, given, made in ((there, en, made_de), (back, de, made_en))
        ))  # fmt: skip
        took.write_text(f"{(time.monotonic() - began) / 60:.2f}\n")
    gone = max(minutes_of(there), minutes_of(back)) + float(took.read_text())
    settings = LAST | {"train.max_minutes": f"{minutes - gone:.2f}"}
    side_by_side(train(out / "last", [(en, de), (en, made_de), (made_en, de)], (dev_en, dev_de), settings))
    return gone


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


def by_then(out: Path, minutes: float) -> Any:
    """The mean of the last checkpoints that were there after so many minutes; None if there were none."""
    from dataclasses import replace

    from headwise.bundle import Bundle
    from headwise.train.average import average
    from headwise.train.log import read_log

    reached = [e["step"] for e in read_log(out / "log.jsonl") if e["event"] == "step" and e["minutes"] <= minutes]
    there = [p for p in sorted((out / "checkpoints").glob("step-*")) if reached and int(p.name[5:]) <= reached[-1]]
    if not there:
        return None
    last = Bundle.read(there[-1])
    return replace(last, weights=average(there[-last.config.train.average_checkpoints :]))


def main(out: Path, minutes: float, val_only: bool) -> None:
    gone = learn(out, minutes)
    from headwise.bundle import Bundle
    from headwise.train.log import read_log

    events = read_log(out / "last" / "log.jsonl")
    end = [e for e in events if e["event"] == "end"][-1]
    final = Bundle.read(out / "last" / "model")
    found: dict[str, Any] = {"minutes": round(gone + end["minutes"], 2), "of these before the last run": round(gone, 2)}
    found |= {"steps": end["step"], "target pieces": end["n_tokens"]}
    for mark in MARKS_MINUTES:
        run, since = (out / "last", mark - gone) if mark > gone + 5 else (out / "there", mark)
        if mark < minutes and (bundle := by_then(run, since)) is not None:
            found[f"val after {mark} minutes"] = score(bundle, "val")
    found["val, the first model"] = score(Bundle.read(out / "there" / "model"), "val")
    found["val"] = score(final, "val")
    if val_only:
        print(json.dumps(found, indent=1))
        return
    found["test 2016"] = score(final, "test_2016_flickr")
    assert found["test 2016"]["reference tokens"] == REFERENCE_TOKENS
    curve = [[e["minutes"], e["step"], e["loss"], e["BLEU"]] for e in events if e["event"] == "validation"]
    content = {
        "found": found,
        "mark": MARK,
        **machine(),
        "settings": final.config.model_dump(exclude={"data": {"train", "dev"}}),
        "curve of the last run: minutes, step, dev loss, greedy BLEU": curve,
    }
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "quality_multi30k.json").write_text(json.dumps(content, indent=1) + "\n")
    for name, value in found.items():
        print(f"{name}: {json.dumps(value)}")
    print(f"bleu multi30k {found['test 2016']['tokenised lower-cased BLEU']} (the mark is {MARK})")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("runs/quality_multi30k"))
    parser.add_argument("--minutes", type=float, default=100)
    parser.add_argument("--val", action="store_true", help="leave test 2016 alone, and file nothing")
    arguments = parser.parse_args()
    if not DATA.exists():
        sys.exit(f"this needs Multi30k in {DATA}; set HEADWISE_DATA to the folder that holds multi30k/")
    try:
        import sacremoses  # noqa: F401
    except ModuleNotFoundError:
        sys.exit("this needs sacremoses: pip install sacremoses")
    main(arguments.out, arguments.minutes, arguments.val)
