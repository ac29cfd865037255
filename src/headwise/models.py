"""Models that have a name: those in the box, which came with headwise, and the user's own."""

import os
import shlex
import shutil
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from headwise.architecture import describe
from headwise.bundle import Bundle, find_model, identity, named_model
from headwise.errors import BundleError, FolderError, InputError
from headwise.home import box, converted, named_models, own_models
from headwise.text.tokenizer import Tokenizer


@dataclass(frozen=True)
class Model:
    """What can be told of a model; of a damaged one, its fault and not the rest."""

    name: str
    folder: Path
    origin: Literal["box", "yours"]
    n_bytes: int
    source: str | None = None
    targets: tuple[str, ...] = ()
    n_parameters: int | None = None
    stored: str | None = None
    fault: str | None = None

    @property
    def languages(self) -> str:
        """From which to which, or between which."""
        others = [target for target in self.targets if target != self.source]
        if others and len(others) < len(self.targets):
            return f"{self.source} <-> {', '.join(others)}"
        return f"{self.source} -> {', '.join(self.targets)}"


def list_models() -> list[Model]:
    """All models, by name; every file of them is checked."""
    return [_look(name, folder) for name, folder in sorted(named_models().items())]


def verify(name: str | None = None) -> list[Model]:
    """One model, or all: every file against its SHA-256, and the weights against the settings."""
    return list_models() if name is None else [_look(name, named_model(name))]


def add(path: Path | str, name: str | None = None) -> Model:
    """Copy a sound model, or that of a run, to the user's models; the name is the folder's unless it is given."""
    folder = find_model(path)
    if name is None:
        name = _name_of(folder)
    if not name or name[0] in ".-" or not name.isprintable() or set(name) & set("/\\"):
        raise InputError(
            f"{name!r} is no name for a model: no slash, no dot or dash at the start; give one with --name"
        )
    if known := named_models().get(name):
        way = "" if _in_box(known) else f", or first: headwise models remove {shlex.quote(name)}"
        raise FolderError(f"there is a model {name!r} already; give another name with --name{way}")
    Bundle.copy(folder, own_models() / name)
    return _look(name, own_models() / name)


def removable(name: str) -> Path:
    """The folder of a model that is the user's own."""
    folder = named_model(name)
    if _in_box(folder):
        raise InputError(f"{name!r} came with headwise and stays; only models of your own can be removed")
    if folder.is_symlink():
        raise InputError(f"{folder} is a link to {folder.resolve()}; remove the link with rm")
    return folder


def remove(name: str) -> None:
    """Remove one of the user's models, and what was made from it."""
    folder = removable(name)
    made: list[Path] = []
    with suppress(OSError):
        made += converted().glob(f"{identity(folder)}-*")
    try:
        for path in (*made, folder):
            shutil.rmtree(path)
    except OSError as error:
        raise FolderError(f"cannot remove {error.filename}: {error.strerror}") from None


def size(folder: Path) -> int:
    """Bytes of the files in a folder."""
    return sum(path.lstat().st_size for path in folder.rglob("*") if path.is_file())


def _look(name: str, folder: Path) -> Model:
    found = Model(name, folder, "box" if _in_box(folder) else "yours", size(folder))
    try:
        bundle = Bundle.read(find_model(folder))
        tags = Tokenizer.from_text(bundle.tokenizer).languages if bundle.tokenizer else []
    except (BundleError, OSError, ValueError) as error:
        return replace(found, fault=str(error))
    data, n = bundle.config.data, describe(bundle.config.model).parameters.total
    targets = tuple(tags or [data.target_lang])
    return replace(found, source=data.source_lang, targets=targets, n_parameters=n, stored=bundle.stored)


def _in_box(folder: Path) -> bool:
    return folder.parent == box()


def _name_of(folder: Path) -> str:
    """The run's, if it is the model of one; else the folder's."""
    folder = Path(os.path.abspath(folder))
    runs = [place for place in (folder.parent, folder.parent.parent) if (place / "run.toml").is_file()]
    if folder.name == "model":
        runs.append(folder.parent)
    return next(iter(runs), folder).name
