"""Does a sentence get the same translation in any company, from both engines, and without loops?

python benchmarks/translate_same.py DIR [--only company,engines,pieces,loops]        some minutes

DIR is a model or run folder, trained on Multi30k. On test 2016, in float32 and with the beam that both engines speak:

company  sentences decoded alone beside decoded in batches of 64, by each engine
engines  torch beside ctranslate2
pieces   a search among the pieces that targets had in training beside one among all, on val: what differs, and BLEU
loops    1,000 odd inputs (single words, repeated words, question marks, other languages, noise): how many translations
         repeat themselves although their source does not, without the guard and with it

Where two strings differ, both are scored again in float64; a gap of less than 1e-4 is a near-tie. Prints lines `same
torch 999 of 1000, 1 near-ties`, and every difference.
"""

import argparse
import json
import os
import random
import sys
from pathlib import Path
from typing import Any

from protocol import RESULTS, machine

from headwise.engine.contract import in_order

DATA = Path(os.environ.get("HEADWISE_DATA", Path(__file__).parents[2] / "shared" / "data")) / "multi30k"
TIE = 1e-4
SEARCH = {"beam_size": 4, "length_penalty": "length+eos", "alpha": 1.0, "stop": "finished"}


def lines(name: str) -> list[str]:
    return (DATA / name).read_bytes().decode().split("\n")[:-1]


class Judge:
    """The score of a hypothesis in float64."""

    def __init__(self, folder: Path) -> None:
        from headwise.bundle import Bundle
        from headwise.engine.torch import TorchEngine
        from headwise.model.transformer import Transformer

        bundle = Bundle.read(folder)
        self.engine = TorchEngine(Transformer.from_arrays(bundle.config.model, bundle.weights).double(), bundle.said)

    def score(self, source: list[int], ids: tuple[int, ...]) -> float:
        [log_probs] = self.engine.score([source], [[*ids, self.engine.model.config.eos_id]])
        return sum(log_probs) / len(log_probs)


def compare(judge: Judge, tokenizer: Any, sources: list[list[int]], one: list[Any], other: list[Any]) -> dict[str, Any]:
    """How many best hypotheses are the same string; of the others, both strings and the gap between their scores."""
    differences = []
    for source, (a, *_), (b, *_) in zip(sources, one, other, strict=True):
        if (first := tokenizer.decode(a.ids)) != (second := tokenizer.decode(b.ids)):
            gap = abs(judge.score(source, a.ids) - judge.score(source, b.ids))
            differences.append({"one": first, "other": second, "gap": gap})
    near = sum(d["gap"] < TIE for d in differences)
    return {"sentences": len(sources), "same": len(sources) - len(differences), "near-ties": near,
            "differences": differences}  # fmt: skip


def odd_inputs() -> list[str]:
    """A thousand texts that nobody trained on."""
    draw = random.Random(1)
    words = sorted({word for line in lines("val.en") for word in line.split()})
    german = lines("val.de")
    noise = "abcdefghijklmnopqrstuvwxyzäöü ,.!?0123456789#@&*()[]{}<>|/'§€"
    kinds = [
        lambda: draw.choice(words),
        lambda: " ".join([draw.choice(words)] * draw.randint(2, 12)),
        lambda: draw.choice("?!.-,") * draw.randint(1, 12),
        lambda: draw.choice(german),
        lambda: "".join(draw.choices(noise, k=draw.randint(1, 60))),
        lambda: " ".join(draw.choices(words, k=draw.randint(2, 25))),
        lambda: draw.choice(words).upper() + "!!" * draw.randint(0, 3),
        lambda: "".join(chr(draw.choice([draw.randint(0x400, 0x44F), draw.randint(0x4E00, 0x4FFF),
                                         draw.randint(0x1F600, 0x1F640)])) for _ in range(draw.randint(1, 20))),
        lambda: str(draw.randint(0, 10**9)),
        lambda: " ".join(reversed(draw.choice(german).split()[:4])),
    ]  # fmt: skip
    return [kinds[i % len(kinds)]() for i in range(1000)]


def company(folder: Path, judge: Judge) -> dict[str, Any]:
    found = {}
    for name in ("torch", "ctranslate2"):
        engine, tokenizer, search = opened(folder, name)
        sources = tokenizer.encode_source(lines("test_2016_flickr.en"))
        alone = [in_order(engine.generate([source], search))[0] for source in sources]
        together = []
        for begin in range(0, len(sources), 64):
            together += in_order(engine.generate(sources[begin : begin + 64], search))
        found[name] = compare(judge, tokenizer, sources, alone, together)
        print(f"same {name} {told(found[name])}")
    return found


