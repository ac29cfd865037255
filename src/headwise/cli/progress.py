"""What a person sees of a run: a live line on a terminal, plain lines elsewhere, a summary at the end."""

import math
import time
from types import TracebackType
from typing import Any

from rich.console import Console
from rich.live import Live
from rich.markup import escape
from rich.table import Table

Event = dict[str, Any]
LINE_EVERY_S = 30.0  # where there is no terminal


class Screen:
    """Draws the events of a run on standard error; standard output stays empty."""

    def __init__(self, quiet: bool, max_steps: int) -> None:
        self.console = Console(stderr=True, highlight=False, soft_wrap=True, quiet=quiet)
        self.live: Live | None = None
        if self.console.is_terminal and not quiet:
            self.live = Live(console=self.console, refresh_per_second=2, transient=True)
        self.max_steps, self.max_minutes = max_steps, math.inf
        self.last_line = 0.0
        self.dev = ""

    def __enter__(self) -> "Screen":
        if self.live:
            self.live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.live:
            self.live.stop()

    def show(self, event: Event) -> None:
        """One event of the log."""
        draw = getattr(self, f"_{event['event']}", None)
        if draw is not None:
            draw(event)

    def _say(self, text: str) -> None:
        self.console.print(text)

    def _check(self, e: Event) -> None:
        dev = f"{e['dev_pairs']:,} to validate on" if e["dev_pairs"] else "some are held out to validate on"
        self._say(f"data: {e['pairs']:,} pairs, {dev}")
        for name, found in e["warnings"].items():
            first = escape(found["where"][0])
            self._say(f"  [yellow]warning[/] {name}: {found['count']:,}, first {first} [dim]({found['fix']})[/]")

    def _start(self, e: Event) -> None:
        self.max_steps, self.max_minutes = e["max_steps"], e["max_minutes"] or math.inf
        self._say(
            f"model: {e['parameters']:,} parameters, {e['vocabulary']:,} pieces; "
            f"{e['device']}, {e['precision']}, {e['threads']} thread{'s' if e['threads'] > 1 else ''}"
            + (f", {e['processes']} processes" if e["processes"] > 1 else "")
        )
        left_out = ", ".join(f"{n:,} {why}" for why, n in e["left_out"].items() if n)
        self._say(
            f"batches: {e['batches_an_epoch']:,} an epoch from {e['pairs']:,} pairs, {e['padding']:.1%} padding"
            + (f"; left out: {left_out}" if left_out else "")
        )

    def _estimate(self, e: Event) -> None:
        self._say(f"estimate: about {_minutes(e['minutes'])} at {e['tokens_a_second']:,.0f} target pieces a second")

    def _resume(self, e: Event) -> None:
        self._say(f"going on from step {e['step']:,}")

    def _warning(self, e: Event) -> None:
        self._say(f"[yellow]warning[/] {escape(e['message'])}")

    def _skipped(self, e: Event) -> None:
        names = ", ".join(f"epoch {b['epoch']} batch {b['batch']}" for b in e["batches"])
        self._say(f"[yellow]warning[/] step {e['step']:,} skipped: loss {e['loss']} in {names}")

    def _step(self, e: Event) -> None:
        left = min((self.max_steps - e["step"]) / e["step"] * e["minutes"], self.max_minutes - e["minutes"])
        text = (
            f"step {e['step']:,} of {self.max_steps:,}  epoch {e['epoch']}  loss {e['loss']:.3f}  lr {e['lr']:.2g}  "
            f"{e['tokens_a_second']:,.0f} pieces/s  {_minutes(e['minutes'])} gone, {_minutes(left)} left"
        )
        if self.live:
            table = Table.grid()
            table.add_row(_bar(e["step"] / self.max_steps))
            table.add_row(text)
            table.add_row(f"[dim]{self.dev}[/]")
            self.live.update(table)
        elif time.monotonic() - self.last_line >= LINE_EVERY_S:
            self.last_line = time.monotonic()
            self._say(text)

    def _validation(self, e: Event) -> None:
        scores = "".join(f"  {name} {e[name]:.2f}" for name in e["signatures"])
        better = "  best so far" if e["better"] else ""
        self.dev = f"dev at step {e['step']:,}: loss {e['loss']:.3f}  perplexity {e['perplexity']:.2f}{scores}{better}"
        self._say(self.dev)
        if e["samples"]:
            source, _, output = e["samples"][0]
            self._say(f"  [dim]{escape(source[:150])}  =>  {escape(output[:150])}[/]")

    def _stopped(self, e: Event) -> None:
        self._say(f"stopped at step {e['step']:,} and saved; the same command goes on from there")

    def _finished(self, e: Event) -> None:
        self._say(f"finished already: {e['reason']}; the model is {escape(e['model'])}")

    def _end(self, e: Event) -> None:
        self._say(f"done: {e['reason']}, {e['step']:,} steps in {_minutes(e['minutes'])}")
        self._say(f"  mean of {len(e['averaged'])} checkpoints; on dev: perplexity {e['perplexity']:.2f}")
        for name, (value, signature) in e["scores"].items():
            self._say(f"  {name} {value:.2f}  [dim]{escape(signature)}[/]")
        self._say(f"  model  {escape(e['model'])}\n  report {escape(e['report'])}")
        self._say(f"next: headwise translate --model {escape(e['model'])} < in.txt > out.txt")


def _minutes(minutes: float) -> str:
    if minutes >= 90:
        return f"{minutes / 60:.1f} h"
    return f"{minutes:.0f} min" if minutes >= 2 else f"{60 * minutes:.0f} s"


def _bar(share: float) -> str:
    full = round(40 * min(1.0, share))
    return f"[cyan]{'━' * full}[/][dim]{'━' * (40 - full)}[/] {share:.0%}"
