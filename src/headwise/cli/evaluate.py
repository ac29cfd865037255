"""headwise evaluate and headwise score: how well a model translates a file, and what it thinks of given pairs."""

from pathlib import Path
from typing import Annotated

import typer

Model = Annotated[str, typer.Argument(metavar="MODEL", help="A model or run folder, or a model's name.")]
Source = Annotated[Path | None, typer.Option(metavar="FILE", help="Source, a sentence a line.")]
Pairs = Annotated[
    Path | None, typer.Option(metavar="TSV", help="Source and reference in one file; more columns, more references.")
]
Language = Annotated[str | None, typer.Option(metavar="LANG", help="Target language, where the model knows several.")]
Engine = Annotated[str, typer.Option(help="auto, torch or ctranslate2.")]
Kind = Annotated[str, typer.Option("--compute-type", help="Of ctranslate2: auto, float32, int8 or bfloat16.")]
Overrides = Annotated[list[str] | None, typer.Option("--set", metavar="A.B=C", help="Change a setting of the search.")]
Threads = Annotated[int | None, typer.Option(min=1, help="CPU threads; else all that may be used.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]
Debug = Annotated[bool, typer.Option("--debug", help="Show tracebacks.")]


def evaluate(
    model: Model,
    src: Source = None,
    ref: Annotated[
        list[Path] | None, typer.Option(metavar="FILE", help="References, line by line; once more for further ones.")
    ] = None,
    pairs: Pairs = None,
    to: Language = None,
    engine: Engine = "auto",
    compute_type: Kind = "float32",
    overrides: Overrides = None,
    threads: Threads = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Translate a source and score it beside its references."""
    import json

    from headwise.cli.translate import load
    from headwise.evaluate.scores import bleu, character_errors, chrf, exact, ter, token_errors

    sources, references, more = _columns(src, ref or [], pairs, "--ref")
    found = load(model, overrides or [], threads, engine, compute_type).translate(sources, to=to, scores=False)
    translations = [one.text for one in found]
    metrics = (bleu, chrf, ter, exact, character_errors, token_errors)
    scores = [metric(translations, references, *more) for metric in metrics]
    n_loops = sum(one.loop is not None for one in found)
    if as_json:
        named = {s.name: {"score": s.value, "signature": s.signature} for s in scores}
        print(json.dumps(named | {"lines": len(sources), "loops": n_loops}))
        return
    for score in scores:
        print(score)
    if n_loops:
        print(f"loops mended: {n_loops} of {len(sources)} lines")


def score(
    model: Model,
    src: Source = None,
    tgt: Annotated[Path | None, typer.Option(metavar="FILE", help="Targets, line by line.")] = None,
    pairs: Pairs = None,
    to: Language = None,
    engine: Engine = "auto",
    compute_type: Kind = "float32",
    threads: Threads = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Print the log probability of each target given its source, and its perplexity a piece; of all at the end."""
    import json
    import math
    import sys

    from headwise.cli.translate import load

    sources, targets, _ = _columns(src, [tgt] if tgt else [], pairs, "--tgt")
    total = n_pieces = 0.0
    for number, log_probs in enumerate(load(model, [], threads, engine, compute_type).score(sources, targets, to=to)):
        log_prob, n = sum(log_probs), len(log_probs)
        total, n_pieces = total + log_prob, n_pieces + n
        if as_json:
            print(json.dumps({"id": number, "log_prob": log_prob, "pieces": n, "perplexity": math.exp(-log_prob / n)}))
        else:
            print(f"{log_prob:.4f}\t{math.exp(-log_prob / n):.4f}")
    print(
        f"{len(sources)} pairs: log probability {total:.2f}, perplexity {math.exp(-total / n_pieces):.4f} a piece",
        file=sys.stderr,
    )


def _columns(
    src: Path | None, others: list[Path], pairs: Path | None, flag: str
) -> tuple[list[str], list[str], list[list[str | None]]]:
    """Sources, what stands beside them, and further columns; a line with fewer columns has None there."""
    from headwise.data.corpus import Corpus, raw_lines
    from headwise.errors import DataError, InputError

    if (src is None or not others) == (pairs is None):
        raise InputError(f"give --src and {flag}, or --pairs")
    if pairs is None:
        assert src is not None
        rows = [[source, target] for source, target in Corpus(src, others[0]).pairs()]
        for other in others[1:]:
            for row, (_, target) in zip(rows, Corpus(src, other).pairs(), strict=True):
                row.append(target)
    else:
        rows = [Corpus.decode(line, number, pairs).split("\t") for number, line in enumerate(raw_lines(pairs), start=1)]
        if short := [number for number, row in enumerate(rows, start=1) if len(row) < 2]:
            raise DataError(f"{pairs}, line {short[0]}: no tab, so it has no reference")
    if not rows:
        raise DataError(f"{src or pairs} has no lines")
    more = [[row[i] if i < len(row) else None for row in rows] for i in range(2, max(map(len, rows)))]
    return [row[0] for row in rows], [row[1] for row in rows], more
