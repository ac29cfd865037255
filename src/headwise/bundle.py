"""A saved model: one folder, read and written here only, as numpy arrays.

config.json          settings and format version; which pieces are said, if that is known
weights.safetensors  float32, float16, or int8 with a float32 scale a row
tokenizer.json       the `tokenizers` library's own form (may be absent)
card.md              what a person should know of the model (may be absent)
manifest.json        size and SHA-256 of each of them
"""

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
import safetensors
import safetensors.numpy
from pydantic import BaseModel, ConfigDict, ValidationError

from headwise.architecture import Shape, parameters
from headwise.atomic import new_folder
from headwise.config import ModelConfig, RunConfig, check, hint
from headwise.errors import (
    BundleDamaged,
    BundleError,
    BundleVersion,
    ConfigError,
    InputError,
    NotABundle,
    ParameterMismatch,
)
from headwise.home import box_model, named_models
from headwise.text.special import UNK_ID

FORMAT, FORMAT_VERSION = "headwise", 1
CONFIG, WEIGHTS, TOKENIZER = "config.json", "weights.safetensors", "tokenizer.json"
CARD, MANIFEST = "card.md", "manifest.json"
SCALE = ".scale"  # added to the name of an int8 matrix
FOREIGN = {
    "a Hugging Face model": ("pytorch_model*.bin", "model*.safetensors"),
    "a CTranslate2 model": ("model.bin",),
    "a Marian model": ("*.npz", "decoder.yml"),
    "a PyTorch or fairseq checkpoint": ("*.pt", "*.pth"),
    "an ONNX model": ("*.onnx",),
}

Stored = Literal["float32", "float16", "int8"]
Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True)
class Bundle:
    """A model as data: its settings and its weights, which are float32 here whatever they are stored as."""

    config: RunConfig
    weights: Mapping[str, Array] = field(repr=False)
    tokenizer: str | None = field(default=None, repr=False)
    card: str | None = field(default=None, repr=False)
    stored: Stored = "float32"
    #: the pieces among which a search chooses, ascending, those without text included: what targets had in training;
    #: none stands for all
    said: tuple[int, ...] = field(default=(), repr=False)

    def write(self, folder: Path | str, more: Mapping[str, bytes] | None = None) -> None:
        """Write a new folder, whole or not at all; an existing one is never touched.

        `more` are files that are no part of the model, by their names in the folder.
        """
        folder = Path(folder)
        problems = mismatches(self.config, self.weights)
        if problems:
            raise ParameterMismatch("\n".join([f"these weights do not fit the configuration of {folder}:", *problems]))
        texts = {CONFIG: _config_text(self.config, self.said), TOKENIZER: self.tokenizer, CARD: self.card}
        contents = {name: text.encode("utf-8") for name, text in texts.items() if text is not None}
        contents[WEIGHTS] = safetensors.numpy.save(_pack(self.weights, self.stored))
        contents[MANIFEST] = _manifest(contents)
        with new_folder(folder) as unfinished:
            for name, data in {**contents, **(more or {})}.items():
                (unfinished / name).parent.mkdir(exist_ok=True)
                (unfinished / name).write_bytes(data)

    @classmethod
    def read(cls, folder: Path | str) -> "Bundle":
        """Read a folder, every file checked against the manifest before anything of it is used."""
        return cls._of(Path(folder), _verified(Path(folder)))

    @classmethod
    def copy(cls, folder: Path | str, to: Path | str) -> None:
        """Read a folder and write its files, byte for byte and no others, to a new one, whole or not at all."""
        contents = _verified(Path(folder))
        cls._of(Path(folder), contents)  # refuses what does not fit together
        with new_folder(Path(to)) as unfinished:
            for name, data in contents.items():
                (unfinished / name).write_bytes(data)

    @classmethod
    def _of(cls, folder: Path, contents: Mapping[str, bytes]) -> "Bundle":
        try:
            raw = _json(folder / CONFIG, contents[CONFIG])
            config = check(RunConfig, raw.get("settings"), where=f"in {folder / CONFIG}")
            said = _unfolded(raw.get("said"), config.model)
            weights, stored = _unpack(safetensors.numpy.load(contents[WEIGHTS]))
            texts = {name: contents[name].decode("utf-8") for name in (TOKENIZER, CARD) if name in contents}
        except ConfigError as error:
            raise BundleDamaged(str(error)) from None
        except (safetensors.SafetensorError, KeyError, ValueError) as error:
            raise BundleDamaged(f"{folder} cannot be read: {error}") from None
        problems = mismatches(config, weights)
        if problems:
            raise ParameterMismatch("\n".join([f"{folder / WEIGHTS} does not fit its {CONFIG}:", *problems]))
        return cls(config, weights, texts.get(TOKENIZER), texts.get(CARD), stored, said)


