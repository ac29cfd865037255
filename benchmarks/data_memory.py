"""Does memory grow with the corpus? Peak anonymous memory of checking, learning pieces, preparing and batching.

python benchmarks/data_memory.py        about 8 minutes; prints `anonymous <pairs> <MB>` and `growth <MB>`
"""

import argparse
import json
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
from protocol import alternate, report

SIZES = {"100000": 100_000, "2000000": 2_000_000}
BATCH_TOKENS = 4096


def synthetic(folder: Path, n_pairs: int) -> tuple[Path, Path]:
    """Sentences of 4 to 30 words out of 50,000, drawn by Zipf's law; the target is the source, spelt backwards."""
    random = np.random.default_rng(1)
    letters = np.array(list("abcdefghijklmnopqrstuvwxyz"))
    words = ["".join(random.choice(letters, random.integers(2, 11))) for _ in range(50_000)]
    shares = 1 / np.arange(1, len(words) + 1)
    files = folder / "train.src", folder / "train.tgt"
    with open(files[0], "w") as src, open(files[1], "w") as tgt:
        for _ in range(n_pairs // 10_000):
            lengths = random.integers(4, 31, 10_000)
            drawn = iter(random.choice(len(words), lengths.sum(), p=shares / shares.sum()).tolist())
            for n in lengths.tolist():
                line = " ".join(words[next(drawn)] for _ in range(n))
                src.write(line + "\n")
                tgt.write(line[::-1] + "\n")
    return files


class Watch(threading.Thread):
    """The largest RssAnon of this process, looked at a hundred times a second."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.peak_mb, self.running = 0.0, True

    def run(self) -> None:
        while self.running:
            for line in Path("/proc/self/status").read_text().splitlines():
                if line.startswith("RssAnon"):
                    self.peak_mb = max(self.peak_mb, int(line.split()[1]) / 1024)
            time.sleep(0.01)


def measure(n_pairs: int) -> dict[str, list[float]]:
    from headwise.config import TokenizerConfig
    from headwise.data.batches import Batches, Position
    from headwise.data.check import check_corpora
    from headwise.data.corpus import Corpus, spread
    from headwise.data.prepared import prepare
    from headwise.text.tokenizer import Tokenizer

    with tempfile.TemporaryDirectory() as scratch:
        corpus = Corpus(*synthetic(Path(scratch), n_pairs))
        watch, seconds = Watch(), {}
        watch.start()

        def lap(name: str, began: float) -> float:
            seconds[f"{name}, MB so far"], seconds[f"{name}, s"] = [watch.peak_mb], [time.perf_counter() - began]
            return time.perf_counter()

        began = time.perf_counter()
        found = check_corpora([corpus])
        began = lap("check", began)
        lines = [spread([corpus], found.n_train, at_most=1_000_000) for _ in range(2)]
        source, target = (src for src, _ in lines[0]), (tgt for _, tgt in lines[1])
        tokenizer = Tokenizer.learn(source, target, TokenizerConfig(), found.n_train)
        began = lap("learn pieces", began)
        batches = Batches(prepare([corpus], tokenizer, Path(scratch) / "data"), BATCH_TOKENS, seed=1)
        began = lap("prepare", began)
        for batch in batches.after(Position()):
            if batch.position.batch == 2000 or batch.position.epoch == 1:
                break
        lap("batches", began)
        watch.running = False
        return {"peak MB": [watch.peak_mb], **seconds}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--contestant")
    if contestant := parser.parse_args().contestant:
        print(json.dumps(measure(SIZES[contestant])))
    else:
        measured = alternate(__file__, list(SIZES), rounds=1)
        report(__file__, measured, {"sizes": SIZES, "batch_tokens": BATCH_TOKENS})
        for size in SIZES:
            print(f"anonymous {size} {measured[size]['peak MB'][0]:.0f}")
        peaks = [measured[size]["peak MB"][0] for size in SIZES]
        print(f"growth {peaks[1] - peaks[0]:.0f}")
