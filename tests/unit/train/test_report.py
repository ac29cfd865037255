"""The report shows what the log says, and what users wrote stays text."""

import re
from xml.etree import ElementTree

import torch  # noqa: F401

from headwise.config import load_config
from headwise.train.report import curve, figure, page

EVENTS = [
    {"event": "check", "warnings": {"empty side": {"count": 3}}},
    *({"event": "step", "step": s, "nll": 9.0 - s / 10, "lr": s / 1000, "tokens_a_second": 500} for s in range(10, 50, 10)),
    {"event": "step", "step": 50, "nll": "nan", "lr": 0.1, "tokens_a_second": 500},
    {"event": "skipped", "step": 50, "loss": "nan"},
    {"event": "validation", "step": 40, "loss": 5.0, "BLEU": 12.0, "samples": []},
    {"event": "end", "reason": "max_steps 50", "step": 50, "minutes": 2.0, "n_tokens": 12345, "averaged": [40, 50], "perplexity": 6.5,
     "scores": {"BLEU": [12.3456, "nrefs:1|tok:13a"]}, "samples": [["<b>a & b</b>", "ref", "<script>alert(1)</script>"]]},
]  # fmt: skip


def test_scores_curves_samples_and_warnings():
    text = page(EVENTS, load_config("tiny"), "run <one>")
    assert "<title>run &lt;one&gt;: und to und</title>" in text
    assert "12.35 <code class=dim>nrefs:1|tok:13a</code>" in text
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text
    assert "<script" not in text
    assert "<li>step 50 was skipped: its loss was nan</li><li>data: empty side, 3 times</li>" in text
    assert len(re.findall("<polyline", text)) == 5


def test_curves_lie_where_they_should():
    svg = figure("loss", {"a": [(0, 4.0), (10, 2.0)], "b": [(10, 3.0)]})
    root = ElementTree.fromstring(svg)
    lines = [line.attrib["points"] for line in root.iter("polyline")]
    (x0, y0), (x1, y1) = [tuple(map(float, point.split(","))) for point in lines[0].split()]
    assert x0 < x1
    assert y0 < y1  # down the page
    assert float(lines[1].split(",")[1]) == (y0 + y1) / 2
    assert figure("none", {"a": []}) == ""


def test_what_is_no_number_is_left_out():
    assert [x for x, _ in curve([e for e in EVENTS if e["event"] == "step"], "nll")] == [10, 20, 30, 40]


def test_a_run_that_goes_on():
    assert "This run has not ended yet." in page(EVENTS[:-1], load_config("tiny"), "run")
