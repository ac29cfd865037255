"""A saved model: one folder, read and written here only, as numpy arrays.

config.json          settings and format version
weights.safetensors  float32, float16, or int8 with a float32 scale a row
tokenizer.json       the `tokenizers` library's own form (may be absent)
card.md              what a person should know of the model (may be absent)
manifest.json        size and SHA-256 of each of them
"""

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
import safetensors
import safetensors.numpy

from headwise.architecture import parameters
from headwise.config import RunConfig, check
from headwise.errors import BundleDamaged, BundleError, BundleVersion, ConfigError, NotABundle, ParameterMismatch

FORMAT_VERSION = 1
CONFIG, WEIGHTS, TOKENIZER, CARD, MANIFEST = (
    "config.json",
    "weights.safetensors",
    "tokenizer.json",
    "card.md",
    "manifest.json",
)
SCALE = ".scale"  # added to the name of an int8 matrix

Stored = Literal["float32", "float16", "int8"]
Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True)
class Bundle:
    """A model as data: its settings and its weights, always float32 here whatever they are stored as."""

    config: RunConfig
    weights: Mapping[str, Array] = field(repr=False)
    tokenizer: str | None = field(default=None, repr=False)
    card: str | None = field(default=None, repr=False)
    stored: Stored = "float32"

    def write(self, folder: Path) -> None:
        """Write a new folder, whole or not at all; an existing one is never touched."""
        folder = Path(folder)
        problems = mismatches(self.config, {name: array.shape for name, array in self.weights.items()})
        if problems:
            raise ParameterMismatch("\n".join([f"these weights do not fit the configuration of {folder}:", *problems]))
        texts = {CONFIG: _config_text(self.config), TOKENIZER: self.tokenizer, CARD: self.card}
        contents = {name: text.encode("utf-8") for name, text in texts.items() if text is not None}
        contents[WEIGHTS] = safetensors.numpy.save(_pack(self.weights, self.stored))
        contents[MANIFEST] = _manifest(contents)
        write_folder(folder, contents)

    @classmethod
    def read(cls, folder: Path) -> "Bundle":
        """Read a folder, every file checked against the manifest before anything of it is used."""
        folder = Path(folder)
        contents = _verified(folder)
        config = _read_config(folder, contents[CONFIG])
        try:
            packed = safetensors.numpy.load(contents[WEIGHTS])
        except (safetensors.SafetensorError, KeyError, ValueError) as error:
            raise BundleDamaged(f"{folder / WEIGHTS} cannot be read: {error}") from None
        weights, stored = _unpack(packed)
        problems = mismatches(config, {name: array.shape for name, array in weights.items()})
        if problems:
            raise ParameterMismatch("\n".join([f"{folder / WEIGHTS} does not fit its {CONFIG}:", *problems]))
        texts = {name: contents[name].decode("utf-8") for name in (TOKENIZER, CARD) if name in contents}
        return cls(config, weights, texts.get(TOKENIZER), texts.get(CARD), stored)


def mismatches(config: RunConfig, shapes: Mapping[str, tuple[int, ...]]) -> list[str]:
    """All missing, unexpected and misshapen parameters, a line each."""
    wanted = parameters(config.model)
    lines = [f"missing: {name} {wanted[name]}" for name in wanted if name not in shapes]
    lines += [f"unexpected: {name} {shape}" for name, shape in shapes.items() if name not in wanted]
    lines += [
        f"wrong shape: {name} is {shapes[name]}, not {shape}"
        for name, shape in wanted.items()
        if name in shapes and shapes[name] != shape
    ]
    return lines


