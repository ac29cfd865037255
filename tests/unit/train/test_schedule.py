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
