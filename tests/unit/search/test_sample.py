"""Sampling draws as the model says, cut off where it is told to, and the same in any company."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from toys import ToyState, toy_step

from headwise.config import SearchConfig
from headwise.search.greedy import greedy
from headwise.search.sample import choose, drawn
from headwise.search.task import Task

PROBS = torch.tensor([0.1, 0.5, 0.05, 0.35])


def shares(search: SearchConfig) -> list[float]:
    """How often each piece is chosen over fractions that cover [0, 1) evenly."""
    n = 20_000
    fractions = (torch.arange(n, dtype=torch.float64) + 0.5) / n
    chosen = choose(PROBS.log().expand(n, -1), fractions, search)
    return (torch.bincount(chosen, minlength=4) / n).tolist()


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, [0.1, 0.5, 0.05, 0.35]),
        ({"temperature": 0.5}, [0.01 / 0.385, 0.25 / 0.385, 0.0025 / 0.385, 0.1225 / 0.385]),
        ({"top_k": 2}, [0.0, 0.5 / 0.85, 0.0, 0.35 / 0.85]),
        ({"top_k": 1}, [0.0, 1.0, 0.0, 0.0]),
        ({"top_k": 100}, [0.1, 0.5, 0.05, 0.35]),
        ({"top_p": 0.6}, [0.0, 0.5 / 0.85, 0.0, 0.35 / 0.85]),
        ({"top_p": 0.01}, [0.0, 1.0, 0.0, 0.0]),
        ({"top_k": 3, "top_p": 0.9}, [0.1 / 0.95, 0.5 / 0.95, 0.0, 0.35 / 0.95]),
    ],
)
def test_shares(settings, expected):
    assert shares(SearchConfig(**{"temperature": 1.0} | settings)) == pytest.approx(expected, abs=1e-3)


def test_what_may_not_come_is_not_drawn():
    log_probs = torch.tensor([[-1.0, -torch.inf, -torch.inf, -2.0]])
    for fraction in (0.0, 0.5, np.nextafter(1.0, 0.0)):
        assert choose(log_probs, torch.tensor([fraction]), SearchConfig(temperature=1.0)).item() in (0, 3)


@given(st.lists(st.integers(0, 10_000), min_size=1, max_size=5), st.integers(3, 9), st.integers(0, 99))
def test_the_same_in_any_company(seeds, vocab_size, seed):
    search = SearchConfig(temperature=1.3, seed=seed)
    limits = [3 + i for i in range(len(seeds))]

    def sample(chosen: list[int]) -> list:
        task = Task(0, vocab_size - 1, [limits[i] for i in chosen])
        chooser = drawn(search, [10 + i for i in chosen], max(task.max_steps), "cpu")
        return greedy(toy_step, ToyState.start(vocab_size, [seeds[i] for i in chosen]), task, search, chooser)

    together = sample(list(range(len(seeds))))
    for i in range(len(seeds)):
        [alone] = sample([i])
        assert (alone.ids, alone.complete) == (together[i].ids, together[i].complete)
        assert alone.log_prob == pytest.approx(together[i].log_prob)


def test_seeds_and_numbers_matter():
    def sample(seed: int, number: int) -> tuple[int, ...]:
        search = SearchConfig(temperature=2.0, seed=seed)
        [one] = greedy(toy_step, ToyState.start(50, [3]), Task(0, 49, [20]), search, drawn(search, [number], 20, "cpu"))
        return one.ids

    assert sample(1, 1) == sample(1, 1)
    assert len({sample(1, 1), sample(2, 1), sample(1, 2)}) == 3
