"""How fast does headwise translate beside CTranslate2 alone and Hugging Face's generate? Text in, text out.

python benchmarks/translate_speed.py tiny=DIR small=DIR [--rounds 3] [--again greedy-one,beam4-one]

About 15 minutes a model. With --again, these workloads alone are measured, by all and with the models that are named,
which must be the same, in place of what is filed of them: for when what is done there has changed.

Each DIR is a model or run folder, trained, post-norm and with one embedding matrix, so that MarianMTModel can hold the
same weights. All translate test 2016 of Multi30k, greedy and with a beam of 4, in batches and one by one (the first
sentences only), without cache or deduplication; each in a process of its own, alternating. Contestants:

auto, torch           headwise, its engine chosen or named; without scores, as `headwise translate` does it, and as the
                      others are asked
ctranslate2/TYPE      headwise, engine and type of computing named
best                  CTranslate2 at its best: type, workers, threads and size of batches by trial
default/TYPE          CTranslate2 as `ctranslate2.Translator(folder)`
hf                    MarianMTModel.generate, batches of 64, sorted by length for it
hf-in-order           the same, batches of 64 as the sentences come, since it does not sort by itself

Prints sentences a second, milliseconds a sentence (median, 95th percentile), peak memory, seconds from start to first
translation, and lines `ratio beam4-batch tiny auto:best 1.01`.
"""

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import time
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from protocol import RESULTS, alternate, report

DATA = Path(os.environ.get("HEADWISE_DATA", Path(__file__).parents[2] / "shared" / "data")) / "multi30k"
N_SINGLE = 100  # sentences that are translated one by one
WORKLOADS = {"greedy-batch": (1, True), "beam4-batch": (4, True), "greedy-one": (1, False), "beam4-one": (4, False)}


def texts() -> list[str]:
    return (DATA / "test_2016_flickr.en").read_bytes().decode().split("\n")[:-1]


def measure(contestant: str) -> dict[str, list[float]]:
    """Of `name/preset/workload`: seconds a sentence, over all or one by one, and megabytes at the peak."""
    *name, preset, workload = contestant.split("/")
    beam, batched = WORKLOADS[workload]
    translate = CONTESTANTS[name[0]](Path(os.environ["SCRATCH"]) / preset, beam, batched, *name[1:])
    sentences = texts()
    translate(sentences[:20])
    found: dict[str, list[float]] = {}
    if batched:
        began = time.perf_counter()
        outputs = translate(sentences)
        found["seconds a sentence"] = [(time.perf_counter() - began) / len(sentences)]
        references = (DATA / "test_2016_flickr.de").read_bytes().decode().split("\n")[:-1]
        found["BLEU"] = [bleu(outputs, references)]
    else:
        seconds = []
        for sentence in sentences[:N_SINGLE]:
            began = time.perf_counter()
            translate([sentence])
            seconds.append(time.perf_counter() - began)
        found["seconds a sentence"] = seconds
    peak = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())  # getrusage counts the parent too
    found["megabytes at the peak"] = [int(peak[1]) / 1024 if peak else 0.0]
    return found


def bleu(outputs: list[str], references: list[str]) -> float:
    import sacrebleu

    return float(sacrebleu.corpus_bleu(outputs, [references]).score)


def search(beam: int) -> dict[str, Any]:
    return {"beam_size": beam, "length_penalty": "length+eos", "alpha": 1.0, "stop": "finished"}


def headwise(engine: str) -> Any:
    def make(folder: Path, beam: int, batched: bool, kind: str = "auto") -> Any:
        from headwise.loading import load

        translator = load(folder / "model", engine=engine, compute_type=kind, search=search(beam))
        print(translator.why, file=sys.stderr)
        return lambda sentences: [found.text for found in translator.translate(sentences, scores=False)]

    return make


def ctranslate2_with(folder: Path, beam: int, options: dict[str, Any], batch: dict[str, Any]) -> Any:
    """CTranslate2 and the tokenizers library, nothing of headwise."""
    import ctranslate2
    import tokenizers

    tokenizer = tokenizers.Tokenizer.from_file(str(folder / "model" / "tokenizer.json"))
    translator = ctranslate2.Translator(str(folder / "ctranslate2"), device="cpu", **options)

    def translate(sentences: list[str]) -> list[str]:
        sources = [
            [*map(str, encoding.ids), "2"] for encoding in tokenizer.encode_batch(sentences, add_special_tokens=False)
        ]
        found = translator.translate_batch(sources, beam_size=beam, length_penalty=1.0, max_input_length=0, **batch)
        return [tokenizer.decode([int(piece) for piece in result.hypotheses[0]]) for result in found]

    return translate


def best(folder: Path, beam: int, batched: bool) -> Any:
    """As it was found to be fastest."""
    return ctranslate2_with(folder, beam, *json.loads((folder / "best.json").read_text())[f"{beam} {batched}"])


