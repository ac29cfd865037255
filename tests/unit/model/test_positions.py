"""Sinusoids redone by hand, rotary's defining property, learned positions and their limit."""

import math
from typing import get_args

import pytest
import torch

from headwise.config import ModelConfig, PositionName, SinusoidName
from headwise.errors import InputError
from headwise.model.positions import DIALECTS, TABLE_ROWS, Learned, Sinusoidal, rotate, sinusoids

SIZES = {"vocab_size": 7, "d_ff": 3, "n_heads": 2, "n_encoder_layers": 1, "n_decoder_layers": 1}


def by_hand(dialect: str, pos: int, d: int) -> list[float]:
    """The five readings, each written as its toolkit would."""
    halves = {
        "hf-marian": (d / 2, 0),
        "tensor2tensor": (d / 2 - 1, 0),
        "fairseq": (d / 2 - 1, 2),
        "ctranslate2": (d / 2 - 1, 1),
    }
    if dialect == "paper":
        return [
            math.sin(pos / 10000 ** (j / d)) if j % 2 == 0 else math.cos(pos / 10000 ** ((j - 1) / d)) for j in range(d)
        ]
    divisor, first = halves[dialect]
    angles = [(pos + first) * math.exp(-math.log(10000) * i / divisor) for i in range(d // 2)]
    return [math.sin(a) for a in angles] + [math.cos(a) for a in angles]


@pytest.mark.parametrize("dialect", get_args(SinusoidName))
def test_sinusoids_by_hand(dialect):
    table = sinusoids(0, 600, 22, DIALECTS[dialect])
    expected = torch.tensor([by_hand(dialect, pos, 22) for pos in range(600)])
    torch.testing.assert_close(table, expected, rtol=0, atol=2e-7)


def test_paper_first_rows():
    """Position 0 is 0, 1, 0, 1 ...; the first pair turns by one radian a position."""
    table = sinusoids(0, 3, 6, DIALECTS["paper"])
    assert table[0].tolist() == [0, 1, 0, 1, 0, 1]
    assert table[2, 0].item() == pytest.approx(math.sin(2))
    assert table[2, 1].item() == pytest.approx(math.cos(2))


def test_paper_takes_an_odd_width():
    torch.testing.assert_close(sinusoids(5, 1, 7, DIALECTS["paper"])[0], torch.tensor(by_hand("paper", 5, 7)))


def test_paper_and_marian_differ_by_a_permutation():
    paper, marian = sinusoids(0, 50, 16, DIALECTS["paper"]), sinusoids(0, 50, 16, DIALECTS["hf-marian"])
    assert torch.equal(torch.cat((paper[:, 0::2], paper[:, 1::2]), dim=1), marian)


def test_the_table_names_every_dialect_of_the_settings():
    assert set(DIALECTS) == set(get_args(SinusoidName))
    names = {name for part in get_args(PositionName) for name in get_args(part)}
    assert names == set(DIALECTS) | {"learned", "rotary", "none"}


def test_past_the_table_sinusoids_go_on():
    module = Sinusoidal(ModelConfig(**SIZES, d_model=10, positions="fairseq"))
    across = module(TABLE_ROWS - 3, 7)
    assert torch.equal(across, sinusoids(TABLE_ROWS - 3, 7, 10, DIALECTS["fairseq"]))
    assert torch.equal(across[:3], module(TABLE_ROWS - 3, 3))


def test_learned_positions_have_an_end():
    learned = Learned(ModelConfig(**SIZES, d_model=10, positions="learned", max_positions=5))
    assert torch.equal(learned(2, 3), learned.weight[2:5])
    with pytest.raises(InputError, match="6 pieces are too many for 5 learned positions"):
        learned(2, 4)


def test_rotary_scores_depend_on_distance_alone():
    torch.manual_seed(1)
    q, k = torch.randn(1, 1, 1, 10, dtype=torch.float64), torch.randn(1, 1, 1, 10, dtype=torch.float64)

    def score(at_q: int, at_k: int) -> float:
        return (rotate(q, at_q) * rotate(k, at_k)).sum().item()

    assert score(5, 2) == pytest.approx(score(105, 102), abs=1e-6)
    assert score(5, 2) != pytest.approx(score(5, 3), abs=1e-3)
    assert torch.equal(rotate(q, 0), q)


def test_rotary_turns_the_first_pair_by_one_radian():
    x = torch.tensor([1.0, 0.0, 0.0, 0.0]).view(1, 1, 1, 4)
    assert rotate(x, 1).flatten().tolist() == pytest.approx([math.cos(1), 0, math.sin(1), 0])
