"""headwise evaluate: how well a model translates a file, as sacreBLEU and chrF with their signatures."""

from pathlib import Path
from typing import Annotated

import typer


def evaluate(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="A model or run folder.")],
    src: Annotated[Path, typer.Option(metavar="FILE", help="Source, a sentence a line.")],
    ref: Annotated[Path, typer.Option(metavar="FILE", help="References, line by line.")],
    overrides: Annotated[
        list[str] | None, typer.Option("--set", metavar="A.B=C", help="Change a setting of the search.")
    ] = None,
    threads: Annotated[int | None, typer.Option(min=1, help="CPU threads; else all that may be used.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object, for programs.")] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks.")] = False,
) -> None:
    """Translate a source and score it beside its reference."""
    import json

    from headwise.cli.translate import load
    from headwise.data.corpus import Corpus
    from headwise.errors import DataError
    from headwise.evaluate.scores import bleu, chrf

    pairs = list(Corpus(src, ref).pairs())
    if not pairs:
        raise DataError(f"{src} has no lines")
    sources, references = zip(*pairs, strict=True)
    translations = load(model, overrides or [], threads).translate(sources)
    scores = [bleu(translations, references), chrf(translations, references)]
    if as_json:
        print(
            json.dumps({s.name: {"score": s.value, "signature": s.signature} for s in scores} | {"lines": len(pairs)})
        )
    else:
        for score in scores:
            print(score)