def write_folder(folder: Path, contents: Mapping[str, bytes]) -> None:
    """Write files as a new folder: into a temporary one beside it, fsync, rename, fsync of the parent."""
    if folder.is_symlink() or (folder.exists() and not (folder.is_dir() and not any(folder.iterdir()))):
        raise BundleError(f"{folder} exists already and is not an empty folder; choose another name or move it away")
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        temporary = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", suffix=".tmp", dir=folder.parent))
        try:
            for name, data in contents.items():
                with open(temporary / name, "xb") as file:
                    file.write(data)
                    file.flush()
                    os.fsync(file.fileno())
            temporary.chmod(0o777 & ~_umask())
            _sync(temporary)
            temporary.rename(folder)
        except BaseException:
            shutil.rmtree(temporary, ignore_errors=True)
            raise
        _sync(folder.parent)
    except OSError as error:
        raise BundleError(f"cannot write {folder}: {error.strerror or error}; nothing was changed") from error


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _sync(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _pack(weights: Mapping[str, Array], stored: Stored) -> dict[str, Array]:
    """Arrays in the form they are stored in; int8 is symmetric, a scale a row of each matrix."""
    packed: dict[str, Array] = {}
    for name, array in weights.items():
        array = np.ascontiguousarray(array, dtype=np.float32)
        if stored == "float16":
            if np.abs(array).max(initial=0.0) > np.finfo(np.float16).max:
                raise BundleError(f"{name} holds values past the range of float16; store the model as float32")
            packed[name] = array.astype(np.float16)
        elif stored == "int8" and array.ndim == 2:
            scale = np.abs(array).max(axis=1) / np.float32(127)
            packed[name] = np.rint(array / np.where(scale == 0, 1, scale)[:, None]).astype(np.int8)
            packed[name + SCALE] = scale
        else:
            packed[name] = array
    return packed


def _unpack(packed: Mapping[str, Array]) -> tuple[dict[str, Array], Stored]:
    """The arrays as float32, and the form they were stored in."""
    stored: Stored = "float32"
    weights: dict[str, Array] = {}
    for name, array in packed.items():
        if array.dtype == np.int8 and name + SCALE in packed:
            stored = "int8"
            weights[name] = array * packed[name + SCALE][:, None]
        elif name.endswith(SCALE) and name.removesuffix(SCALE) in packed:
            continue
        else:
            stored = "float16" if array.dtype == np.float16 else stored
            weights[name] = array.astype(np.float32, copy=False)
    return weights, stored


def _config_text(config: RunConfig) -> str:
    settings = config.model_dump(mode="json")
    return json.dumps({"format": "headwise", "format_version": FORMAT_VERSION, "settings": settings}, indent=2) + "\n"


def _read_config(folder: Path, data: bytes) -> RunConfig:
    raw = _json(folder / CONFIG, data)
    try:
        return check(RunConfig, raw.get("settings"), where=f"in {folder / CONFIG}")
    except ConfigError as error:
        raise BundleDamaged(str(error)) from None


def _manifest(contents: Mapping[str, bytes]) -> bytes:
    """Size and SHA-256 of each file, and of the manifest's own text, in one canonical spelling."""
    files = {name: {"bytes": len(data), "sha256": _sha256(data)} for name, data in sorted(contents.items())}
    return _canonical({"format": "headwise", "format_version": FORMAT_VERSION, "files": files})


def _canonical(manifest: Mapping[str, Any]) -> bytes:
    manifest = {key: value for key, value in manifest.items() if key != "sha256"}
    return (json.dumps({**manifest, "sha256": _sha256(json.dumps(manifest).encode())}, indent=2) + "\n").encode()


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _json(file: Path, data: bytes) -> dict[str, Any]:
    try:
        raw = json.loads(data)
    except ValueError:
        raw = None
    if not isinstance(raw, dict):
        raise BundleDamaged(f"{file} is damaged: it is not a JSON object")
    return raw


def _verified(folder: Path) -> dict[str, bytes]:
    """The files that the manifest lists, each as long as it says and with its SHA-256."""
    manifest_file = folder / MANIFEST
    if not manifest_file.is_file():
        raise NotABundle(_what_it_is(folder))
    raw = _read_bytes(manifest_file)
    manifest = _json(manifest_file, raw)
    version = manifest.get("format_version")
    if manifest.get("format") != "headwise" or not isinstance(version, int):
        raise NotABundle(f"{folder} is not a model folder of headwise: its {MANIFEST} is of something else")
    if version > FORMAT_VERSION:
        raise BundleVersion(
            f"{folder} was written by a newer headwise (format {version}); this one reads format {FORMAT_VERSION}: "
            "upgrade with pip install --upgrade headwise"
        )
    if version < FORMAT_VERSION:
        raise BundleVersion(
            f"{folder} is in format {version}, older than any that this headwise reads ({FORMAT_VERSION}); "
            "read it with the version that wrote it"
        )
    files = manifest.get("files")
    if raw != _canonical(manifest) or not isinstance(files, dict) or not {CONFIG, WEIGHTS} <= files.keys():
        raise BundleDamaged(f"{manifest_file} is damaged; restore the folder from a copy")

    contents: dict[str, bytes] = {}
    problems: list[str] = []
    for name in files.keys() & {CONFIG, WEIGHTS, TOKENIZER, CARD}:
        file, expected = folder / name, files[name]
        if not file.is_file():
            problems.append(f"{file} is missing")
            continue
        contents[name] = data = _read_bytes(file)
        if len(data) != expected["bytes"]:
            word = "truncated" if len(data) < expected["bytes"] else "longer than it was"
            problems.append(f"{file} is {word}: {len(data)} bytes, not {expected['bytes']}")
        elif _sha256(data) != expected["sha256"]:
            problems.append(f"{file} is damaged: its SHA-256 is not the one in {MANIFEST}")
    if problems:
        raise BundleDamaged("\n".join([*sorted(problems), "restore the folder from a copy"]))
    return contents


def _read_bytes(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise BundleError(f"cannot read {file}: {error.strerror}") from None


def _what_it_is(folder: Path) -> str:
    """Why this is no model folder, as closely as a look at its names can tell."""
    if not folder.exists():
        return f"there is no model folder {folder}"
    if not folder.is_dir():
        return f"{folder} is a file; a model of headwise is a folder"
    try:
        names = {entry.name for entry in folder.iterdir()}
    except OSError as error:
        return f"cannot read {folder}: {error.strerror}"
    if {CONFIG, WEIGHTS} <= names:
        return f"{folder} has no {MANIFEST}, so its files cannot be trusted; restore the folder from a copy"
    for kind, signs in FOREIGN.items():
        if any(Path(name).match(sign) for name in names for sign in signs):
            return f"{folder} is not a model folder of headwise; it looks like {kind}"
    return f"{folder} is not a model folder of headwise: there is no {MANIFEST}"


FOREIGN = {
    "a Hugging Face model": ("pytorch_model*.bin", "model*.safetensors"),
    "a CTranslate2 model": ("model.bin",),
    "a Marian model": ("*.npz", "decoder.yml"),
    "a PyTorch or fairseq checkpoint": ("*.pt", "*.pth"),
    "an ONNX model": ("*.onnx",),
}
