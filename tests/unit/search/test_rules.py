"""Each rule forbids what it says and nothing else; searches keep to all of them at once."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from toys import ToyState, log_probs_after, toy_step

from headwise.config import SearchConfig
from headwise.errors import InputError
from headwise.search import rules
from headwise.search.beam import beam
from headwise.search.greedy import greedy
from headwise.search.task import Task

INF = math.inf


def test_never():
    log_probs = torch.tensor([[-1.0, -2.0, -3.0]])
    assert rules.never(log_probs.clone(), (0, 2)).tolist() == [[-INF, -2.0, -INF]]
    assert rules.never(log_probs, ()).tolist() == [[-1.0, -2.0, -3.0]]


def test_at_least():
    log_probs = torch.tensor([[-1.0, -2.0]])
    assert rules.at_least(log_probs, 2, 3, eos_id=1).tolist() == [[-1.0, -INF]]
    assert rules.at_least(log_probs, 3, 3, eos_id=1) is log_probs


def test_follow():
    log_probs, free = torch.tensor([[-1.0, -2.0], [-3.0, -4.0]]), torch.tensor([[-INF, -2.0], [-INF, -4.0]])
    assert rules.follow(log_probs, free, torch.tensor([0, -1])).tolist() == [[-1.0, -INF], [-INF, -4.0]]


@pytest.mark.parametrize(
    ("ids", "n", "forbidden"),
    [
        ([1, 2, 3, 1, 2], 3, {3}),
        ([1, 2, 1, 3, 1], 2, {2, 3}),
        ([1, 2, 3], 1, {1, 2, 3}),
        ([1, 1, 1], 3, {1}),
        ([1, 2, 3, 1, 2], 4, set()),
        ([1, 2], 3, set()),
        ([1, 2, 1, 2], 0, set()),
        ([], 2, set()),
    ],
)
def test_no_repeat(ids, n, forbidden):
    log_probs = torch.full((2, 5), -1.0)
    others = [4, 4, 4, 4, 4][: len(ids)]
    given_ids = torch.tensor([ids, others], dtype=torch.long).view(2, len(ids))
    after = rules.no_repeat(log_probs, given_ids, n)
    assert {i for i in range(5) if after[0, i] == -INF} == forbidden
    assert {i for i in range(5) if after[1, i] == -INF} == ({4} if 0 < n <= len(ids) else set())
    assert (log_probs == -1).all()


def test_or_end():
    log_probs = torch.tensor([[-1.0, -2.0], [-1.0, -2.0]])
    free = torch.tensor([[-INF, -INF], [-1.0, -INF]])
    assert rules.or_end(log_probs, free, eos_id=1).tolist() == [[-INF, -2.0], [-1.0, -INF]]


@given(
    st.lists(st.integers(0, 10_000), min_size=1, max_size=4),
    st.integers(4, 8),
    st.integers(1, 4),
    st.integers(0, 4),
    st.integers(0, 3),
    st.data(),
)
def test_searches_keep_to_all_rules(seeds, vocab_size, width, min_pieces, no_repeat, data):
    eos, limit = vocab_size - 1, 9
    pieces = st.lists(st.integers(1, eos - 1), max_size=3)
    prefixes = data.draw(st.lists(pieces, min_size=len(seeds), max_size=len(seeds)))
    task = Task(0, eos, [limit] * len(seeds), (0,), min_pieces, no_repeat, prefixes)
    search = SearchConfig(beam_size=width, stop="finished")
    found = beam(toy_step, ToyState.start(vocab_size, seeds), task, search)
    ones = greedy(toy_step, ToyState.start(vocab_size, seeds), task, search)
    for hypotheses, one, seed, prefix in zip(found, ones, seeds, prefixes, strict=True):
        for h in (*hypotheses, one):
            ids = h.ids
            assert ids[: len(prefix)] == tuple(prefix)
            assert 0 not in ids
            assert len(ids) <= limit
            runs = [ids[i : i + no_repeat] for i in range(len(ids) - no_repeat + 1)] if no_repeat else []
            stuck = no_repeat == 1 and len(set(ids)) == vocab_size - 2  # nothing but the end was left
            assert len(ids) >= min_pieces or stuck or no_repeat
            fresh = runs[max(0, len(prefix) - no_repeat + 1) :]
            assert len(set(fresh)) == len(fresh)
            whole = (*ids, eos) if h.complete else ids
            told = sum(log_probs_after(seed, (0, *whole[:t]), vocab_size)[whole[t]] for t in range(len(whole)))
            assert h.log_prob == pytest.approx(told)  # rules choose; they do not change what a piece costs


def test_a_prefix_for_each_sentence():
    with pytest.raises(InputError, match="1 prefixes for 2 sentences"):
        Task(0, 2, [3, 3], prefix=[[1]])
