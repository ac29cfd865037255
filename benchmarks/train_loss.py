"""Does what makes training fast cost anything? Dev loss of Multi30k after 1,000 steps of tiny, fast and plain.

python benchmarks/train_loss.py        about 45 minutes

Plain is float32 with torch's own dropout, torch's own cross entropy of all logits and one thread of Python; fast is
headwise as it comes on this machine, bfloat16 where that is native; both at three seeds. Prints `dev-loss <name>
<nats a piece>` and whether the mean of fast lies inside the spread of plain.
"""

import argparse
import json
import os
import statistics
import sys
import tempfile
from pathlib import Path
from typing import Any

from protocol import alternate, report

DATA = Path(os.environ.get("HEADWISE_DATA", Path(__file__).parents[2] / "shared" / "data")) / "multi30k"
STEPS, BATCH_TOKENS = 1000, 2048
PLAIN, FAST = ["plain/1", "plain/2", "plain/3"], ["fast/1", "fast/2", "fast/3"]


def make_plain() -> None:
    """Put torch's own in place of what is fast."""
    from torch.nn import functional as F

    from headwise.model import dropout
    from headwise.train import loop
    from headwise.train.loss import Loss

    def cross_entropy(hidden: Any, weight: Any, bias: Any, target: Any, smoothing: float) -> Loss:
        logits = F.linear(hidden, weight, bias)
        smoothed = F.cross_entropy(logits, target, label_smoothing=smoothing, reduction="sum")
        return Loss(smoothed, F.cross_entropy(logits.detach(), target, reduction="sum"))

    dropout.dropout = F.dropout
    loop.smoothed_cross_entropy = cross_entropy
    loop.how_many = lambda *_: 1


def measure(contestant: str) -> dict[str, list[float]]:
    from headwise.config import load_config
    from headwise.train.run import train

    kind, seed = contestant.split("/")
    if kind == "plain":
        make_plain()
    files = {"train": [{"src": str(DATA / "train.en"), "tgt": str(DATA / "train.de")}],
             "dev": [{"src": str(DATA / "val.en"), "tgt": str(DATA / "val.de")}]}  # fmt: skip
    overrides = [
        f"train.max_steps={STEPS}",
        f"train.validate_every={STEPS}",
        f"train.save_every={STEPS}",
        "train.decode_dev=0",
        "train.warmup_steps=500",
        "train.peak_lr=0.003",
        "model.norm=pre",
        f"data.batch_tokens={BATCH_TOKENS}",
        f"train.seed={seed}",
        f"train.precision={'float32' if kind == 'plain' else 'auto'}",
    ]
    losses: list[float] = []
    with tempfile.TemporaryDirectory() as scratch:
        config = load_config("tiny", flags={"data": files}, overrides=overrides)
        train(config, Path(scratch), tell=lambda e: losses.append(e["loss"]) if e["event"] == "validation" else None)
    return {"nats a piece": losses[-1:]}


def main() -> None:
    found = alternate(__file__, [*PLAIN, *FAST], rounds=1)
    report(__file__, found, {"steps": STEPS, "batch_tokens": BATCH_TOKENS})
    losses = {name: samples["nats a piece"][0] for name, samples in found.items()}
    for name, loss in losses.items():
        print(f"dev-loss {name} {loss:.4f}")
    low, high = min(losses[name] for name in PLAIN), max(losses[name] for name in PLAIN)
    mean = statistics.mean(losses[name] for name in FAST)
    print(f"fast {mean:.4f} is {'inside' if low <= mean <= high else 'OUTSIDE'} plain, {low:.4f} to {high:.4f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--contestant")
    arguments = parser.parse_args()
    if arguments.contestant:
        print(json.dumps(measure(arguments.contestant)))
    elif not DATA.exists():
        sys.exit(f"this needs Multi30k in {DATA}; set HEADWISE_DATA to the folder that holds multi30k/")
    else:
        main()
