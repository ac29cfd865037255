"""How every benchmark measures: contestants in processes of their own, alternating; medians, spread and raw samples."""

import json
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results"
TELL_LIBRARIES = ("OPENBLAS_", "OMP_", "MKL_", "CT2_")  # how variables begin that say how products are made
Samples = dict[str, list[float]]  # case -> what was measured, in the unit that the case names, else seconds


def timed(work: Callable[[], object], repeats: int, warmup: int = 2) -> list[float]:
    """Seconds of each of `repeats` runs, after `warmup` runs that do not count."""
    for _ in range(warmup):
        work()
    samples = []
    for _ in range(repeats):
        began = time.perf_counter()
        work()
        samples.append(time.perf_counter() - began)
    return samples


def alternate(script: str, contestants: Sequence[str], rounds: int) -> dict[str, Samples]:
    """Run `script --contestant NAME` for each in turn, `rounds` times; each prints its samples as JSON."""
    gathered: dict[str, Samples] = {name: {} for name in contestants}
    for _ in range(rounds):
        for name in contestants:
            command = [sys.executable, script, "--contestant", name]
            output = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
            for case, samples in json.loads(output).items():
                gathered[name].setdefault(case, []).extend(samples)
    return gathered


def report(script: str, samples: dict[str, Samples], settings: dict[str, Any]) -> None:
    """Write raw samples, medians and spread, machine and versions to results/<script>.json."""
    medians = {
        name: {
            case: {"median": statistics.median(seconds), "min": min(seconds), "max": max(seconds), "n": len(seconds)}
            for case, seconds in cases.items()
        }
        for name, cases in samples.items()
    }
    content = {"settings": settings, **machine(), "summary": medians, "samples": samples}
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / f"{Path(script).stem}.json").write_text(json.dumps(content, indent=1) + "\n")


def machine() -> dict[str, Any]:
    """What was measured on, and with which versions."""
    return {
        "machine": {
            "cores": len(os.sched_getaffinity(0)),
            "processor": _processor(),
            "python": platform.python_version(),
            "variables": {name: value for name, value in os.environ.items() if name.startswith(TELL_LIBRARIES)},
        },
        "versions": {name: _version(name) for name in ("headwise", "torch", "numpy", "typer", "pydantic")},
    }


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor()


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
