"""The decoder's memory: reordered, fanned out and shrunk, it continues as if decoded anew."""

import pytest
import torch

from headwise.model.state import FIRST_CAPACITY

NOISE = 2e-5


@pytest.mark.parametrize("positions", ["paper", "rotary"])
def test_reordered_rows_continue_as_if_decoded_anew(positions, make_model, batch):
    """A run like beam search's: fan out to 3, shuffle, drop sentences, narrow to 2; each row against its own prefix."""
    model, (src, _) = make_model(positions=positions), batch
    torch.manual_seed(4)
    prefixes = torch.full((5, 0), 0)
    sentence = torch.arange(5)
    state = model.start(src)
    plan = [
        torch.arange(5)[:, None].expand(5, 3),  # each sentence fans out
        torch.tensor([[2, 0, 0], [3, 4, 5], [8, 7, 6], [11, 11, 11], [13, 12, 14]]),
        torch.tensor([[1, 1, 2], [9, 10, 9], [14, 12, 13]]),  # sentences 1 and 2 leave
        torch.tensor([[8, 7, 6], [0, 1, 0]]),  # 3 leaves; the two left change places
        torch.tensor([[0, 2], [3, 4]]),  # hypotheses narrow
        torch.tensor([[0, 1], [2, 3]]),  # nothing moves
    ]
    for rows in plan:
        last = torch.randint(3, 31, (len(sentence),))
        prefixes = torch.cat((prefixes, last[:, None]), dim=1)
        log_probs, state = model.step(last, state)
        with torch.no_grad():
            expected = model(src[sentence], prefixes)[:, -1].log_softmax(dim=-1)
        torch.testing.assert_close(log_probs, expected, rtol=0, atol=NOISE)
        state, prefixes, sentence = state.reorder(rows), prefixes[rows.flatten()], sentence[rows.flatten()]
    assert state.n_sentences == 2
    assert sentence.tolist() == [4, 4, 0, 0]


def test_the_source_is_kept_per_sentence_not_per_hypothesis(make_model, batch):
    model, (src, _) = make_model(), batch
    state = model.start(src)
    wide = state.reorder(torch.arange(5)[:, None].expand(5, 4))
    assert wide.k.size(2) == 20
    assert wide.memory_k.shape == (3, 5, 3, 7, 10)
    assert wide.memory_k.data_ptr() == state.memory_k.data_ptr()


def test_the_cache_is_preallocated(make_model, batch):
    """Steps and reorderings write in place; only when it is full does the cache move, to twice the room."""
    model, (src, _) = make_model(), batch
    state = model.start(src)
    here = state.k.data_ptr()
    for t in range(FIRST_CAPACITY + 1):
        assert (state.k.data_ptr() == here) == (t <= FIRST_CAPACITY)
        _, state = model.step(torch.full((5,), 3), state)
        if t % 7 == 0:
            state = state.reorder(torch.arange(5)[:, None])
    assert state.k.size(1) == 2 * FIRST_CAPACITY
    assert state.k.data_ptr() != here


def test_only_moved_rows_are_written(make_model, batch):
    model, (src, _) = make_model(), batch
    _, state = model.step(torch.full((5,), 3), model.start(src))
    state.k[:, 0, :] = torch.arange(5.0)[:, None, None]
    moved = state.reorder(torch.tensor([[0], [1], [4]]))
    assert moved.k[0, 0, :, 0, 0].tolist() == [0, 1, 4]
    assert moved.k.data_ptr() == state.k.data_ptr()
