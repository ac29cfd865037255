"""Curves for TensorBoard, where it is asked for and installed."""

from pathlib import Path
from typing import Any

from headwise.errors import MissingExtra


def tensorboard(folder: Path) -> Any:
    """A writer of scalars into `folder`."""
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ModuleNotFoundError:
        raise MissingExtra("tensorboard", extra="track") from None
    return SummaryWriter(str(folder))
