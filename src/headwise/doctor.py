"""What may keep headwise from working well here, and the way out."""

import importlib.metadata
import json
import locale
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

from headwise import __version__
from headwise.errors import HeadwiseError
from headwise.home import own_models
from headwise.machine import INSTRUCTIONS, instructions, processor
from headwise.units import in_bytes

LITTLE = 1_000_000_000  # bytes of memory or disk under which a note is made
LIMITS = ("OMP_NUM_THREADS", "OMP_THREAD_LIMIT", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "RAYON_NUM_THREADS")
HOLD_BACK = ("OPENBLAS_CORETYPE", "MKL_ENABLE_INSTRUCTIONS", "ONEDNN_MAX_CPU_ISA", "ATEN_CPU_CAPABILITY")
MEMINFO = Path("/proc/meminfo")
ASK_TORCH = (
    "import json, torch; cuda = torch.cuda\n"
    "print(json.dumps([cuda.get_device_name(i) for i in range(cuda.device_count())]))"
)


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at."""

    part: str
    name: str
    level: Literal["pass", "note", "problem"]
    found: str
    remedy: str = ""


def examine() -> Iterator[Finding]:
    """Look at everything; nothing is changed and no network is used."""
    yield from _versions()
    yield from _machine()
    yield from _places()
    yield from _extras()
    yield from _models()


def _versions() -> Iterator[Finding]:
    yield Finding("versions", "headwise", "pass", __version__)
    yield Finding("versions", "python", "pass", platform.python_version())
    requirements = _requirements()
    if not requirements:
        way = "pip install it, and what it needs is checked too"
        yield Finding("versions", "libraries", "note", "headwise is not installed, but run from its source", way)
    for requirement in requirements.get("", []):
        yield _library(requirement)
    torch = [requirement for requirement in requirements.get("train", []) if _name(requirement) == "torch"]
    if torch and _version("torch"):
        yield _library(torch[0])


def _library(requirement: str) -> Finding:
    """A library that is asked for, such as `numpy>=2.0`."""
    name, remedy = _name(requirement), f"pip install '{requirement}'"
    version = _version(name)
    if version is None:
        return Finding("versions", name, "problem", "not installed", remedy)
    if not _in_range(requirement):
        return Finding("versions", name, "problem", f"{version} is not {requirement.removeprefix(name)}", remedy)
    return Finding("versions", name, "pass", version)


def _machine() -> Iterator[Finding]:
    has = instructions()
    lacks = [name for name in INSTRUCTIONS if name not in has]
    told = (", ".join(has) or "none known") + (f"; no {', '.join(lacks)}" if has and lacks else "")
    yield Finding("machine", "processor", "pass", processor())
    if has and "avx2" in lacks and platform.machine() == "x86_64":
        yield Finding("machine", "instructions", "note", told, "an old or emulated processor: all will be slow")
    elif held := [name for name in HOLD_BACK if name in os.environ]:
        told = ", ".join([told, *(f"{name}={os.environ[name]}" for name in held)])
        yield Finding(
            "machine", "instructions", "note", told, f"libraries may not use them all; unset {' '.join(held)}"
        )
    else:
        yield Finding("machine", "instructions", "pass", told)
    yield _gpu()
    cores = len(os.sched_getaffinity(0))
    told = f"{cores} of {os.cpu_count()} cores usable"
    if limits := [name for name in LIMITS if name in os.environ]:
        told = ", ".join([told, *(f"{name}={os.environ[name]}" for name in limits)])
        way = f"libraries may take fewer threads; unset {' '.join(limits)} and say --threads instead"
        yield Finding("machine", "threads", "note", told, way)
    else:
        yield Finding("machine", "threads", "pass", told)
    yield _memory()
    yield _encoding()


def _gpu() -> Finding:
    """Asked of torch in a process of its own: it takes seconds to load, and if it is broken, this goes on."""
    if find_spec("torch") is None:
        return Finding("machine", "gpu", "pass", "not used: torch is not installed")
    done = subprocess.run([sys.executable, "-c", ASK_TORCH], capture_output=True, text=True, check=False)
    if done.returncode:
        why = [f"exit code {done.returncode}", *done.stderr.splitlines()][-1]
        remedy = "pip install --force-reinstall torch"
        return Finding("machine", "gpu", "problem", f"torch cannot be imported: {why}", remedy)
    return Finding("machine", "gpu", "pass", ", ".join(json.loads(done.stdout)) or "none that torch can use")


def _memory() -> Finding:
    try:
        lines = dict(line.split(":") for line in MEMINFO.read_text().splitlines())
        total, free = (int(lines[name].split()[0]) * 1024 for name in ("MemTotal", "MemAvailable"))
    except (OSError, LookupError, ValueError):
        return Finding("machine", "memory", "note", "cannot be found out on this system")
    told = f"{in_bytes(free)} of {in_bytes(total)} free"
    if free < LITTLE:
        return Finding(
            "machine", "memory", "note", told, "end other programs, or train with a smaller data.batch_tokens"
        )
    return Finding("machine", "memory", "pass", told)


def _encoding() -> Finding:
    names = {"output": sys.stdout.encoding or "", "locale": locale.getpreferredencoding(False)}
    wrong = [f"{what} is {name}" for what, name in names.items() if name.lower().replace("-", "") != "utf8"]
    if wrong:
        return Finding(
            "machine", "encoding", "problem", ", ".join(wrong), "unset PYTHONIOENCODING; export PYTHONUTF8=1"
        )
    return Finding("machine", "encoding", "pass", "UTF-8")


def _places() -> Iterator[Finding]:
    remedy = "set HEADWISE_HOME to a folder that you may write to"
    yield _place("your models", own_models(), "problem", remedy)
    yield _place("current folder", Path(), "note", "models cannot be trained here; go to another folder")


def _place(name: str, folder: Path, level: Literal["note", "problem"], remedy: str) -> Finding:
    """Whether a file can be written there, or where the folder would be made, and how much room there is."""
    try:
        there = next(place for place in (folder, *folder.absolute().parents) if place.exists())
        with tempfile.TemporaryFile(dir=there):
            free = shutil.disk_usage(there).free
    except OSError as error:
        return Finding("places", name, level, f"{folder} cannot be written to: {error.strerror}", remedy)
    told = f"{folder.absolute()}, {in_bytes(free)} free"
    if free < LITTLE:
        return Finding("places", name, "note", told, "a model and its checkpoints may need more; make room")
    return Finding("places", name, "pass", told)


def _extras() -> Iterator[Finding]:
    for extra, requirements in _requirements().items():
        if not extra:
            continue
        libraries = [_name(requirement) for requirement in requirements]
        missing = [name for name in libraries if _version(name) is None]
        wrong = [requirement for requirement in requirements if not _in_range(requirement)]
        remedy = f"pip install 'headwise[{extra}]'"
        if missing:
            yield Finding("extras", extra, "note", f"not installed: {', '.join(missing)}", remedy)
        elif wrong:
            yield Finding("extras", extra, "problem", f"installed, but not {', '.join(wrong)}", remedy)
        else:
            yield Finding("extras", extra, "pass", ", ".join(f"{name} {_version(name)}" for name in libraries))


def _models() -> Iterator[Finding]:
    try:
        from headwise.models import list_models  # needs libraries that may be broken

        found = list_models()
    except (ImportError, OSError, HeadwiseError) as error:
        yield Finding("models", "all", "problem", f"cannot be looked at: {error}", "mend what is said above")
        return
    if not found:
        yield Finding("models", "none", "note", "there are none yet", "headwise models add DIR")
    for model in found:
        if model.fault:
            ours, theirs = "pip install --force-reinstall headwise", f"headwise models remove {model.name}"
            remedy = ours if model.origin == "box" else f"{theirs}, and add it again"
            yield Finding("models", model.name, "problem", model.fault, remedy)
        else:
            yield Finding("models", model.name, "pass", f"sound; {model.languages}, {in_bytes(model.n_bytes)}")


def _requirements() -> dict[str, list[str]]:
    """What headwise asks for by extra, "" being the core; empty where it is not installed."""
    found: dict[str, list[str]] = {}
    try:
        lines = importlib.metadata.requires("headwise") or []
    except importlib.metadata.PackageNotFoundError:
        return {}
    for line in lines:
        requirement, _, marker = line.partition(";")
        extra = re.search(r"extra == ['\"](.+?)['\"]", marker)
        found.setdefault(extra[1] if extra else "", []).append(requirement.strip())
    return found


def _name(requirement: str) -> str:
    return re.split(r"[^\w.-]", requirement)[0]


def _version(library: str) -> str | None:
    try:
        return importlib.metadata.version(library)
    except importlib.metadata.PackageNotFoundError:
        return None


def _in_range(requirement: str) -> bool:
    """Whether what is installed is what is asked for; taken for granted without the library that can tell."""
    try:
        from packaging.requirements import Requirement
    except ImportError:
        return True
    version = _version(_name(requirement))
    return version is not None and Requirement(requirement).specifier.contains(version, prereleases=True)
