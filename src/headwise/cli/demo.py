"""headwise demo: a small real task, learned from scratch in about a minute."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from headwise.demo.run import Demo, Example
    from headwise.explain.heads import Heads

SHOWN = 5  # examples


def demo(
    out: Annotated[Path, typer.Option(metavar="DIR", help="Where everything goes.")] = Path("headwise-demo"),
    steps: Annotated[int | None, typer.Option(min=1, help="Updates at most; fewer are faster and worse.")] = None,
    seed: Annotated[int, typer.Option(min=0, max=2**31 - 1, help="Of the dates and of the training.")] = 1,
    threads: Annotated[int, typer.Option(min=1, help="CPU threads; one is enough for so small a model.")] = 1,
    quiet: Annotated[bool, typer.Option("--quiet", help="Show the result only.")] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks.")] = False,
) -> int:
    """Learn to read dates in a minute, from scratch, and show what was learned. Run again, it goes on."""
    import sys

    from headwise.cli.extra import need_torch
    from headwise.cli.progress import Screen
    from headwise.errors import Interrupted
    from headwise.train.stop import Stop

    need_torch()
    with Stop() as stop:
        try:
            from headwise.demo.run import STEPS, Demo

            it = Demo(out, seed, steps or STEPS)
            with Screen(quiet, it.steps) as screen:

                def show(event: dict[str, Any]) -> None:
                    if event["event"] != "end":  # its news comes below
                        screen.show(event)

                state = it.learn(threads, show, stop)
            if stop.number:
                return 128 + stop.number
            examples, heads = it.ask(threads)
        except Interrupted:
            print("interrupted; the same command goes on from there", file=sys.stderr)
            raise
    sys.stdout.reconfigure(errors="replace")  # type: ignore[union-attr]
    n_right = sum(example.right for example in examples)
    print(f"\nexact on unseen dates: {n_right:,} of {len(examples):,}", end="")
    print(f", after {state.step:,} of {it.steps:,} steps in {state.seconds:.0f} s\n")
    _show(examples, heads)
    _say_what_next(it)
    return 0


def _show(examples: "list[Example]", heads: "Heads") -> None:
    """Some examples, one that is wrong among them if there is any, and the map."""
    from headwise.explain.heatmap import in_blocks

    wrong = [example for example in examples[SHOWN:] if not example.right]
    for example in [*examples[:SHOWN], *wrong[:1]]:
        print(f"  {'✓' if example.right else '✗'} {example.source}  →  {example.output}")
    print(f"\nwhat it looks at (columns) to write (rows), mean of the heads of layer {heads.layer}:\n")
    print("\n".join(f"  {line}" for line in in_blocks(heads).split("\n")))


def _say_what_next(demo: "Demo") -> None:
    from shlex import quote

    run, again = quote(str(demo.run)), f"headwise demo --out {quote(str(demo.folder))}"
    if demo.seed != 1:
        again += f" --seed {demo.seed}"
    print(f"""
  {demo.picture}  the same, head by head
  {demo.run / "report.html"}  how it learned

the same command goes on where it was stopped, or shows this again; to learn more:
  {again} --steps {2 * demo.steps}

next:
  headwise translate --model {run} "the 4th of July, 2030"
  headwise evaluate {run} --pairs {quote(str(demo.test))}
  headwise train --src train.en --tgt train.de --out runs/mine  # your own files""")
