"""The run folder: what lies where, who may write to it, which checkpoints stay.

run.toml log.jsonl tokenizer.json data/ checkpoints/step-00001000/{a model folder, resume/} model/ report.html lock
"""

import fcntl
import os
import resource
import shutil
import time
from collections.abc import Iterator, Set
from contextlib import contextmanager
from pathlib import Path

from headwise.atomic import sweep
from headwise.errors import FolderError

KNOWN = {
    "run.toml",
    "log.jsonl",
    "tokenizer.json",
    "data",
    "checkpoints",
    "model",
    "report.html",
    "lock",
    "tensorboard",
}
RESUMABLE = 2  # checkpoints that keep what resuming needs


class RunFolder:
    """The names of everything in a run folder."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.run_file = path / "run.toml"
        self.log_file = path / "log.jsonl"
        self.tokenizer_file = path / "tokenizer.json"
        self.data = path / "data"
        self.checkpoints = path / "checkpoints"
        self.model = path / "model"
        self.report = path / "report.html"
        self.tensorboard = path / "tensorboard"

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Alone in the folder, made if it is not there; the lock of a process that has died holds nobody up."""
        self._claim()
        with open(self.path / "lock", "a+", encoding="utf-8") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                file.seek(0)
                holder = file.read().strip() or "another process"
                raise FolderError(
                    f"{self.path} is being trained in by {holder}; wait for it or choose another folder"
                ) from None
            file.truncate(0)
            file.write(f"process {os.getpid()} on {os.uname().nodename}\n")
            file.flush()
            for folder in (self.path, self.data, self.checkpoints):
                sweep(folder)
            yield
            file.truncate(0)

    def _claim(self) -> None:
        """Make the folder, or see that it is one of ours and can be written."""
        path = self.path
        try:
            if path.is_symlink() and not path.exists():
                raise FolderError(f"{path} is a link to nothing; remove it or choose another folder")
            path.mkdir(parents=True, exist_ok=True)
            foreign = sorted({entry.name for entry in path.iterdir() if not entry.name.startswith(".")} - KNOWN)
            if foreign and not self.run_file.exists():
                raise FolderError(f"{path} holds {foreign[0]!r} and is no run folder; choose a new or an empty one")
            if self.saved() and not self.run_file.exists():
                raise FolderError(f"{path} holds checkpoints but no run.toml; put it back or choose another folder")
            for folder in (path, self.data, self.checkpoints):
                folder.mkdir(exist_ok=True)
                probe = folder / f".probe.{os.getpid():08d}.tmp"
                probe.write_bytes(b"x")
                probe.unlink()
        except OSError as error:
            raise FolderError(f"cannot write to {path}: {error.strerror}; choose another folder") from None

    def need_room(self, n_bytes: int, largest_file: int) -> None:
        """Refuse before the first step what would fail at the first save."""
        free = shutil.disk_usage(self.path).free
        if free < n_bytes:
            raise FolderError(
                f"{self.path} has {free / 1e6:,.0f} MB of free space and this run needs {n_bytes / 1e6:,.0f} MB; "
                "make room or choose another folder"
            )
        limit = resource.getrlimit(resource.RLIMIT_FSIZE)[0]
        if limit != resource.RLIM_INFINITY and limit < largest_file:
            raise FolderError(
                f"a file may have {limit / 1e6:,.0f} MB (ulimit -f) and a checkpoint needs {largest_file / 1e6:,.0f} MB"
            )

    def saved(self) -> list[Path]:
        """The checkpoints, oldest first."""
        return sorted(path for path in self.checkpoints.glob("step-*") if path.is_dir())

    @staticmethod
    def step_of(checkpoint: Path) -> int:
        """The step at which a checkpoint was saved."""
        return int(checkpoint.name.removeprefix("step-"))

    def checkpoint(self, step: int) -> Path:
        """Where the checkpoint of a step lies."""
        return self.checkpoints / f"step-{step:08d}"

    def put_aside(self, checkpoint: Path) -> Path:
        """Rename a damaged checkpoint, so that its step can be saved again; where to."""
        aside = checkpoint.with_name(f"damaged-{checkpoint.name}-{time.time_ns()}")
        checkpoint.rename(aside)
        return aside

    def prune(self, keep: Set[Path]) -> None:
        """Remove checkpoints, all but `keep`, and what resuming needs, all but the last few."""
        saved = self.saved()
        for path in saved[:-RESUMABLE]:
            if path not in keep:
                _remove(path)
            else:
                _remove(path / "resume")

    def put_model_aside(self) -> Path | None:
        """Rename the finished model to the first free of model-1, model-2 ...; where to, if there was one."""
        if not self.model.exists():
            return None
        n = 1
        while (aside := self.path / f"model-{n}").exists():
            n += 1
        self.model.rename(aside)
        return aside


def _remove(path: Path) -> None:
    """Rename first, so that a process killed on the way leaves no half folder under a name that counts."""
    if path.exists():
        gone = path.parent / f".{path.name}.{os.getpid():08d}.tmp"
        path.rename(gone)
        shutil.rmtree(gone, ignore_errors=True)