def engines(folder: Path, judge: Judge) -> dict[str, Any]:
    results = []
    for name in ("torch", "ctranslate2"):
        engine, tokenizer, search = opened(folder, name)
        sources = tokenizer.encode_source(lines("test_2016_flickr.en"))
        results.append(in_order(engine.generate(sources, search)))
    found = compare(judge, tokenizer, sources, *results)
    gaps = [abs(a.score - b.score) for (a, *_), (b, *_) in zip(*results, strict=True) if a.ids == b.ids]
    found["largest difference of scores"] = max(gaps)
    print(f"engines {told(found)}; scores of the same differ by at most {max(gaps):.1e}")
    return found


def pieces(folder: Path) -> dict[str, Any]:
    import sacrebleu

    from headwise.engine.torch import TorchEngine

    found = {}
    engine, tokenizer, search = opened(folder, "torch")
    sources = tokenizer.encode_source(lines("val.en"))
    for name, beam in (("greedy", 1), ("beam 4", 4)):
        wanted = search.model_copy(update={"beam_size": beam})
        said, every = (
            [tokenizer.decode(best.ids) for best, *_ in in_order(one.generate(sources, wanted))]
            for one in (engine, TorchEngine(engine.model))
        )
        scores = {
            which: round(sacrebleu.corpus_bleu(texts, [lines("val.de")]).score, 2)
            for which, texts in (("said", said), ("all", every))
        }
        same = sum(a == b for a, b in zip(said, every, strict=True))
        found[name] = {"pieces": len(engine.said), "same": same, "sentences": len(sources), "BLEU": scores}
        print(f"pieces {name}: {json.dumps(found[name])}")
    return found


def loop_hunt(folder: Path) -> dict[str, Any]:
    from headwise.loading import load
    from headwise.text.loops import loops, repeats

    texts, found = odd_inputs(), {}
    for name, search in (("greedy", {**SEARCH, "beam_size": 1}), ("beam 4", SEARCH)):
        translator = load(folder, engine="ctranslate2", compute_type="float32", search=search)
        sources = translator.tokenizer.encode_source(texts)
        bare = [
            translator.tokenizer.decode(h.ids)
            for h, *_ in in_order(translator.engine.generate(sources, translator.search))
        ]
        guarded = translator.translate(texts)
        mended = [one.loop for one in guarded if one.loop]
        found[name] = {
            "before": sum(map(loops, bare, texts)),
            "after": sum(loops(one.text, one.source) for one in guarded),
            "as their source does, before": sum(map(repeats, bare)) - sum(map(loops, bare, texts)),
            "mended": {way: mended.count(way) for way in ("alternative", "again", "cut")},
        }
        print(f"loops {name}: {json.dumps(found[name])}")
    return found


def opened(folder: Path, name: str) -> tuple[Any, Any, Any]:
    from headwise.loading import load

    translator = load(folder, engine=name, compute_type="float32", search=SEARCH)
    return translator.engine, translator.tokenizer, translator.search


def told(found: dict[str, Any]) -> str:
    return f"{found['same']} of {found['sentences']}, {found['near-ties']} near-ties"


def main(folder: Path, only: list[str]) -> None:
    from headwise.bundle import find_model

    folder = find_model(folder)
    judge = Judge(folder)
    found = {}
    if "company" in only:
        found["company"] = company(folder, judge)
    if "engines" in only:
        found["engines"] = engines(folder, judge)
    if "pieces" in only:
        found["pieces"] = pieces(folder)
    if "loops" in only:
        found["loops"] = loop_hunt(folder)
    for part in (*found.get("company", {}).values(), found.get("engines", {})):
        for difference in part.get("differences", []):
            print(f"{difference['gap']:.1e}\n  {difference['one']}\n  {difference['other']}")
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "translate_same.json").write_text(
        json.dumps({**machine(), **found}, indent=1, ensure_ascii=False) + "\n"
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("--only", default="company,engines,pieces,loops")
    arguments = parser.parse_args()
    if not DATA.exists():
        sys.exit(f"this needs Multi30k in {DATA}; set HEADWISE_DATA to the folder that holds multi30k/")
    main(arguments.model, arguments.only.split(","))
