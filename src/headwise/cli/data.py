"""headwise data check: what is wrong with a corpus, before anything is learned from it."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from headwise.data.check import Report


def check(
    src: Annotated[list[Path] | None, typer.Option(metavar="FILE", help="Source, a sentence a line.")] = None,
    tgt: Annotated[list[Path] | None, typer.Option(metavar="FILE", help="Target, line by line.")] = None,
    pairs: Annotated[list[Path] | None, typer.Option(metavar="FILE", help="Source TAB target, instead.")] = None,
    dev_src: Annotated[list[Path] | None, typer.Option(metavar="FILE", help="Source to validate on.")] = None,
    dev_tgt: Annotated[list[Path] | None, typer.Option(metavar="FILE", help="Its target.")] = None,
    dev_pairs: Annotated[list[Path] | None, typer.Option(metavar="FILE", help="Source TAB target, instead.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object, for programs.")] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks.")] = False,
) -> int:
    """Check parallel text: passes, warnings and errors, with counts, first lines and the fix.

    Files may be gzip. Options may be given several times, for several corpora.
    """
    import json

    from headwise.cli.corpora import corpora
    from headwise.data.check import check_corpora
    from headwise.data.corpus import Corpus
    from headwise.errors import InputError

    train = [Corpus.of(corpus) for corpus in corpora(src, tgt, pairs)]
    dev = [Corpus.of(corpus) for corpus in corpora(dev_src, dev_tgt, dev_pairs, "dev-")]
    if not train:
        raise InputError("nothing to check: give --src and --tgt, or --pairs")
    report = check_corpora(train, dev)
    if as_json:
        findings = [{"level": f.level, "name": f.name, "count": f.count, "where": f.where, "fix": f.fix}
                    for f in report.findings.values()]  # fmt: skip
        print(json.dumps({"n_train": report.n_train, "n_dev": report.n_dev, "findings": findings}, ensure_ascii=False))
    else:
        _draw(report)
    return 2 if report.n_errors else 0


def _draw(report: "Report") -> None:
    from rich.console import Console
    from rich.markup import escape

    console = Console(highlight=False, soft_wrap=True)
    marks = {"pass": "[green]pass[/]   ", "warning": "[yellow]warning[/]", "error": "[red]error[/]  "}
    dev = f", {report.n_dev:,} to validate on" if report.n_dev else ""
    console.print(f"{report.n_train:,} pairs with two sides{dev}")
    for finding in report.findings.values():
        count = f" {finding.count:,}" if finding.count else ""
        console.print(f"{marks[finding.level]} {finding.name}{count}")
        if finding.count:
            more = " ..." if finding.count > len(finding.where) else ""
            console.print(f"          {escape(', '.join(finding.where))}{more}")
            console.print(f"          [dim]{finding.fix}[/]")
    console.print(f"errors: {report.n_errors}, warnings: {report.n_warnings}")
