"""How well does the tiny shape translate after 30, 60 and 100 minutes on this machine? Multi30k, English to German.

python benchmarks/quality_multi30k.py [--out runs/quality] [--minutes 100] [--set A.B=C ...]

From raw text by `headwise train --preset tiny`, with nothing else running: the published recipe as it is. Test 2016 is
translated once, by the model that the run leaves. BLEU is given twice: of lower-cased, punctuation-normalised,
Moses-tokenised text, as the published 41.02 was measured, and cased sacreBLEU with its signature. Run again, it goes
on.
"""

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from protocol import RESULTS, machine

DATA = Path(os.environ.get("HEADWISE_DATA", Path(__file__).parents[2] / "shared" / "data")) / "multi30k"
MARK, REFERENCE_TOKENS = 41.02, 12_103  # Wu et al. 2021, and how long the reference is when measured as they did
MARKS_MINUTES = (30, 60)  # what is there by then is scored on val
RECIPE = [  # beside the preset, which is the published recipe
    "train.keep_checkpoints=1000",  # so that 30 and 60 minutes can be looked at afterwards
    "search.beam_size=5",
]


def train(out: Path, minutes: float, changes: list[str]) -> None:
    files = [f"--{flag}={DATA / name}" for flag, name in
             (("src", "train.en"), ("tgt", "train.de"), ("dev-src", "val.en"), ("dev-tgt", "val.de"))]  # fmt: skip
    settings = [*RECIPE, f"train.max_minutes={minutes:g}", *changes]
    sets = [part for setting in settings for part in ("--set", setting)]
    command = [sys.executable, "-m", "headwise", "train", *files, "--out", str(out), "--preset", "tiny", *sets]
    subprocess.run(command, check=True)


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

    engine = TorchEngine(Transformer.from_arrays(bundle.config.model, bundle.weights), bundle.said)
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


def main(out: Path, minutes: float, changes: list[str]) -> None:
    train(out, minutes, changes)
    from headwise.bundle import Bundle
    from headwise.train.log import read_log

    events = read_log(out / "log.jsonl")
    end = [e for e in events if e["event"] == "end"][-1]
    final = Bundle.read(out / "model")
    found: dict[str, Any] = {"minutes": end["minutes"], "steps": end["step"], "target pieces": end["n_tokens"]}
    for mark in MARKS_MINUTES:
        if mark < minutes and (bundle := by_then(out, mark)) is not None:
            found[f"val after {mark} minutes"] = score(bundle, "val")
    found["val"] = score(final, "val")
    found["test 2016"] = score(final, "test_2016_flickr")
    assert found["test 2016"]["reference tokens"] == REFERENCE_TOKENS
    curve = [[e["minutes"], e["step"], e["loss"], e["BLEU"]] for e in events if e["event"] == "validation"]
    content = {
        "found": found,
        "mark": MARK,
        **machine(),
        "settings": final.config.model_dump(exclude={"data": {"train", "dev"}}),
        "curve: minutes, step, dev loss, greedy BLEU": curve,
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
    parser.add_argument("--set", dest="changes", action="append", default=[], metavar="A.B=C")
    arguments = parser.parse_args()
    if not DATA.exists():
        sys.exit(f"this needs Multi30k in {DATA}; set HEADWISE_DATA to the folder that holds multi30k/")
    try:
        import sacremoses  # noqa: F401
    except ModuleNotFoundError:
        sys.exit("this needs sacremoses: pip install sacremoses")
    main(arguments.out, arguments.minutes, arguments.changes)
