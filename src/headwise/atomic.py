"""Folders and files that appear whole or not at all."""

import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from headwise.errors import FolderError


@contextmanager
def new_folder(folder: Path) -> Iterator[Path]:
    """A temporary folder to write into; at the end its files are synced and it is renamed to `folder`.

    An existing folder is never touched, unless it is empty. After a failure nothing is left.
    """
    temporary = folder.parent / f".{folder.name}.{secrets.token_hex(4)}.tmp"
    try:
        if folder.is_symlink() or folder.is_file() or (folder.is_dir() and any(folder.iterdir())):
            raise FolderError(f"{folder} is there already; choose another name or move it away")
        temporary.mkdir(parents=True)
        yield temporary
        for path in (*temporary.rglob("*"), temporary):
            _sync(path)
        temporary.rename(folder)
        _sync(folder.parent)
    except OSError as error:
        raise FolderError(f"cannot write {folder}: {error.strerror}; nothing was changed") from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def write_text(file: Path, text: str) -> None:
    """Write a file, whole or not at all, in place of what was there."""
    temporary = file.parent / f".{file.name}.{secrets.token_hex(4)}.tmp"
    try:
        temporary.write_text(text, encoding="utf-8")
        _sync(temporary)
        temporary.rename(file)
        _sync(file.parent)
    except OSError as error:
        raise FolderError(f"cannot write {file}: {error.strerror}; nothing was changed") from error
    finally:
        temporary.unlink(missing_ok=True)


def sweep(folder: Path) -> None:
    """Remove what a killed process left unfinished in a folder that no other one writes to."""
    for path in folder.glob(".*.????????.tmp"):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
