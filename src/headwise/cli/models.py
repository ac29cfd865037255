"""headwise models: those that have a name."""

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from headwise.models import Model

Debug = Annotated[bool, typer.Option("--debug", help="Show tracebacks.")]
NONE = "no models yet; add one with: headwise models add DIR"


def list_models(
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON array, for programs.")] = False,
    debug: Debug = False,
) -> None:
    """Show the models in the box and your own."""
    import json
    from dataclasses import asdict

    from headwise import models

    found = models.list_models()
    if as_json:
        print(json.dumps([asdict(model) | {"folder": str(model.folder)} for model in found], ensure_ascii=False))
    elif found:
        _draw(found)
    else:
        print(NONE)


def add(
    path: Annotated[str, typer.Argument(metavar="DIR", help="A model or run folder.")],
    name: Annotated[str | None, typer.Option(metavar="NAME", help="Its name; else the folder's.")] = None,
    debug: Debug = False,
) -> None:
    """Copy a model to your own, to be used by its name; it is checked first."""
    import shlex

    from headwise import models
    from headwise.units import in_bytes, short

    model = models.add(path, name)
    parameters = short(model.n_parameters or 0)
    typer.echo(f"added {model.name}: {model.languages}, {parameters} parameters, {in_bytes(model.n_bytes)}", err=True)
    typer.echo(f'headwise translate --model {shlex.quote(model.name)} "..."', err=True)


def verify(
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="A model; else all.")] = None,
    debug: Debug = False,
) -> int:
    """Check every file of a model against its SHA-256, and its weights against its settings."""
    from headwise import models

    found = models.verify(name)
    for model in found:
        for line in (model.fault or "ok").splitlines():
            print(f"{model.name}: {line}")
    if not found:
        print(NONE)
    return 2 if any(model.fault for model in found) else 0


def remove(
    name: Annotated[str, typer.Argument(metavar="NAME", help="One of your own models.")],
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    debug: Debug = False,
) -> None:
    """Remove one of your own models, and what was made from it."""
    import sys

    from headwise import models
    from headwise.errors import InputError
    from headwise.units import in_bytes

    what = f"remove {name} ({in_bytes(models.size(models.removable(name)))})"
    if not yes and not sys.stdin.isatty():
        raise InputError(f"there is nobody to ask: {what}? Add --yes")
    if yes or typer.confirm(f"{what}?", prompt_suffix=" ", err=True):
        models.remove(name)
        typer.echo(f"removed {name}", err=True)
    else:
        typer.echo(f"{name} stays", err=True)


def _draw(found: "list[Model]") -> None:
    from rich import box
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    from headwise.units import in_bytes, short

    table = Table(box=box.SIMPLE_HEAD)
    for title in ("name", "languages", "parameters", "size", "stored", "where"):
        table.add_column(title, justify="right" if title in ("parameters", "size") else "left")
    for model in found:
        about = [escape(model.languages), short(model.n_parameters or 0), in_bytes(model.n_bytes), model.stored or ""]
        if model.fault:
            about = ["[red]damaged[/]", "", in_bytes(model.n_bytes), ""]
        table.add_row(escape(model.name), *about, model.origin)
    console = Console()
    console.print(table)
    if any(model.fault for model in found):
        console.print("headwise models verify tells what is damaged", highlight=False)
