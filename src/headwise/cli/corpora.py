"""Corpora as flags name them: --src and --tgt together, or --pairs, each as often as there are corpora."""

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from headwise.config import CorpusConfig


def corpora(
    src: list[Path] | None, tgt: list[Path] | None, pairs: list[Path] | None, prefix: str = ""
) -> "list[CorpusConfig]":
    """As settings; `prefix` is that of the flags, for the message."""
    from headwise.config import CorpusConfig
    from headwise.errors import InputError

    sources, targets = src or [], tgt or []
    if len(sources) != len(targets):
        raise InputError(
            f"--{prefix}src is given {len(sources)} times and --{prefix}tgt {len(targets)} times: they go together"
        )
    both = [CorpusConfig(src=str(a), tgt=str(b)) for a, b in zip(sources, targets, strict=True)]
    return [*both, *(CorpusConfig(pairs=str(file)) for file in pairs or [])]
