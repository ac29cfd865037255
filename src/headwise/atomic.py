"""A folder that appears whole or not at all."""

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
        for file in (*temporary.iterdir(), temporary):
            _sync(file)
        temporary.rename(folder)
        _sync(folder.parent)
    except OSError as error:
        raise FolderError(f"cannot write {folder}: {error.strerror}; nothing was changed") from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
