"""Equation 3, by hand."""

import pytest
import torch  # noqa: F401

from headwise.config import load_config
from headwise.train.schedule import learning_rate


@pytest.mark.parametrize("step", [1, 7, 3999, 4000, 4001, 100_000])
def test_equation_3(step):
    rate = learning_rate(step, load_config("base").train, 512)
    assert rate == pytest.approx(512**-0.5 * min(step**-0.5, step * 4000**-1.5))


def test_a_peak_of_its_own():
    train = load_config("tiny").train
    assert learning_rate(2000, train, 128) == pytest.approx(0.005)
    assert learning_rate(500, train, 128) == pytest.approx(0.005 / 4)
    assert learning_rate(8000, train, 128) == pytest.approx(0.005 / 2)


@pytest.mark.parametrize(
    ("schedule", "rates"),
    [("linear", (0.05, 0.1, 0.05, 0.0)), ("cosine", (0.05, 0.1, 0.05, 0.0)), ("constant", (0.05, 0.1, 0.1, 0.1))],
)
def test_others_by_name(schedule, rates):
    """At half of the warm-up, at its end, half-way from there, at the last step."""
    train = load_config(
        "tiny",
        overrides=[f"train.schedule={schedule}", "train.peak_lr=0.1", "train.warmup_steps=20", "train.max_steps=120"],
    ).train
    assert [learning_rate(step, train, 128) for step in (10, 20, 70, 120)] == pytest.approx(rates)
    quarter = learning_rate(45, train, 128)
    assert quarter == pytest.approx({"linear": 0.075, "cosine": 0.05 * (1 + 0.5**0.5), "constant": 0.1}[schedule])
