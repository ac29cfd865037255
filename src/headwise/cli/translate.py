"""headwise translate: a text, a file or standard input, line for line."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from headwise.cli.lines import Work
    from headwise.translation import Translation
    from headwise.translator import Translator


def translate(
    text: Annotated[str | None, typer.Argument(metavar="TEXT", help="What to translate; else standard input.")] = None,
    model: Annotated[
        str | None, typer.Option(metavar="DIR", help="A model or run folder, or a model's name; else the box.")
    ] = None,
    input_file: Annotated[Path | None, typer.Option("--input", metavar="FILE", help="Read lines from here.")] = None,
    output: Annotated[Path | None, typer.Option(metavar="FILE", help="Write lines here; a new file.")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with an output that was interrupted.")] = False,
    n_best: Annotated[int, typer.Option(min=0, metavar="N", help="Print N translations a line, with scores.")] = 0,
    alignments: Annotated[bool, typer.Option("--alignments", help="Add which word comes from which.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print a JSON object a line.")] = False,
    source_lang: Annotated[
        str | None, typer.Option("--from", metavar="LANG", help="Source language, a code or an English name.")
    ] = None,
    to: Annotated[
        str | None, typer.Option(metavar="LANG", help="Target language, where there are several; of the box, de or en.")
    ] = None,
    prefix: Annotated[str, typer.Option(metavar="TEXT", help="What each translation begins with.")] = "",
    engine: Annotated[str, typer.Option(help="auto, torch or ctranslate2.")] = "auto",
    compute_type: Annotated[str, typer.Option(help="Of ctranslate2: auto, float32, int8 or bfloat16.")] = "auto",
    overrides: Annotated[
        list[str] | None, typer.Option("--set", metavar="A.B=C", help="Change a setting of the search.")
    ] = None,
    threads: Annotated[int | None, typer.Option(min=1, help="CPU threads; else all that may be used.")] = None,
    debug: Annotated[bool, typer.Option("--debug", help="Say which engine and why; show tracebacks.")] = False,
) -> None:
    """Translate a text, a file or standard input; a line gives a line."""
    import sys

    from headwise.errors import InputError
    from headwise.loading import box_between

    if text is not None and (input_file or output):
        raise InputError("a text goes without --input and --output")
    if resume and not (input_file and output):
        raise InputError("--resume needs --input and --output")
    if as_json and n_best:
        raise InputError("--json gives all alternatives anyway; leave --n-best out")
    if prefix and engine == "auto":
        engine = "torch"  # the other one has no prefix in a beam
    if model is None and (source_lang or to):
        model = str(box_between(source_lang, to))
    translator = load(model, overrides or [], threads, engine, compute_type)
    if debug:
        print(f"engine {translator.why}", file=sys.stderr)

    wanted, details = translator.search.beam_size if as_json else max(1, n_best), alignments or as_json
    n_loops = 0

    def work(done: int, texts: list[str]) -> "Iterator[list[str]]":
        nonlocal n_loops
        found = translator.translate(
            texts,
            n_best=wanted,
            details=details,
            to=to,
            source_lang=source_lang,
            prefix=prefix,
            first=done,
            scores=as_json or n_best > 0,
        )
        n_loops += sum(one.loop is not None for one in found)
        for number, one in enumerate(found, start=done):
            yield list(lines_of(one, number, n_best, alignments, as_json))

    if text is not None:
        for lines in work(0, [text]):
            print(*lines, sep="\n")
    elif input_file or output:
        form = str([n_best, alignments, as_json, to, source_lang, prefix])
        _files(input_file, output, resume, translator, model, form, work, grouped=bool(n_best))
    else:
        from headwise.cli.lines import stdin, stream

        for _ in stream(stdin(), sys.stdout.buffer, Path("<stdin>"), work):
            pass
    if n_loops:
        print(f"loops mended: {n_loops} (--json tells where)", file=sys.stderr)


def lines_of(one: "Translation", number: int, n_best: int, alignments: bool, as_json: bool) -> "Iterator[str]":
    """What is printed of a translation, without any break in a line."""
    import json

    if as_json:
        yield json.dumps({"id": number} | one.to_dict(), ensure_ascii=False)
    elif n_best:
        for candidate in (one, *one.alternatives):
            words = f" ||| {candidate.pharaoh}" if alignments else ""
            yield f"{number} ||| {_flat(candidate.text)} ||| {candidate.score:.6f}{words}"
    else:
        yield f"{_flat(one.text)} ||| {one.pharaoh}" if alignments else _flat(one.text)


def _flat(text: str) -> str:
    return text.replace("\n", " ")


def _files(
    source: Path | None,
    output: Path | None,
    resume: bool,
    translator: "Translator",
    model: str | None,
    form: str,
    work: "Work",
    grouped: bool,
) -> None:
    """From a file, or to a file, or both; how far it is shows on a terminal."""
    import sys

    from rich.console import Console
    from rich.progress import MofNCompleteColumn, Progress, TimeRemainingColumn

    from headwise.bundle import MANIFEST, find_model
    from headwise.cli.lines import Output, count, sha256, stdin, stream, whole_groups, whole_lines
    from headwise.data.corpus import cannot_read

    made_from = {}
    if source and output:
        made_from = {
            "input": sha256(source),
            "model": sha256(find_model(model) / MANIFEST),
            "search": translator.search.model_dump_json(),
            "choice of options": form,
        }
    try:
        reading = source.open("rb") if source else stdin()
    except OSError as error:
        assert source is not None
        raise cannot_read(source, error) from None
    columns = (*Progress.get_default_columns()[:2], MofNCompleteColumn(), TimeRemainingColumn())
    console = Console(stderr=True)
    with reading, Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        bar = progress.add_task("lines", total=count(source) if source else None)
        if output is None:
            for done in stream(reading, sys.stdout.buffer, source or Path("<stdin>"), work):
                progress.update(bar, completed=done)
            return
        with Output(output, made_from).opened(resume, whole_groups if grouped else whole_lines) as (sink, n_there):
            for done in stream(reading, sink, source or Path("<stdin>"), work, n_there):
                progress.update(bar, completed=done)


def load(
    model: str | None, overrides: list[str], threads: int | None, engine: str = "auto", compute_type: str = "auto"
) -> "Translator":
    """The translator of a model, its search changed by `--set`."""
    from headwise.config import parse_override
    from headwise.errors import ConfigError
    from headwise.loading import load as load_model

    search: dict[str, object] = {}
    for override in overrides:
        [(section, values)] = parse_override(override).items()
        if section != "search" or not isinstance(values, dict):
            raise ConfigError(
                f"--set {override}: only settings of the search can change here, such as search.beam_size"
            )
        search |= values
    return load_model(model, engine=engine, compute_type=compute_type, threads=threads, search=search)
