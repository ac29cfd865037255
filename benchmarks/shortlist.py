"""Does CTranslate2 get faster when it chooses from a short list of pieces? Multi30k, one trained model.

python benchmarks/shortlist.py DIR [--rounds 3]

DIR is a model or run folder. The list is made from the training text by IBM model 1: the likeliest target pieces of
each source piece, and the commonest of all. CTranslate2 then multiplies with the rows of the output table that are
listed for the sentences of a batch. val is decoded with one thread a worker, in batches and one by one; speed and cased
sacreBLEU with the list and without, and how many translations differ.
"""

import argparse
import itertools
import json
import statistics
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from protocol import RESULTS, machine
from translate_speed import DATA, bleu

EACH, COMMON, ROUNDS_EM = 50, 500, 4  # pieces listed for each source piece, and for all; rounds of learning
SIZES = (256, 1024)  # source pieces a batch
N_SINGLE = 150


def lexicon(sources: list[list[int]], targets: list[list[int]], n_pieces: int) -> dict[int, list[int]]:
    """The likeliest target pieces of each source piece, by IBM model 1."""
    pairs = list(zip(sources, targets, strict=True))
    source = np.concatenate([np.tile(src, len(tgt)) for src, tgt in pairs])
    target = np.concatenate([np.repeat(tgt, len(src)) for src, tgt in pairs])
    widths = np.concatenate([np.full(len(tgt), len(src)) for src, tgt in pairs])
    place = np.repeat(np.arange(len(widths)), widths)  # of which target piece in the corpus an entry speaks
    keys, entry = np.unique(source * n_pieces + target, return_inverse=True)
    likely = np.ones(len(keys))
    for _ in range(ROUNDS_EM):
        share = likely[entry] / np.bincount(place, likely[entry])[place]
        counts = np.bincount(entry, share)
        likely = counts / np.bincount(keys // n_pieces, counts)[keys // n_pieces]
    found: dict[int, list[int]] = {}
    for key in keys[np.lexsort((-likely, keys // n_pieces))].tolist():
        listed = found.setdefault(key // n_pieces, [])
        if len(listed) < EACH:
            listed.append(key % n_pieces)
    return found


def write_list(folder: Path, tokenizer: Any, n_pieces: int) -> float:
    """Beside CTranslate2's model; how many pieces a sentence of val may choose from."""
    texts = {part: (DATA / part).read_bytes().decode().split("\n")[:-1] for part in ("train.en", "train.de", "val.en")}
    sources, targets = tokenizer.encode_source(texts["train.en"]), tokenizer.encode_target(texts["train.de"])
    listed = lexicon(sources, targets, n_pieces)
    common = np.bincount(list(itertools.chain(*targets)), minlength=n_pieces).argsort()[::-1][:COMMON].tolist()
    lines = ["\t" + " ".join(map(str, common))]
    lines += [f"{piece}\t" + " ".join(map(str, others)) for piece, others in listed.items()]
    (folder / "vmap.txt").write_text("\n".join(lines) + "\n")
    sizes = [
        len({*common, *(t for s in src for t in listed.get(s, []))}) for src in tokenizer.encode_source(texts["val.en"])
    ]
    return statistics.mean(sizes)


def compare(
    folder: Path, kind: str, beam: int, names: list[list[str]], tokenizer: Any, references: list[str], rounds: int
) -> dict[str, Any]:
    """Sentences a second, BLEU and how many translations differ, with the list ("short") and without ("all")."""
    import ctranslate2

    several, alone = (
        ctranslate2.Translator(str(folder), compute_type=kind, inter_threads=n, intra_threads=1) for n in (2, 1)
    )
    options: dict[str, Any] = {"beam_size": beam, "length_penalty": 1.0, "max_input_length": 0}
    samples: dict[str, list[float]] = {}
    texts: dict[str, list[str]] = {}
    for _, pieces in itertools.product(range(rounds), ("all", "short")):
        options["use_vmap"] = pieces == "short"
        for size in SIZES:
            began = time.perf_counter()
            results = several.translate_batch(names, batch_type="tokens", max_batch_size=size, **options)
            rate = len(names) / (time.perf_counter() - began)
            samples.setdefault(f"batches of {size}, {pieces}", []).append(rate)
        texts[pieces] = [tokenizer.decode([int(piece) for piece in one.hypotheses[0]]) for one in results]
        for one in names[:N_SINGLE]:
            began = time.perf_counter()
            alone.translate_batch([one], **options)
            samples.setdefault(f"one by one, {pieces}", []).append(1 / (time.perf_counter() - began))
    return {
        "sentences a second": {name: round(statistics.median(each), 1) for name, each in samples.items()},
        "BLEU": {pieces: round(bleu(told, references), 2) for pieces, told in texts.items()},
        "translations that differ": sum(a != b for a, b in zip(*texts.values(), strict=True)),
    }


def main(model: Path, rounds: int) -> None:
    from headwise.bundle import Bundle, find_model
    from headwise.engine.convert import write_model
    from headwise.text.tokenizer import Tokenizer

    bundle = Bundle.read(find_model(model))
    tokenizer = Tokenizer.from_text(bundle.tokenizer or "")
    sources, references = ((DATA / f"val.{side}").read_bytes().decode().split("\n")[:-1] for side in ("en", "de"))
    names = [list(map(str, ids)) for ids in tokenizer.encode_source(sources)]
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "model"
        write_model(replace(bundle, said=()), folder)
        found["pieces a sentence may choose from"] = write_list(folder, tokenizer, bundle.config.model.vocab_size)
        found["pieces"] = bundle.config.model.vocab_size
        for kind, beam in itertools.product(("float32", "int8"), (1, 4)):
            found[f"{kind}, beam {beam}"] = compare(folder, kind, beam, names, tokenizer, references, rounds)
    (RESULTS / "shortlist.json").write_text(json.dumps({"found": found, **machine()}, indent=1) + "\n")
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path, metavar="DIR")
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    if not DATA.exists():
        sys.exit(f"this needs Multi30k in {DATA}; set HEADWISE_DATA to the folder that holds multi30k/")
    main(arguments.model, arguments.rounds)
