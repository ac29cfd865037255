"""How long does a command take before it says anything, beside `import torch`? And how long does a model take to build?

python benchmarks/startup.py        about a minute; prints `ratio <case> <time over that of import torch>`
"""

import statistics
import subprocess
import sys
from functools import partial
from pathlib import Path

from protocol import report, timed

SCRIPT = str(Path(sys.executable).with_name("headwise"))
BUILD = """
import time, torch
from headwise import Transformer, load_config
config = load_config("{}").model
began = time.perf_counter()
Transformer(config)
print(time.perf_counter() - began)
"""
REFUSE = """
import time
from headwise import HeadwiseError, load_config
load_config("base")
began = time.perf_counter()
try:
    load_config("base", overrides=["model.d_model=1000000000"])
except HeadwiseError:
    print(time.perf_counter() - began)
"""
COMMANDS = {
    "import torch": [sys.executable, "-c", "import torch"],
    "headwise --help": [SCRIPT, "--help"],
    "headwise info base": [SCRIPT, "info", "base"],
    "headwise info base --json": [SCRIPT, "info", "base", "--json"],
    "python -c pass": [sys.executable, "-c", "pass"],
}
ROUNDS = 10


def prints_seconds(script: str) -> float:
    return float(subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True).stdout)


if __name__ == "__main__":
    samples: dict[str, dict[str, list[float]]] = {name: {"seconds": []} for name in COMMANDS}
    for _ in range(ROUNDS):
        for name, command in COMMANDS.items():
            run = partial(subprocess.run, command, check=True, capture_output=True)
            samples[name]["seconds"] += timed(run, repeats=1, warmup=0)
    for preset in ("tiny", "base", "big"):
        samples[f"build {preset}"] = {"seconds": [prints_seconds(BUILD.format(preset)) for _ in range(3)]}
    samples["refuse d_model 10**9"] = {"seconds": [prints_seconds(REFUSE) for _ in range(5)]}
    report(__file__, samples, {"rounds": ROUNDS})
    median = {name: statistics.median(cases["seconds"]) for name, cases in samples.items()}
    for name, seconds in median.items():
        print(f"{name}: {1000 * seconds:.0f} ms" if seconds >= 0.1 else f"{name}: {1000 * seconds:.1f} ms")
    for name in list(COMMANDS)[1:4]:
        print(f"ratio {name.replace(' ', '-')} {median[name] / median['import torch']:.2f}")
