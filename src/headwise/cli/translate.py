"""headwise translate: lines in, lines out."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from headwise.translator import Translator

BLOCK = 1000  # lines that are translated together


def translate(
    model: Annotated[str, typer.Option(metavar="DIR", help="A model or run folder.")],
    overrides: Annotated[
        list[str] | None, typer.Option("--set", metavar="A.B=C", help="Change a setting of the search.")
    ] = None,
    threads: Annotated[int | None, typer.Option(min=1, help="CPU threads; else all that may be used.")] = None,
    debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks.")] = False,
) -> None:
    """Translate standard input, line by line, to standard output."""
    import itertools
    import sys

    from headwise.data.corpus import Corpus

    translator = load(model, overrides or [], threads)
    lines = enumerate(sys.stdin.buffer, start=1)  # binary: only a line feed ends a line
    while block := list(itertools.islice(lines, BLOCK)):
        texts = [Corpus.decode(line.removesuffix(b"\n"), number, Path("<stdin>")) for number, line in block]
        for text in translator.translate(texts):
            sys.stdout.buffer.write(text.replace("\n", " ").encode("utf-8") + b"\n")
        sys.stdout.buffer.flush()


def load(model: str, overrides: list[str], threads: int | None) -> "Translator":
    """The translator of a model folder, on torch."""
    import os

    from headwise.bundle import Bundle, find_model
    from headwise.cli.extra import need_torch
    from headwise.config import RunConfig, check, parse_override
    from headwise.errors import BundleError, ConfigError

    folder = find_model(model)
    bundle = Bundle.read(folder)
    if bundle.tokenizer is None:
        raise BundleError(f"{folder} has no tokenizer, so it cannot translate text")
    settings = bundle.config.model_dump()
    for override in overrides:
        [(section, values)] = parse_override(override).items()
        if section != "search" or not isinstance(values, dict):
            raise ConfigError(
                f"--set {override}: only settings of the search can change here, such as search.beam_size"
            )
        settings["search"] |= values
    search = check(RunConfig, settings, where="from --set").search
    need_torch()
    from headwise.engine.torch import TorchEngine
    from headwise.text.tokenizer import Tokenizer
    from headwise.translator import Translator

    engine = TorchEngine.of(bundle, threads or len(os.sched_getaffinity(0)))
    return Translator(Tokenizer.from_text(bundle.tokenizer), engine, search)
