"""Greedy and beam search proved on toys: against exhaustion, against plain loops, alone and in company."""

import itertools
import math

import pytest
import torch
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from toys import ToyState, log_probs_after, toy_step

from headwise.config import SearchConfig
from headwise.errors import InputError
from headwise.search.beam import Candidates, Finished, beam, finish, grow, keep, stop
from headwise.search.greedy import greedy
from headwise.search.hypothesis import Hypothesis
from headwise.search.task import Task


def score(log_prob: float, n_pieces: int, complete: bool, search: SearchConfig) -> float:
    """The three dialects, each in its own words."""
    if search.length_penalty == "gnmt":
        return log_prob / (((5 + n_pieces + complete) / 6) ** search.alpha)
    if search.length_penalty == "length":
        return log_prob / max(n_pieces, 1) ** search.alpha
    return log_prob / (n_pieces + complete) ** search.alpha


def exhaustive(seed: int, vocab_size: int, bos: int, eos: int, limit: int, search: SearchConfig) -> list[tuple]:
    """All there is, best first: every sequence that ends within the limit, and every one cut by it."""
    found = []
    pieces = [piece for piece in range(vocab_size) if piece != eos]
    for n in range(limit + 1):
        for ids in itertools.product(pieces, repeat=n):
            complete = n < limit
            whole = (*ids, eos) if complete else ids
            log_prob = sum(log_probs_after(seed, (bos, *whole[:t]), vocab_size)[whole[t]] for t in range(len(whole)))
            found.append((score(log_prob, n, complete, search), ids))
    return sorted(found, reverse=True)


def plain_beam(seed: int, vocab_size: int, bos: int, eos: int, limit: int, search: SearchConfig) -> list[tuple]:
    """Beam search over one sentence with lists, written independently of the one under test."""
    live, done, n_ever = [(0.0, ())], [], 0
    for t in range(1, limit + 1):
        grown = [
            (log_prob + table[piece], (*ids, piece))
            for log_prob, ids in live
            for table in [log_probs_after(seed, (bos, *ids), vocab_size)]
            for piece in range(vocab_size)
        ]
        grown.sort(reverse=True)
        for log_prob, ids in grown[: search.beam_size]:
            if ids[-1] == eos:
                done.append((score(log_prob, t - 1, True, search), ids[:-1]))
            elif t == limit:
                done.append((score(log_prob, t, False, search), ids))
        n_ever = len(done)
        live = [c for c in grown[: 2 * search.beam_size] if c[1][-1] != eos][: search.beam_size]
        done.sort(reverse=True)
        if not live:
            break
        if search.stop == "finished" and n_ever >= search.beam_size:
            break
        if search.stop == "bound" and done and done[0][0] >= score(live[0][0], limit, False, search):
            break
    return done[: search.beam_size]


penalties = st.sampled_from(["gnmt", "length", "length+eos"])
alphas = st.sampled_from([0.0, 0.6, 1.0, 1.7])
stops = st.sampled_from(["finished", "bound"])
seeds = st.integers(0, 10_000)


def same(ours: list[Hypothesis], theirs: list[tuple]) -> None:
    assert [h.ids for h in ours] == [ids for _, ids in theirs]
    assert [h.score for h in ours] == pytest.approx([score for score, _ in theirs], rel=1e-9)


@hypothesis_settings(max_examples=60)
@given(seeds, st.integers(2, 4), st.integers(1, 4), penalties, alphas, stops)
def test_a_beam_wide_enough_is_exhaustive(seed, vocab_size, limit, penalty, alpha, stop_rule):
    """No candidate is ever left out, so the best found is the best there is; `finished` even lists all of them."""
    width = vocab_size**limit + 1
    search = SearchConfig(beam_size=width, length_penalty=penalty, alpha=alpha, stop=stop_rule)
    [ours] = beam(toy_step, ToyState.start(vocab_size, [seed]), Task(0, vocab_size - 1, [limit]), search)
    everything = exhaustive(seed, vocab_size, 0, vocab_size - 1, limit, search)
    assert ours[0].ids == everything[0][1]
    assert ours[0].score == pytest.approx(everything[0][0])
    if stop_rule == "finished":
        same(ours, everything)


