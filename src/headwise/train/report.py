"""report.html: curves, scores and samples of a run on one page that needs nothing else."""

from collections.abc import Sequence
from html import escape
from typing import Any

from headwise import __version__
from headwise.atomic import write_text
from headwise.config import RunConfig
from headwise.runfile import to_toml
from headwise.train.folder import RunFolder
from headwise.train.log import Event, read_log

Curve = list[tuple[float, float]]
WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 640, 260, 56, 12, 12, 30
COLOURS = ("#2563a8", "#c2571a")
STYLE = """
:root { color-scheme: light dark; --line: #8884; --dim: #777; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 1360px; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.4rem; } h2 { font-size: 1.1rem; margin-top: 2rem; }
.curves { display: flex; flex-wrap: wrap; gap: 1rem; } figure { margin: 0; flex: 1 1 520px; max-width: 660px; }
figcaption { font-weight: 600; } svg { width: 100%; height: auto; } svg text { font-size: 12px; fill: currentColor; }
table { border-collapse: collapse; } td, th { text-align: left; padding: .25rem .8rem .25rem 0; vertical-align: top;
border-bottom: 1px solid var(--line); } code, pre { font-size: 13px; } .dim { color: var(--dim); }
.samples td:first-child { white-space: nowrap; color: var(--dim); } tr.last td { border-bottom-width: 3px; }
"""


def write_report(folder: RunFolder, config: RunConfig) -> None:
    """From the log of the run."""
    write_text(folder.report, page(read_log(folder.log_file), config, folder.path.name))


def page(events: Sequence[Event], config: RunConfig, name: str) -> str:
    """The whole page."""
    steps = [e for e in events if e["event"] == "step"]
    dev = [e for e in events if e["event"] == "validation"]
    end = next((e for e in reversed(events) if e["event"] == "end"), None)
    title = f"{name}: {config.data.source_lang} to {config.data.target_lang}"
    figures = [
        figure("Loss, nats a target piece", {"train": curve(steps, "nll"), "dev": curve(dev, "loss")}),
        figure("BLEU on dev, greedy", {"BLEU": curve(dev, "BLEU")}),
        figure("Learning rate", {"lr": curve(steps, "lr")}),
        figure("Target pieces a second", {"speed": curve(steps, "tokens_a_second")}),
    ]
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>{escape(title)}</title><style>{STYLE}</style></head><body>
<h1>{escape(title)}</h1>
{_summary(end)}
<h2>Curves</h2><div class="curves">{"".join(figures)}</div>
{_samples(end["samples"] if end else dev[-1]["samples"] if dev else [])}
{_warnings(events)}
<h2>Settings</h2><details><summary>run.toml</summary><pre>{escape(to_toml(config))}</pre></details>
<p class="dim">headwise {__version__}</p>
</body></html>
"""


def curve(events: Sequence[Event], name: str) -> Curve:
    """A value over the steps; what is not a finite number is left out."""
    return [(e["step"], e[name]) for e in events if isinstance(e.get(name), int | float)]


def figure(caption: str, curves: dict[str, Curve]) -> str:
    """Curves over the steps, as SVG; nothing where there are no points."""
    points = [point for line in curves.values() for point in line]
    if not points:
        return ""
    x_most = max(x for x, _ in points)
    low, high = min(y for _, y in points), max(y for _, y in points)
    low, high = (min(low, 0.0) if low < (high - low) else low), high if high > low else low + 1
    ticks = [low + (high - low) * i / 4 for i in range(5)]

    def x_of(x: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * x / max(x_most, 1)

    def y_of(y: float) -> float:
        return TOP + (HEIGHT - TOP - BOTTOM) * (high - y) / (high - low)

    parts = []
    for tick in ticks:
        y = y_of(tick)
        parts.append(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}" stroke="#8884"/>')
        parts.append(f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{_short(tick)}</text>')
    for i in range(5):
        x = x_most * i / 4
        anchor = "end" if i == 4 else "middle"  # the last one would stand out of the picture
        parts.append(f'<text x="{x_of(x):.1f}" y="{HEIGHT - 8}" text-anchor="{anchor}">{x:,.0f}</text>')
    for (name, line), colour in zip(curves.items(), COLOURS, strict=False):
        path = " ".join(f"{x_of(x):.1f},{y_of(y):.1f}" for x, y in line)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="1.6"/>')
        if len(curves) > 1:
            parts.append(
                f'<text x="{WIDTH - RIGHT - 8}" y="{TOP + 16 + 16 * list(curves).index(name)}" text-anchor="end" '
                f'style="fill:{colour}">{escape(name)}</text>'
            )
    svg = f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(caption)}">{"".join(parts)}</svg>'
    return f"<figure><figcaption>{escape(caption)}</figcaption>{svg}</figure>"


def _short(number: float) -> str:
    return f"{number:,.0f}" if abs(number) >= 1000 else f"{number:.3g}"


def _summary(end: Event | None) -> str:
    if end is None:
        return "<p>This run has not ended yet.</p>"
    rows = [
        ("steps", f"{end['step']:,} ({end['reason']})"),
        ("time", f"{end['minutes']:.1f} minutes"),
        ("target pieces", f"{end['n_tokens']:,}"),
        ("checkpoints averaged", ", ".join(f"{step:,}" for step in end["averaged"])),
        ("perplexity on dev", f"{end['perplexity']:.2f}"),
    ]
    table = "".join(f"<tr><th>{escape(name)}</th><td>{escape(value)}</td></tr>" for name, value in rows)
    for name, (value, signature) in end["scores"].items():
        table += f"<tr><th>{name} on dev</th><td>{value:.2f} <code class=dim>{escape(signature)}</code></td></tr>"
    return f"<table>{table}</table>"


def _samples(samples: Sequence[Sequence[str]]) -> str:
    if not samples:
        return ""
    rows = "".join(
        f"<tr><td>source</td><td>{escape(src)}</td></tr><tr><td>reference</td><td>{escape(ref)}</td></tr>"
        f"<tr class=last><td>translation</td><td>{escape(out)}</td></tr>"
        for src, ref, out in samples
    )
    return f"<h2>Samples from dev</h2><table class=samples>{rows}</table>"


def _warnings(events: Sequence[Event]) -> str:
    lines: list[Any] = [e["message"] for e in events if e["event"] == "warning"]
    lines += [f"step {e['step']} was skipped: its loss was {e['loss']}" for e in events if e["event"] == "skipped"]
    for e in events:
        if e["event"] == "check":
            lines += [f"data: {name}, {found['count']:,} times" for name, found in e["warnings"].items()]
    if not lines:
        return ""
    return "<h2>Warnings</h2><ul>" + "".join(f"<li>{escape(str(line))}</li>" for line in lines) + "</ul>"