def find_model(path: Path | str | None) -> Path:
    """The model folder at `path`: itself, or of a run its model, or its newest checkpoint while it has none.

    A name without a folder here is that of a model in `$HEADWISE_HOME/models` or in the box; no name at all stands for
    the one in the box.
    """
    if path is None and not box_model().is_dir():
        raise InputError("name a model with --model DIR; headwise models list shows those that have a name")
    path = box_model() if path is None else Path(path)
    if len(path.parts) == 1 and not path.exists():
        path = named_model(path.name)
    if (path / MANIFEST).is_file() or not (path / "run.toml").is_file():
        return path
    if (path / "model" / MANIFEST).is_file():
        return path / "model"
    checkpoints = sorted(path.glob(f"checkpoints/step-*/{MANIFEST}"))
    if not checkpoints:
        raise NotABundle(f"the run in {path} has no checkpoint yet; go on with: headwise train --out {path}")
    return checkpoints[-1].parent


def named_model(name: str) -> Path:
    """The folder of the model that has this name."""
    known = named_models()
    if name not in known:
        way = hint(name, list(known)) or "; headwise models list shows those that have a name"
        raise NotABundle(f"there is no model {name!r}{way}")
    return known[name]


def identity(folder: Path) -> str:
    """What tells the model in this folder from any other."""
    return _sha256((folder / MANIFEST).read_bytes())[:32]


def mismatches(config: RunConfig, weights: Mapping[str, Array]) -> list[str]:
    """All missing, unexpected and misshapen parameters, a line each."""
    wanted: Mapping[str, Shape] = parameters(config.model)
    lines = [f"missing: {name} {shape}" for name, shape in wanted.items() if name not in weights]
    lines += [f"unexpected: {name} {array.shape}" for name, array in weights.items() if name not in wanted]
    lines += [
        f"wrong shape: {name} is {weights[name].shape}, not {shape}"
        for name, shape in wanted.items()
        if name in weights and weights[name].shape != shape
    ]
    return lines


def _pack(weights: Mapping[str, Array], stored: Stored) -> dict[str, Array]:
    """Arrays in the form they are stored in; int8 is symmetric, with a scale for each row of a matrix."""
    packed: dict[str, Array] = {}
    for name, given in weights.items():
        array = np.ascontiguousarray(given, dtype=np.float32)
        if not np.isfinite(array).all():
            raise BundleError(f"{name} holds NaN or Inf; such a model is not written")
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
    """The arrays as float32, and the form they were stored in; ValueError names an array that has none of the forms."""
    weights: dict[str, Array] = {}
    forms = set()
    scales = {name + SCALE for name, array in packed.items() if array.dtype == np.int8}
    for name, array in packed.items():
        if array.dtype == np.int8:
            scale = packed.get(name + SCALE)
            if array.ndim != 2 or scale is None or scale.dtype != np.float32 or scale.shape != array.shape[:1]:
                raise ValueError(f"{name} is int8 without a float32 scale for each row")
            weights[name] = array * scale[:, None]
        elif array.dtype not in (np.float32, np.float16):
            raise ValueError(f"{name} is {array.dtype}, not float32, float16 or int8")
        elif name not in scales:
            weights[name] = array.astype(np.float32, copy=False)
        forms.add(str(array.dtype))
    return weights, "int8" if "int8" in forms else "float16" if "float16" in forms else "float32"


def _config_text(config: RunConfig, said: Sequence[int]) -> str:
    facts = {"format": FORMAT, "format_version": FORMAT_VERSION, "settings": config.model_dump()}
    return json.dumps(facts | ({"said": _folded(said, config.model)} if said else {}), indent=2)


def _folded(pieces: Sequence[int], model: ModelConfig) -> str:
    """A bit for each piece of the vocabulary, in base64."""
    bits = np.zeros(model.vocab_size, np.uint8)
    bits[list(pieces)] = 1
    return base64.b64encode(np.packbits(bits).tobytes()).decode()


