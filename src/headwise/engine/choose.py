"""Which engine: the one asked for, or the fastest installed one that can do it, as measured once for each model."""

import atexit
import json
import logging
import shutil
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass, replace
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

import numpy as np

from headwise.atomic import write_text
from headwise.bundle import Bundle, identity
from headwise.config import RunConfig, SearchConfig
from headwise.engine.convert import largest_int8, write_model
from headwise.engine.ctranslate2 import TYPES, ComputeType, CTranslate2Engine, unsupported
from headwise.errors import FolderError, InputError, MissingExtra
from headwise.home import converted
from headwise.machine import processor

if TYPE_CHECKING:
    from headwise.engine.torch import TorchEngine

EngineName = Literal["auto", "torch", "ctranslate2"]
N_PROBES, PROBE_PIECES = 48, 14  # sentences that are decoded to measure with, and their length
ROUNDS, ENOUGH = 3, 1.0  # how often, unless so many seconds have gone
LOADING = 1.25  # torch takes seconds to load, so it has to be ahead by this much


@dataclass(frozen=True)
class Opened:
    """An engine, and for a curious user which one it is and why."""

    engine: "CTranslate2Engine | TorchEngine"
    why: str


def open_engine(
    folder: Path, bundle: Bundle, search: SearchConfig, threads: int, name: EngineName = "auto", kind: str = "auto"
) -> Opened:
    """The engine of a model folder that was read as `bundle`; `kind` is CTranslate2's type of computing."""
    if name == "torch":
        return Opened(_torch(bundle, threads), "torch: asked for")
    if reasons := unsupported(bundle.config.model, search):
        why = f"ctranslate2 has no {', '.join(reasons)}"
        if name == "ctranslate2":
            raise InputError(f"{why}; use --engine torch")
        return Opened(_torch(bundle, threads), f"torch: {why}")
    if kind != "auto":
        return Opened(_ctranslate2(folder, bundle, cast(ComputeType, kind), threads), f"ctranslate2 {kind}: asked for")
    seconds = _measured(folder, bundle, search, threads)
    if name == "ctranslate2":
        seconds = {one: took for one, took in seconds.items() if one != "torch"}
    best = min(seconds, key=lambda one: seconds[one] * (LOADING if one == "torch" else 1))
    why = f"{best}: " + ", ".join(f"{one} {took:.3f} s" for one, took in sorted(seconds.items(), key=lambda x: x[1]))
    if best == "torch":
        return Opened(_torch(bundle, threads), why)
    return Opened(_ctranslate2(folder, bundle, cast(ComputeType, best.split()[1]), threads), why)


def _torch(bundle: Bundle, threads: int) -> "TorchEngine":
    if not has_torch():
        raise MissingExtra("torch", extra="train")
    from headwise.engine.torch import TorchEngine

    return TorchEngine.of(bundle, threads)


def has_torch() -> bool:
    """Whether torch is installed; it is not imported."""
    return sys.modules.get("torch", find_spec) is not None and find_spec("torch") is not None


def _ctranslate2(folder: Path, bundle: Bundle, kind: ComputeType, threads: int) -> CTranslate2Engine:
    largest = largest_int8() if kind == "int8" else None

    def whole() -> Path:  # read anew, since it is seldom needed and the weights would be kept for it
        return _written(replace(Bundle.read(folder), said=()), folder, largest)

    written = _written(bundle, folder, largest)
    return CTranslate2Engine(written, bundle.config.model, kind, threads, bundle.said, whole)


def _cache(folder: Path) -> Path:
    """Where what is made from a model folder is kept, beside the user's models."""
    return converted() / f"{identity(folder)}-{version('ctranslate2')}"


def _written(bundle: Bundle, folder: Path, largest: int | None) -> Path:
    """Where the model lies in CTranslate2's form, written there on first use if possible."""
    place = _cache(folder) / (("said-" if bundle.said else "") + ("float32" if largest is None else f"int8-{largest}"))
    if not (place / "model.bin").is_file():
        try:
            write_model(bundle, place, largest)
        except FolderError:
            if (place / "model.bin").is_file():  # another process was faster
                return place
            scratch = tempfile.mkdtemp(prefix="headwise-")
            atexit.register(shutil.rmtree, scratch, ignore_errors=True)
            place = Path(scratch) / "model"
            write_model(bundle, place, largest)
    return place


def _measured(folder: Path, bundle: Bundle, search: SearchConfig, threads: int) -> dict[str, float]:
    """Seconds that each way of computing takes for the same sentences; asked of the file where that was kept."""
    key = f"{processor()}, {threads} threads, beam {search.beam_size}"
    file = _cache(folder) / "seconds.json"
    known: dict[str, dict[str, float]] = {}
    with suppress(OSError, ValueError):
        known = json.loads(file.read_text())
    if key not in known:
        known[key] = _measure(folder, bundle, search, threads)
        with suppress(FolderError):
            write_text(file, json.dumps(known, indent=1) + "\n")
    return known[key]


def _measure(folder: Path, bundle: Bundle, search: SearchConfig, threads: int) -> dict[str, float]:
    logging.getLogger("headwise").info("finding out which engine is the fastest here, once for this model ...")
    found = {}
    for kind in TYPES:
        engine = _ctranslate2(folder, bundle, kind, threads)
        found[f"ctranslate2 {kind}"] = seconds(engine, bundle.config, search.beam_size)
    if has_torch():  # in a process of its own: where both libraries are loaded, they hinder each other
        script = f"from headwise.engine.choose import tell; tell({str(folder)!r}, {threads}, {search.beam_size})"
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
        if done.returncode == 0:
            found["torch"] = float(done.stdout)
    return found


def tell(folder: str, threads: int, beam_size: int) -> None:
    """Print the seconds that torch takes."""
    bundle = Bundle.read(folder)
    print(seconds(_torch(bundle, threads), bundle.config, beam_size))


def seconds(engine: Any, config: RunConfig, beam_size: int) -> float:
    """How long an engine takes for some sentences of random pieces, all equally long; the best of a few times."""
    random = np.random.default_rng(1)
    pieces = random.integers(4, config.model.src_vocab_size, (N_PROBES, PROBE_PIECES)).tolist()
    sources = [[*ids, config.model.eos_id] for ids in pieces]
    search = SearchConfig(beam_size=beam_size, length_penalty="length+eos", alpha=1.0, stop="finished", extra_pieces=1)
    took: list[float] = []
    while len(took) < ROUNDS and sum(took) < ENOUGH:
        began = time.perf_counter()
        dict(engine.generate(sources, search))
        took.append(time.perf_counter() - began)
    return min(took)
