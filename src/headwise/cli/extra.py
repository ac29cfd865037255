"""A command that needs an optional library says so in one line where it is missing."""

from importlib.util import find_spec

from headwise.errors import MissingExtra


def need_torch() -> None:
    """MissingExtra where torch is not installed; torch itself is not imported."""
    import sys

    if sys.modules.get("torch", find_spec) is None or find_spec("torch") is None:
        raise MissingExtra("torch", extra="train")