@hypothesis_settings(max_examples=120)
@given(
    st.lists(seeds, min_size=1, max_size=5), st.integers(3, 9), st.integers(1, 6), penalties, alphas, stops, st.data()
)
def test_in_any_company_it_is_the_plain_beam_search(batch, vocab_size, width, penalty, alpha, stop_rule, data):
    """Sentences of different limits leave the batch at different steps; each finds what it finds alone, in loops."""
    limits = data.draw(st.lists(st.integers(1, 7), min_size=len(batch), max_size=len(batch)))
    search = SearchConfig(beam_size=width, length_penalty=penalty, alpha=alpha, stop=stop_rule)
    eos = vocab_size - 2
    together = beam(toy_step, ToyState.start(vocab_size, batch), Task(1, eos, limits), search)
    for ours, seed, limit in zip(together, batch, limits, strict=True):
        same(ours, plain_beam(seed, vocab_size, 1, eos, limit, search))


@given(st.lists(seeds, min_size=1, max_size=5), st.integers(2, 7), penalties, alphas, st.data())
def test_greedy_is_a_beam_of_one(batch, vocab_size, penalty, alpha, data):
    limits = data.draw(st.lists(st.integers(1, 9), min_size=len(batch), max_size=len(batch)))
    search = SearchConfig(beam_size=1, length_penalty=penalty, alpha=alpha, stop="finished")
    task = Task(0, vocab_size - 1, limits)
    ones = greedy(toy_step, ToyState.start(vocab_size, batch), task, search)
    beams = beam(toy_step, ToyState.start(vocab_size, batch), task, search)
    for one, [only] in zip(ones, beams, strict=True):
        assert (one.ids, one.complete) == (only.ids, only.complete)
        assert (one.log_prob, one.score) == pytest.approx((only.log_prob, only.score))


@given(seeds, st.integers(2, 7), st.integers(1, 9))
def test_greedy_takes_the_likeliest_at_every_step(seed, vocab_size, limit):
    [one] = greedy(toy_step, ToyState.start(vocab_size, [seed]), Task(0, vocab_size - 1, [limit]), SearchConfig())
    ids: list[int] = []
    log_prob = 0.0
    for _ in range(limit):
        table = log_probs_after(seed, (0, *ids), vocab_size)
        log_prob += table.max()
        if table.argmax() == vocab_size - 1:
            break
        ids.append(int(table.argmax()))
    assert one.ids == tuple(ids)
    assert one.complete == (len(ids) < limit)
    assert one.log_prob == pytest.approx(log_prob)


@given(seeds, st.integers(3, 6), st.integers(1, 5), stops)
def test_what_is_never_to_be_generated_is_not(seed, vocab_size, width, stop_rule):
    search = SearchConfig(beam_size=width, stop=stop_rule)
    task = Task(0, vocab_size - 1, [6], never=(0, 1))
    [ours] = beam(toy_step, ToyState.start(vocab_size, [seed]), task, search)
    one = greedy(toy_step, ToyState.start(vocab_size, [seed]), task, search)
    assert ours
    for hypothesis in (*ours, *one):
        assert not {0, 1} & set(hypothesis.ids)


def test_a_wider_beam_finds_what_greedy_misses():
    """The likeliest first piece (0.6) leads nowhere good; the other ends at once: 0.4 beats 0.6 * 0.5."""
    after = {(): [0.6, 0.4, 0.0], (0,): [0.25, 0.25, 0.5], (1,): [0.0, 0.0, 1.0]}

    class State:
        def __init__(self, prefixes):
            self.prefixes = prefixes

        def reorder(self, rows):
            return State([self.prefixes[row] for row in rows.flatten().tolist()])

    def step(last, state):
        prefixes = [(*p, i) if i != 9 else () for p, i in zip(state.prefixes, last.tolist(), strict=True)]
        return torch.tensor([after.get(p, [0.0, 0.0, 1.0]) for p in prefixes]).log(), State(prefixes)

    task = Task(bos_id=9, eos_id=2, max_steps=[4])
    search = SearchConfig(beam_size=2, alpha=0.0)
    assert greedy(step, State([()]), task, search)[0].ids == (0,)
    [best, second] = beam(step, State([()]), task, search)[0]
    assert best.ids == (1,)
    assert best.log_prob == pytest.approx(math.log(0.4))
    assert second.log_prob == pytest.approx(math.log(0.3))