def tune(folder: Path, beam: int, batched: bool) -> tuple[dict[str, Any], dict[str, Any]]:
    """Whatever is fastest of types, workers, threads and sizes of batches, tried on a part of the sentences."""
    import ctranslate2

    cores = len(os.sched_getaffinity(0))
    kinds = [kind for kind in ("float32", "int8", "bfloat16") if kind in ctranslate2.get_supported_compute_types("cpu")]
    layouts = [{"inter_threads": cores, "intra_threads": 1}, {"inter_threads": 1, "intra_threads": cores}]
    if not batched:
        layouts[0] = {"inter_threads": 1, "intra_threads": 1}
    sizes = [{"batch_type": "tokens", "max_batch_size": n} for n in (256, 512, 1024, 2048)] if batched else [{}]
    sentences = texts()
    trials = []
    for kind in kinds:
        for layout in layouts:
            for size in sizes:
                translate = ctranslate2_with(folder, beam, {"compute_type": kind, **layout}, size)
                calls = [sentences[:500]] if batched else [[sentence] for sentence in sentences[:20]]
                for _ in range(3):
                    began = time.perf_counter()
                    for call in calls:
                        translate(call)
                    trials.append((time.perf_counter() - began, kind, layout, size))
    _, kind, layout, size = min(trials, key=lambda trial: trial[0])
    return {"compute_type": kind, **layout}, size


def default(folder: Path, beam: int, batched: bool, kind: str) -> Any:
    return ctranslate2_with(folder, beam, {"compute_type": kind}, {})


def hf(folder: Path, beam: int, batched: bool, by_length: bool = True) -> Any:
    import torch

    from headwise.bundle import Bundle
    from headwise.text.tokenizer import Tokenizer

    bundle = Bundle.read(folder / "model")
    model, tokenizer = marian(bundle), Tokenizer.from_text(bundle.tokenizer or "")

    @torch.inference_mode()
    def translate(sentences: list[str]) -> list[str]:
        sources = tokenizer.encode_source(sentences)
        order = sorted(range(len(sources)), key=lambda i: len(sources[i]) if by_length else i)
        found = [""] * len(sources)
        for begin in range(0, len(order), 64):
            indices = order[begin : begin + 64]
            longest = max(len(sources[i]) for i in indices)
            ids = torch.tensor([[*sources[i], *[0] * (longest - len(sources[i]))] for i in indices])
            generated = model.generate(
                input_ids=ids, attention_mask=(ids != 0).long(), num_beams=beam, do_sample=False, length_penalty=1.0,
                early_stopping=True, max_new_tokens=longest + 50,
            )  # fmt: skip
            for i, row in zip(indices, generated.tolist(), strict=True):
                found[i] = tokenizer.decode(row[1:])
        return found

    return translate


def marian(bundle: Any) -> Any:
    """The same weights in MarianMTModel."""
    import torch
    from transformers import MarianConfig, MarianMTModel

    from headwise.sinusoids import DIALECTS, sinusoids

    c = bundle.config.model
    assert (c.norm, c.share_embeddings) == ("post", "three-way"), "Marian is post-norm with one embedding matrix"
    model = MarianMTModel(
        MarianConfig(
            vocab_size=c.vocab_size, d_model=c.d_model, encoder_layers=c.n_encoder_layers,
            decoder_layers=c.n_decoder_layers, encoder_ffn_dim=c.d_ff, decoder_ffn_dim=c.d_ff,
            encoder_attention_heads=c.n_heads, decoder_attention_heads=c.n_heads, activation_function="relu",
            scale_embedding=True, pad_token_id=0, eos_token_id=2, decoder_start_token_id=1, forced_eos_token_id=None,
        )
    ).eval()  # fmt: skip
    names = {
        "q_proj": "w_q", "k_proj": "w_k", "v_proj": "w_v", "out_proj": "w_o",
        "self_attn": "self_attention", "encoder_attn": "cross_attention", "fc1": "feed_forward.w_1",
        "fc2": "feed_forward.w_2", "self_attn_layer_norm": "residual_self.norm",
        "encoder_attn_layer_norm": "residual_cross.norm", "final_layer_norm": "residual_ff.norm",
    }  # fmt: skip
    state = model.state_dict()
    for name in state:
        ours = ".".join(names.get(part, part) for part in name.removeprefix("model.").split("."))
        if ours in bundle.weights:
            state[name] = torch.tensor(bundle.weights[ours])
        elif name.endswith(("shared.weight", "embed_tokens.weight", "lm_head.weight")):
            state[name] = torch.tensor(bundle.weights["embedding.weight"])
        elif name.endswith("embed_positions.weight"):
            state[name] = torch.tensor(sinusoids(0, len(state[name]), c.d_model, DIALECTS[c.positions]))
    model.load_state_dict(state)
    return model