def _unfolded(text: object, model: ModelConfig) -> tuple[int, ...]:
    """What was folded; ValueError if it is not that, or lacks a piece that no search can do without."""
    if text is None:
        return ()
    packed = base64.b64decode(str(text), validate=True)
    pieces = tuple(np.flatnonzero(np.unpackbits(np.frombuffer(packed, np.uint8))).tolist())
    needed = {model.pad_id, model.bos_id, model.eos_id, UNK_ID}
    if len(packed) != -(-model.vocab_size // 8) or not needed <= {*pieces} or pieces[-1] >= model.vocab_size:
        raise ValueError(f"which pieces are said does not fit a vocabulary of {model.vocab_size}")
    return pieces


class Entry(BaseModel):
    """One file in the manifest."""

    model_config = ConfigDict(strict=True, extra="forbid")
    bytes: int
    sha256: str


class Manifest(BaseModel):
    """Size and SHA-256 of each file, and of the manifest's other fields."""

    model_config = ConfigDict(strict=True, extra="forbid")
    format: str
    format_version: int
    files: dict[str, Entry]
    sha256: str


def _manifest(contents: Mapping[str, bytes]) -> bytes:
    files = {name: {"bytes": len(data), "sha256": _sha256(data)} for name, data in sorted(contents.items())}
    return _canonical({"format": FORMAT, "format_version": FORMAT_VERSION, "files": files})


def _canonical(manifest: Mapping[str, Any]) -> bytes:
    """The one spelling of a manifest, so that no altered byte of it goes unnoticed."""
    fields = {name: value for name, value in manifest.items() if name != "sha256"}
    return json.dumps({**fields, "sha256": _sha256(json.dumps(fields).encode())}, indent=2).encode()


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _json(file: Path, data: bytes) -> dict[str, Any]:
    try:
        raw = json.loads(data)
    except (ValueError, RecursionError):
        raw = None
    if not isinstance(raw, dict):
        raise BundleDamaged(f"{file} is damaged: it is not a JSON object; restore the folder from a copy")
    return raw


def _verified(folder: Path) -> dict[str, bytes]:
    """The manifest and the files that it lists, each as long as it says and with its SHA-256."""
    try:
        return _checked(folder)
    except OSError as error:
        raise BundleError(f"cannot read {error.filename or folder}: {error.strerror}") from None


def _checked(folder: Path) -> dict[str, bytes]:
    manifest, data = _read_manifest(folder)
    files = manifest.files
    contents = {MANIFEST: data}
    problems: list[str] = []
    for name in sorted(files.keys() & {CONFIG, WEIGHTS, TOKENIZER, CARD}):
        file, entry = folder / name, files[name]
        if not file.is_file():
            problems.append(f"{file} is missing")
            continue
        contents[name] = data = file.read_bytes()
        if len(data) != entry.bytes:
            word = "truncated" if len(data) < entry.bytes else "longer than it was"
            problems.append(f"{file} is {word}: {len(data)} bytes, not {entry.bytes}")
        elif _sha256(data) != entry.sha256:
            problems.append(f"{file} is damaged: its SHA-256 is not the one in {MANIFEST}")
    if problems:
        raise BundleDamaged("\n".join(f"{problem}; restore the folder from a copy" for problem in problems))
    return contents


def _read_manifest(folder: Path) -> tuple[Manifest, bytes]:
    file = folder / MANIFEST
    if not file.is_file():
        raise NotABundle(_what_it_is(folder))
    data = file.read_bytes()
    raw = _json(file, data)
    version = raw.get("format_version")
    if raw.get("format") != FORMAT or not isinstance(version, int):
        raise NotABundle(f"{folder} is not a model folder of headwise: its {MANIFEST} is of something else")
    if version > FORMAT_VERSION:
        raise BundleVersion(
            f"{folder} was written by a newer headwise (format {version}, this one reads {FORMAT_VERSION}); "
            "pip install --upgrade headwise"
        )
    if version < FORMAT_VERSION:
        raise BundleVersion(
            f"{folder} is in format {version}, older than this headwise reads ({FORMAT_VERSION}); "
            "use the version that wrote it"
        )
    try:
        manifest = Manifest.model_validate(raw)
    except ValidationError:
        manifest = None
    if manifest is None or data != _canonical(raw) or not {CONFIG, WEIGHTS} <= manifest.files.keys():
        raise BundleDamaged(f"{file} is damaged; restore the folder from a copy")
    return manifest, data


def _what_it_is(folder: Path) -> str:
    """Why this is no model folder, as closely as a look at its names can tell."""
    if not folder.exists():
        return f"there is no model folder {folder}"
    if not folder.is_dir():
        return f"{folder} is a file; a model of headwise is a folder"
    names = {entry.name for entry in folder.iterdir()}
    if {CONFIG, WEIGHTS} <= names:
        return f"{folder} has no {MANIFEST}, so its files cannot be trusted; restore the folder from a copy"
    for kind, signs in FOREIGN.items():
        if any(Path(name).match(sign) for name in names for sign in signs):
            return f"{folder} is not a model folder of headwise; it looks like {kind}"
    return f"{folder} is not a model folder of headwise: there is no {MANIFEST}"
