"""Attention as a picture: in blocks for a terminal, and as SVG; rows are what is written, columns what is looked at."""

from html import escape
from itertools import zip_longest

from headwise.engine.contract import Array
from headwise.explain.heads import Heads

SHADES = " ░▒▓█"
CELL, LABEL, LETTER = 26, 16, 10  # pixels: a cell, the height and the width of a letter beside it
MARGIN, HEADER, CAPTION = 24, 84, 28  # around the picture, above the first map, above each map
INK, PAPER, TEXT, DIM = "#17478a", "#eef2f7", "#1c2733", "#5b6875"
FONT = "ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace"
FAINT = 0.01  # of the largest weight; less is not drawn


def in_blocks(heads: Heads) -> str:
    """The mean of the heads, a character a cell; the darkest block is the largest weight of its row."""
    mean = heads.mean
    levels = (mean / mean.max(axis=1, keepdims=True) * (len(SHADES) - 1)).round().astype(int)
    wide = max(map(len, heads.target))
    lines = [" " * wide + "  " + "".join(letters) for letters in zip_longest(*heads.source, fillvalue=" ")]
    for piece, row in zip(heads.target, levels, strict=True):
        lines.append(f"{piece:>{wide}}  " + "".join(SHADES[level] for level in row))
    return "\n".join(line.rstrip() for line in lines)


def in_svg(heads: Heads) -> str:
    """The mean of the heads, and below it every head, two in a row, each shaded up to its own largest weight."""
    wide, high = _size(heads)
    small = (wide - MARGIN) / 2 / wide
    parts = [_map(heads, heads.mean, f"mean of {len(heads.weights)} heads", MARGIN, HEADER, 1)]
    for i, weights in enumerate(heads.weights):
        x = MARGIN + i % 2 * (small * wide + MARGIN)
        y = HEADER + CAPTION + high + MARGIN + i // 2 * (CAPTION + small * high + MARGIN)
        parts.append(_map(heads, weights, f"head {i + 1}", x, y, small))
    width, height = wide + 2 * MARGIN, y + CAPTION + small * high + MARGIN
    title = f"{_text(heads.source)} → {_text(heads.target)}"
    about = f"cross-attention of decoder layer {heads.layer}: each row is written by looking at its dark columns"
    return "\n".join(
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" role="img" '
            f'aria-labelledby="title about" font-family="{FONT}">',
            f'<title id="title">{escape(title)}</title>',
            f'<desc id="about">{escape(about)}. {escape(_darkest(heads))}</desc>',
            '<rect width="100%" height="100%" fill="#fff"/>',
            f'<text x="{MARGIN}" y="42" font-size="20" font-weight="600" fill="{TEXT}">{escape(title)}</text>',
            f'<text x="{MARGIN}" y="66" font-size="13" fill="{DIM}">{escape(about)}</text>',
            *parts,
            "</svg>\n",
        )
    )


def _size(heads: Heads) -> tuple[int, int]:
    """Of a map with its labels."""
    left, top = _edges(heads)
    return left + len(heads.source) * CELL, top + len(heads.target) * CELL


def _edges(heads: Heads) -> tuple[int, int]:
    """How much the labels take, at the left and above; long ones above stand on end."""
    longest = max(map(len, heads.source))
    return max(map(len, heads.target)) * LETTER + 12, (longest * LETTER if longest > 1 else LABEL) + 6


def _map(heads: Heads, weights: Array, caption: str, x: float, y: float, scale: float) -> str:
    """One map of weights `(T_tgt, T_src)` below its caption."""
    left, top = _edges(heads)
    n_rows, n_columns = weights.shape
    largest = weights.max()
    cells = [
        f'<rect x="{left + j * CELL}" y="{top + i * CELL}" width="{CELL}" height="{CELL}" '
        f'fill-opacity="{weights[i, j] / largest:.2f}">'
        f"<title>{escape(heads.target[i])} from {escape(heads.source[j])}: {weights[i, j]:.2f}</title></rect>"
        for i in range(n_rows)
        for j in range(n_columns)
        if weights[i, j] >= FAINT * largest
    ]
    lines = [f"M{left} {top + i * CELL}h{n_columns * CELL}" for i in range(1, n_rows)]
    lines += [f"M{left + j * CELL} {top}v{n_rows * CELL}" for j in range(1, n_columns)]
    return (
        f'<text x="{x + scale * left:.1f}" y="{y + 14:.1f}" font-size="13" fill="{DIM}">'
        f"{caption}, up to {largest:.2f}</text>"
        f'<g transform="translate({x:.1f} {y + CAPTION:.1f}) scale({scale:.4f})">{"".join(_labels(heads))}'
        f'<rect x="{left}" y="{top}" width="{n_columns * CELL}" height="{n_rows * CELL}" fill="{PAPER}"/>'
        f'<g fill="{INK}">{"".join(cells)}</g><path d="{"".join(lines)}" stroke="#fff" stroke-width="1.5"/></g>'
    )


def _labels(heads: Heads) -> list[str]:
    left, top = _edges(heads)
    style = f'font-size="{LABEL}" fill="{TEXT}"'
    labels = []
    for i, piece in enumerate(heads.target):
        y = top + (i + 0.5) * CELL + 0.35 * LABEL
        labels.append(f'<text x="{left - 9}" y="{y:.1f}" text-anchor="end" {style}>{escape(piece)}</text>')
    for j, piece in enumerate(heads.source):
        x, y = left + (j + 0.5) * CELL, top - 6
        turn = 'text-anchor="middle"'
        if max(map(len, heads.source)) > 1:
            x += 0.35 * LABEL
            turn = f'transform="rotate(-90 {x:.1f} {y})"'
        labels.append(f'<text x="{x:.1f}" y="{y}" {turn} {style}>{escape(piece)}</text>')
    return labels


def _text(pieces: tuple[str, ...]) -> str:
    return "".join(pieces[:-1]).strip()


def _darkest(heads: Heads) -> str:
    """Where each row looks the most, for those who do not see it."""
    most = heads.mean.argmax(axis=1)
    return "; ".join(
        f"{piece} from {heads.source[j]}, number {j + 1}" for piece, j in zip(heads.target, most, strict=True)
    )