CONTESTANTS: dict[str, Any] = {
    "auto": headwise("auto"),
    "torch": headwise("torch"),
    "ctranslate2": headwise("ctranslate2"),
    "best": best,
    "default": default,
    "hf": hf,
    "hf-in-order": partial(hf, by_length=False),
}


def first_translation(folder: Path, rounds: int) -> dict[str, list[float]]:
    """Seconds from starting Python to the first translation, and of a script that imports torch."""
    scripts = {
        "headwise": f"import headwise; print(headwise.load({str(folder)!r}).translate('A man.').text)",
        "import torch": "import torch",
    }
    found: dict[str, list[float]] = {name: [] for name in scripts}
    for _ in range(rounds):
        for name, script in scripts.items():
            began = time.perf_counter()
            subprocess.run([sys.executable, "-c", script], check=True, stdout=subprocess.PIPE)
            found[name].append(time.perf_counter() - began)
    return found


def main(models: dict[str, str], rounds: int, again: list[str]) -> None:
    import tempfile

    from headwise.bundle import Bundle, find_model
    from headwise.engine.convert import write_model

    kinds = ("float32", "int8")
    all_names = ["auto", "torch", "best", "hf"]
    all_names += [f"{name}/{kind}" for kind in kinds for name in ("ctranslate2", "default")]
    names = {name: [*all_names, "hf-in-order"] if batched else all_names for name, (_, batched) in WORKLOADS.items()}
    workloads = again or [*WORKLOADS]
    settings: dict[str, Any] = {"rounds": rounds, "sentences": 1000, "one by one": N_SINGLE, "best": {}, "again": []}
    found: dict[str, Any] = {}
    if again:
        filed = json.loads((RESULTS / "translate_speed.json").read_text())
        settings, found = settings | filed["settings"], filed["samples"]
        settings["again"] += [{"models": [*models], "workloads": workloads, "rounds": rounds}]
    with tempfile.TemporaryDirectory() as scratch:
        os.environ["SCRATCH"] = scratch
        os.environ["HEADWISE_HOME"] = str(Path(scratch) / "home")  # what headwise keeps, measured anew
        for preset, model in models.items():
            folder = Path(scratch) / preset
            folder.mkdir()
            (folder / "model").symlink_to(find_model(model).resolve())
            write_model(replace(Bundle.read(folder / "model"), said=()), folder / "ctranslate2")
            if not again:
                settings["best"][preset] = {
                    f"{beam} {many}": tune(folder, beam, many) for beam, many in WORKLOADS.values()
                }
            (folder / "best.json").write_text(json.dumps(settings["best"][preset]))
            contestants = [f"{name}/{preset}/{workload}" for workload in workloads for name in names[workload]]
            found |= alternate(__file__, contestants, rounds)
            if not again:
                for name, seconds in first_translation(folder / "model", 5).items():
                    found[f"first translation, {name}/{preset}"] = {"seconds": seconds}
    report(__file__, found, settings)
    for preset in models:
        for workload in WORKLOADS:
            speed = {}
            for name in names[workload]:
                samples = found[f"{name}/{preset}/{workload}"]
                seconds = samples["seconds a sentence"]
                speed[name] = 1 / statistics.median(seconds)
                told = f"{preset} {workload} {name}: {speed[name]:.0f} sentences a second"
                if workload.endswith("one"):
                    p95 = sorted(seconds)[int(len(seconds) * 0.95)]
                    told += f", {1000 / speed[name]:.1f} ms, p95 {1000 * p95:.1f} ms"
                else:
                    told += f", BLEU {samples['BLEU'][0]:.2f}"
                print(f"{told}, {max(samples['megabytes at the peak']):.0f} MB")
            compared = [("auto", "best"), *(("auto", name) for name in speed if name.startswith("hf")), ("torch", "hf")]
            compared += [(f"ctranslate2/{kind}", f"default/{kind}") for kind in kinds]
            for ours, theirs in compared:
                print(f"ratio {workload} {preset} {ours}:{theirs} {speed[ours] / speed[theirs]:.2f}")
        ours, torch_alone = (
            statistics.median(found[f"first translation, {name}/{preset}"]["seconds"])
            for name in ("headwise", "import torch")
        )
        print(f"ratio first-translation {preset} {ours / torch_alone:.2f} ({ours:.2f} s beside {torch_alone:.2f} s)")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", metavar="NAME=DIR")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--again", type=lambda given: given.split(","), default=[])
    parser.add_argument("--contestant")
    arguments = parser.parse_args()
    if arguments.contestant:
        print(json.dumps(measure(arguments.contestant)))
    elif not DATA.exists():
        sys.exit(f"this needs Multi30k in {DATA}; set HEADWISE_DATA to the folder that holds multi30k/")
    elif not arguments.models:
        sys.exit("name at least one model, such as tiny=runs/tiny")
    else:
        main(dict(model.split("=", 1) for model in arguments.models), arguments.rounds, arguments.again)
