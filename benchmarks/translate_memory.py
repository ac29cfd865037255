"""Does memory grow with the file that is translated? Peak of `headwise translate` by the model in the box.

python benchmarks/translate_memory.py    about 5 minutes; prints `peak <lines> <MB>`; needs tatoeba in $HEADWISE_DATA
"""

import argparse
import itertools
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from protocol import alternate, report

DATA = Path(os.environ.get("HEADWISE_DATA", Path(__file__).parents[2] / "shared" / "data")) / "tatoeba"
# lines of a sentence each; and lines of a megabyte each
FILES = {"10000": (10_000, 1), "100000": (100_000, 1), "1 of 1 MB": (1, 2**20), "3 of 1 MB": (3, 2**20)}


def write(file: Path, n_lines: int, at_least: int) -> None:
    """English sentences, over and over; as many on a line as make `at_least` characters."""
    with open(DATA / "train.en-de.tsv", encoding="utf-8", newline="\n") as pairs:
        sentences = list(dict.fromkeys(pair.split("\t", 1)[0] for pair in pairs))
    endless = itertools.cycle(sentences)
    with open(file, "w", encoding="utf-8") as lines:
        for _ in range(n_lines):
            line = next(endless)
            while len(line) < at_least:
                line += " " + " ".join(itertools.islice(endless, 1000))
            lines.write(line + "\n")


def measure(name: str) -> dict[str, list[float]]:
    n_lines, at_least = FILES[name]
    with tempfile.TemporaryDirectory() as scratch:
        given, made = Path(scratch) / "in.txt", Path(scratch) / "out.txt"
        write(given, n_lines, at_least)
        command = [sys.executable, "-m", "headwise", "translate", "--input", str(given), "--output", str(made)]
        began, peak = time.perf_counter(), 0.0
        with subprocess.Popen(command) as process:
            while process.poll() is None:
                status = Path(f"/proc/{process.pid}/status").read_text()
                found = re.search(r"VmHWM:\s+(\d+) kB", status)
                peak = max(peak, int(found[1]) / 1024 if found else 0.0)
                time.sleep(0.1)
        assert process.returncode == 0
        assert made.read_bytes().count(b"\n") == n_lines
        return {
            "peak MB": [peak],
            "megabytes of text": [given.stat().st_size / 1e6],
            "s": [time.perf_counter() - began],
        }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--contestant")
    if contestant := parser.parse_args().contestant:
        print(json.dumps(measure(contestant)))
    else:
        samples = alternate(__file__, list(FILES), rounds=1)
        report(__file__, samples, {"model": "en-de of the box"})
        for name, found in samples.items():
            print(f"peak {name} {found['peak MB'][0]:.0f}")
