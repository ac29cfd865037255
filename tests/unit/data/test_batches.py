"""Every pair once an epoch, within the budget, shuffled by seed and epoch, and resumable from two integers."""

import itertools
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwise.data.batches import Batches, Position
from headwise.data.prepared import Prepared, Side
from headwise.errors import DataError
from headwise.text.special import BOS_ID, EOS_ID, PAD_ID


def side(lengths: list[int], first: int) -> Side:
    """Text i is so many pieces of its own number, then the end."""
    texts = [[first + i] * (n - 1) + [EOS_ID] for i, n in enumerate(lengths)]
    ids = np.fromiter(itertools.chain.from_iterable(texts), np.uint16)
    return Side(ids, np.cumsum([0, *lengths], dtype=np.int64))


def prepared(lengths: list[tuple[int, int]], begins: tuple[int, ...] = (0,)) -> Prepared:
    return Prepared(side([a for a, _ in lengths], 100), side([b for _, b in lengths], 5000), begins, 0, 0, "")


corpora = st.lists(st.tuples(st.integers(1, 40), st.integers(1, 40)), min_size=1, max_size=200)


@given(corpora, st.integers(20, 300), st.integers(0, 5), st.integers(0, 3))
def test_every_pair_once_within_the_budget(lengths, budget, seed, epoch):
    batches = Batches(prepared(lengths), budget, seed)
    plan = batches.epoch(epoch)
    assert sorted(np.concatenate(plan).tolist()) == list(range(len(lengths)))
    for pairs in plan:
        batch = batches.load(pairs, Position())
        assert max(batch.src.size, batch.tgt_out.size) <= budget or len(pairs) == 1


@given(corpora, st.integers(0, 9))
def test_a_batch_is_the_pairs_padded(lengths, seed):
    batches = Batches(prepared(lengths), 97, seed)
    for pairs in batches.epoch(0):
        batch = batches.load(pairs, Position())
        for row, i in enumerate(pairs.tolist()):
            n_src, n_tgt = lengths[i]
            assert batch.src[row].tolist() == [100 + i] * (n_src - 1) + [EOS_ID] + [PAD_ID] * (
                batch.src.shape[1] - n_src
            )
            text = [5000 + i] * (n_tgt - 1)
            padding = [PAD_ID] * (batch.tgt_out.shape[1] - n_tgt)
            assert batch.tgt_out[row].tolist() == [*text, EOS_ID, *padding]
            assert batch.tgt_in[row].tolist() == [BOS_ID, *text, *padding]
        assert batch.n_tokens == sum(lengths[i][1] for i in pairs)


@given(corpora, st.integers(0, 9), st.integers(0, 40))
def test_resuming_continues_where_it_was(lengths, seed, cut):
    """Cut anywhere, also at the border of an epoch: the batches after it are those of an unbroken run."""
    unbroken = list(itertools.islice(Batches(prepared(lengths), 60, seed).after(Position()), cut + 10))
    resumed = list(itertools.islice(Batches(prepared(lengths), 60, seed).after(unbroken[cut].position), 10))
    for ours, theirs in zip(resumed, unbroken[cut:], strict=True):
        assert ours.position == theirs.position
        assert np.array_equal(ours.pairs, theirs.pairs)
        assert np.array_equal(ours.src, theirs.src)


def test_shuffled_by_seed_and_epoch():
    lengths = [(3 + i % 5, 3 + i % 7) for i in range(300)]

    def order(seed: int, epoch: int) -> list[int]:
        return np.concatenate(Batches(prepared(lengths), 50, seed).epoch(epoch)).tolist()

    assert order(1, 0) == order(1, 0)
    assert len({tuple(order(seed, epoch)) for seed in (1, 2) for epoch in (0, 1)}) == 4
    plain = Batches(prepared(lengths), 50, 1, shuffle=False)
    assert [pairs.tolist() for pairs in plain.epoch(0)] == [pairs.tolist() for pairs in plain.epoch(1)]


def test_little_padding():
    """Lengths as in real text: a batch of some 4,000 pieces has a few per cent of padding, in any order half is."""
    random = np.random.default_rng(3)
    src = np.clip(random.gamma(6, 2.5, 20_000), 2, 80).astype(int)
    tgt = np.clip(src * random.normal(1.05, 0.15, 20_000), 2, 80).astype(int)
    batches = Batches(prepared(list(zip(src.tolist(), tgt.tolist(), strict=True))), 4096, 1)
    assert batches.padding() < 0.05
    counted = [batches.load(pairs, Position()) for pairs in batches.epoch(0)]
    cells = sum(batch.src.size + batch.tgt_out.size for batch in counted)
    padding = sum((batch.src == PAD_ID).sum() + (batch.tgt_out == PAD_ID).sum() for batch in counted)
    assert batches.padding() == pytest.approx(padding / cells)


def test_a_weight_is_how_often_a_corpus_stands_in_an_epoch():
    data = prepared([(5, 5)] * 100, begins=(0, 60))
    batches = Batches(data, 50, 1, weights=[1.0, 2.5])
    counts = [Counter(np.concatenate(batches.epoch(epoch)).tolist()) for epoch in (0, 1)]
    for count in counts:
        assert {count[i] for i in range(60)} == {1}
        assert Counter(count[i] for i in range(60, 100)) == {2: 20, 3: 20}
    assert counts[0] != counts[1]
    assert {
        count
        for i, count in Counter(np.concatenate(Batches(data, 50, 1, weights=[0.0, 1.0]).epoch(0)).tolist()).items()
    } == {1}


def test_weights_that_leave_nothing_are_refused():
    with pytest.raises(DataError, match=r"the weights \[0.0\] leave no pair in an epoch"):
        next(Batches(prepared([(5, 5)] * 3), 50, 1, weights=[0.0]).after(Position()))


def test_no_pairs_no_batches():
    with pytest.raises(DataError, match="no pairs are left"):
        Batches(prepared([]), 50, 1)


def test_every_epoch_takes_another_way_of_cutting():
    lengths = [(3, 4), (5, 2), (4, 4)]
    thrice = Prepared(
        side([a for a, _ in lengths * 3], 100), side([b for _, b in lengths * 3], 5000), (0,), 0, 0, "", 3
    )
    batches = Batches(thrice, 40, seed=1)
    assert len(thrice) == 3
    for epoch in range(6):
        pairs = np.concatenate(batches.epoch(epoch))
        assert sorted(pairs.tolist()) == [3 * (epoch % 3) + i for i in range(3)]


@pytest.mark.parametrize("n_ranks", [1, 2, 3, 5])
def test_shares_make_up_the_batch(n_ranks):
    """Three pairs among five processes: two have a pair with nothing to learn, so that none waits for ever."""
    batches = Batches(prepared([(4, 5), (3, 2), (6, 6)]), 100, seed=1)
    batch = next(batches.after(Position()))
    shares = [batch.share(rank, n_ranks) for rank in range(n_ranks)]
    assert sum(share.n_tokens for share in shares) == batch.n_tokens
    real = [row.tolist() for share in shares if share.n_tokens for row in share.src]
    assert sorted(real) == sorted(row.tolist() for row in batch.src)
    assert all(len(share.src) for share in shares)


def test_what_comes_after(tmp_path):
    batches = Batches(prepared([(9, 9)] * 5), 20, seed=1)
    seen = list(batches.after(Position(), max_epochs=2))
    assert len(seen) == 6
    for batch, following in itertools.pairwise(seen):
        assert batch.after == following.position
    assert seen[-1].after == Position(2, 0)