def test_no_sentences_no_steps():
    assert beam(toy_step, ToyState.start(3, []), Task(0, 2, []), SearchConfig()) == []
    assert greedy(toy_step, ToyState.start(3, []), Task(0, 2, []), SearchConfig()) == []


def test_a_limit_below_one_is_refused():
    with pytest.raises(InputError, match="at least 1"):
        Task(0, 2, [3, 0])


# The parts of the loop, one by one.


def test_grow_takes_the_best_of_all_continuations():
    live = Candidates(torch.tensor([[[7], [8]]]), torch.tensor([[-1.0, -2.0]]), torch.zeros(1, 2, dtype=torch.long))
    grown = grow(live, torch.tensor([[-3.0, -0.5, -9.0], [-0.1, -4.0, -0.2]]), 4)
    assert grown.ids.tolist() == [[[7, 1], [8, 0], [8, 2], [7, 0]]]
    assert grown.log_prob[0].tolist() == pytest.approx([-1.5, -2.1, -2.2, -4.0])
    assert grown.parent.tolist() == [[0, 1, 1, 0]]


def test_finish_only_counts_ends_among_the_first_beam_size():
    nothing = Finished(
        ids=torch.zeros(1, 2, 1, dtype=torch.long),
        n_pieces=torch.zeros(1, 2, dtype=torch.long),
        log_prob=torch.full((1, 2), -torch.inf),
        score=torch.full((1, 2), -torch.inf),
        complete=torch.zeros(1, 2, dtype=torch.bool),
        n_ever=torch.zeros(1, dtype=torch.long),
    )
    grown = Candidates(
        torch.tensor([[[7, 3], [7, 9], [8, 9], [8, 3]]]), torch.tensor([[-1.0, -2.0, -3.0, -4.0]]), torch.zeros(1, 4)
    )
    search = SearchConfig(beam_size=2, length_penalty="length+eos", alpha=1.0)
    done = finish(nothing, grown, torch.tensor([False]), eos_id=9, search=search)
    assert done.n_ever.tolist() == [1]
    assert done.score[0].tolist() == [-1.0, -torch.inf]  # -2 over two steps
    assert done.ids[0, 0].tolist() == [7, 9]
    cut = finish(nothing, grown, torch.tensor([True]), eos_id=9, search=search)
    assert cut.n_ever.tolist() == [2]
    assert cut.score[0].tolist() == [-0.5, -1.0]
    assert cut.complete[0].tolist() == [False, True]


def test_keep_leaves_out_what_has_ended():
    grown = Candidates(
        torch.tensor([[[9], [3], [9], [4]]]), torch.tensor([[-1.0, -2.0, -3.0, -4.0]]), torch.tensor([[0, 0, 0, 0]])
    )
    assert keep(grown, eos_id=9, n=2).ids.tolist() == [[[3], [4]]]
    assert keep(grown, eos_id=9, n=3).log_prob.tolist() == [[-2.0, -4.0, -torch.inf]]


@pytest.mark.parametrize(("best_live", "over"), [(-7.9, False), (-8.1, True), (-torch.inf, True)])
def test_the_bound_is_the_live_score_at_the_limit(best_live, over):
    """Finished at -2; a live one could at best keep its log probability and be divided by 4, at the limit of 4."""
    count = torch.zeros(1, 1, dtype=torch.long)
    done = Finished(count[..., None], count, torch.tensor([[-2.0]]), torch.tensor([[-2.0]]), count.bool(), count[0] + 1)
    live = Candidates(count[..., None], torch.tensor([[best_live]]), count)
    search = SearchConfig(beam_size=1, length_penalty="length+eos", alpha=1.0, stop="bound")
    assert stop(done, live, torch.tensor([4]), search).tolist() == [over]
