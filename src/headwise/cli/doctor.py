"""headwise doctor: what may keep headwise from working well here."""

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from headwise.doctor import Finding


def doctor(
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON array, for programs.")] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks.")] = False,
) -> int:
    """Look at versions, machine, disk, extras and models; what is wrong comes with the way out."""
    import json
    from dataclasses import asdict

    from headwise.doctor import examine

    findings = list(examine())
    if as_json:
        print(json.dumps([asdict(finding) for finding in findings], ensure_ascii=False))
    else:
        _draw(findings)
    return 2 if any(finding.level == "problem" for finding in findings) else 0


def _draw(findings: "list[Finding]") -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Column, Table

    marks = {"pass": "[green]pass[/]", "note": "[yellow]note[/]", "problem": "[red]problem[/]"}
    table = Table("", "", Column(overflow="fold"), box=None, show_header=False)
    part = ""
    for finding in findings:
        if finding.part != part:
            part = finding.part
            table.add_row(f"[cyan]{part}[/]")
        remedy = f"\n[dim]{escape(finding.remedy)}[/]" if finding.remedy else ""
        table.add_row(f"  {escape(finding.name)}", marks[finding.level], escape(finding.found) + remedy)
    console = Console(highlight=False)
    console.print(table)
    counts = {level: sum(finding.level == level for finding in findings) for level in ("problem", "note")}
    console.print(f"problems: {counts['problem']}, notes: {counts['note']}")
