"""How well does the tiny shape translate after 30, 60 and 100 minutes on this machine? Multi30k, English to German.

python benchmarks/quality_multi30k.py [--out runs/quality]

From raw text by `headwise train`, with nothing else running: one run, then from its middle two others side by side, a
core each, that learn from the same text in pieces that are drawn anew; the model is the mean of all three. All choices
were made on val; test 2016 is translated once. BLEU is given twice: of lower-cased, punctuation-normalised,
Moses-tokenised text, as the published 41.02 was measured, and cased sacreBLEU with its signature. Run again, it
goes on.
"""

import argparse
import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from protocol import RESULTS, machine

DATA = Path(os.environ.get("HEADWISE_DATA", Path(__file__).parents[2] / "shared" / "data")) / "multi30k"
MARK, REFERENCE_TOKENS = 41.02, 12_103  # Wu et al. 2021, and how long the reference is when measured as they did
MARKS_MINUTES = (30, 60)  # what is there by then is scored on val
RECIPE = [
    "model.norm=pre",
    "model.share_embeddings=two-way",
    "tokenizer.joint=false",
    "tokenizer.vocab_size=4000",
    "data.batch_tokens=2048",
    "train.schedule=cosine",
    "train.validate_every=1000",
    "train.save_every=250",
    "train.average_checkpoints=5",
    "train.keep_checkpoints=1000",  # so that 30 and 60 minutes can be looked at afterwards
    "search.beam_size=5",
    "search.alpha=1.5",
]
MAIN = ["train.peak_lr=0.003", "train.warmup_steps=1000", "train.max_steps=14000"]
MIDDLE = "step-00008000"  # of it, where the other two begin
CUT_ANEW = ["tokenizer.bpe_dropout=0.1", "tokenizer.n_samples=16"]
END = [*CUT_ANEW, "train.peak_lr=0.0019", "train.warmup_steps=250", "train.max_steps=7000"]
ENDS = {"second": END, "third": [*END, "train.seed=2", "model.attention_dropout=0.1", "model.ff_dropout=0.1"]}


def train(out: Path) -> None:
    """The first run to its end, then the others."""
    wait([start(out / "main", MAIN)])
    middle = f"--init={out / 'main' / 'checkpoints' / MIDDLE}"
    wait([start(out / name, settings, middle, "--threads=1", "--quiet") for name, settings in ENDS.items()])


def start(out: Path, settings: list[str], *options: str) -> "subprocess.Popen[bytes]":
    files = [f"--{flag}={DATA / name}" for flag, name in
             (("src", "train.en"), ("tgt", "train.de"), ("dev-src", "val.en"), ("dev-tgt", "val.de"))]  # fmt: skip
    sets = [part for setting in (*RECIPE, *settings) for part in ("--set", setting)]
    command = [sys.executable, "-m", "headwise", "train", *files, "--out", str(out), "--preset", "tiny", *sets]
    return subprocess.Popen([*command, *options])


def wait(runs: "list[subprocess.Popen[bytes]]") -> None:
    if any([run.wait() for run in runs]):
        sys.exit("training was stopped; run this again to go on")


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


def by_then(run: Path, minutes: float) -> Any:
    """The mean of the last checkpoints that were there after so many minutes."""
    from headwise.bundle import Bundle
    from headwise.train.average import average
    from headwise.train.log import read_log

    reached = [e["step"] for e in read_log(run / "log.jsonl") if e["event"] == "step" and e["minutes"] <= minutes]
    there = [p for p in sorted((run / "checkpoints").glob("step-*")) if int(p.name[5:]) <= reached[-1]]
    last = Bundle.read(there[-1])
    return replace(last, weights=average(there[-last.config.train.average_checkpoints :]))


def main(out: Path) -> None:
    train(out)
    from headwise.bundle import Bundle
    from headwise.train.average import average
    from headwise.train.log import read_log

    runs = [out / name for name in ("main", *ENDS)]
    logs = {run.name: read_log(run / "log.jsonl") for run in runs}
    ends = {name: [e for e in events if e["event"] == "end"][-1] for name, events in logs.items()}
    found: dict[str, Any] = {
        "minutes": round(ends["main"]["minutes"] + max(ends[name]["minutes"] for name in ENDS), 1),
        "of each run": {
            name: {"minutes": end["minutes"], "steps": end["step"], "target pieces": end["n_tokens"]}
            for name, end in ends.items()
        },
    }
    for mark in MARKS_MINUTES:
        found[f"val after {mark} minutes"] = score(by_then(runs[0], mark), "val")
    for run in runs:
        found[f"val, {run.name} alone"] = score(Bundle.read(run / "model"), "val")
    final = replace(Bundle.read(runs[0] / "model"), weights=average([run / "model" for run in runs]))
    found["val"] = score(final, "val")
    found["test 2016"] = score(final, "test_2016_flickr")
    assert found["test 2016"]["reference tokens"] == REFERENCE_TOKENS
    content = {
        "found": found,
        "mark": MARK,
        **machine(),
        "settings": {run.name: load_settings(run) for run in runs},
        "curve: minutes, step, dev loss, greedy BLEU": {
            name: [[e["minutes"], e["step"], e["loss"], e["BLEU"]] for e in events if e["event"] == "validation"]
            for name, events in logs.items()
        },
    }
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "quality_multi30k.json").write_text(json.dumps(content, indent=1) + "\n")
    for name, value in found.items():
        print(f"{name}: {json.dumps(value)}")
    print(f"bleu multi30k {found['test 2016']['tokenised lower-cased BLEU']} (the mark is {MARK})")


def load_settings(run: Path) -> dict[str, Any]:
    from headwise.bundle import Bundle

    return Bundle.read(run / "model").config.model_dump(exclude={"data": {"train", "dev"}, "train": {"init"}})


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("runs/quality_multi30k"))
    arguments = parser.parse_args()
    if not DATA.exists():
        sys.exit(f"this needs Multi30k in {DATA}; set HEADWISE_DATA to the folder that holds multi30k/")
    try:
        import sacremoses  # noqa: F401
    except ModuleNotFoundError:
        sys.exit("this needs sacremoses: pip install sacremoses")
    main(arguments.out)
