"""Both engines find the same on the dialect that both speak, and are refused what they do not."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from headwise.bundle import Bundle
from headwise.config import SearchConfig, load_config
from headwise.engine.contract import in_order
from headwise.engine.convert import write_model
from headwise.engine.ctranslate2 import CTranslate2Engine
from headwise.engine.torch import TorchEngine
from headwise.errors import InputError
from headwise.model.transformer import Transformer

SIZES = [
    "vocab_size=41",
    "d_model=24",
    "d_ff=31",
    "n_heads=4",
    "n_encoder_layers=2",
    "n_decoder_layers=3",
    "output_bias=true",
]
SHAPES = {
    "post": [],
    "pre": ["norm=pre", "activation=gelu"],
    "none": ["share_embeddings=none", "positions=learned", "max_positions=80"],
    "said": [],  # some of the pieces alone
}
SAID = (*range(4), *range(6, 41, 3), 40)


def engines(shape, folder):
    config = load_config("tiny", overrides=[f"model.{change}" for change in [*SIZES, *SHAPES[shape]]])
    torch.manual_seed(31)
    model = Transformer(config.model).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(1.5)
        model.output.bias[:4] = torch.tensor([-30.0, -30.0, 2.0, 0.0])  # no padding, no beginning, now and then an end
    bundle, said = Bundle(config, model.to_arrays()), SAID if shape == "said" else ()
    write_model(bundle, folder / "whole")
    write_model(replace(bundle, said=said), folder / "ct2")
    fast = CTranslate2Engine(folder / "ct2", config.model, "float32", 2, said, whole=lambda: folder / "whole")
    return TorchEngine(model, said), fast


@pytest.fixture(params=SHAPES)
def both(request, tmp_path):
    return engines(request.param, tmp_path)


def sources() -> list[list[int]]:
    random = np.random.default_rng(8)
    return [[*random.integers(4, 41, random.integers(1, 12)).tolist(), 2] for _ in range(40)]


SHARED = {"length_penalty": "length+eos", "stop": "finished", "alpha": 1.0, "extra_pieces": 9}


@pytest.mark.parametrize(
    "changes", [{"beam_size": 1}, {"beam_size": 4}, {"beam_size": 1, "min_pieces": 4}, {"beam_size": 1, "no_repeat": 2}]
)
def test_the_same_hypotheses(both, changes):
    search = SearchConfig(**SHARED | changes)
    ours, theirs = (in_order(engine.generate(sources(), search)) for engine in both)
    for mine, other in zip(ours, theirs, strict=True):
        assert mine[0].ids == other[0].ids
        assert mine[0].complete == other[0].complete
        assert (mine[0].score, mine[0].log_prob) == pytest.approx((other[0].score, other[0].log_prob), rel=1e-3)


def test_the_same_from_a_prefix(both):
    prefixes = [[5, 9][: i % 3] for i in range(40)]
    search = SearchConfig(**SHARED | {"beam_size": 1})
    for [mine], [other] in zip(
        *(in_order(engine.generate(sources(), search, prefixes)) for engine in both), strict=True
    ):
        assert mine.ids == other.ids
        assert (mine.score, mine.log_prob) == pytest.approx((other.score, other.log_prob), rel=1e-3)


def test_the_same_scores_and_attention(both):
    targets = [[*source[:-1][::-1], 2] for source in sources()]
    for mine, other in zip(*(engine.score(sources(), targets) for engine in both), strict=True):
        assert mine == pytest.approx(other, rel=1e-3, abs=1e-4)
    without_end = [target[:-1] for target in targets]
    for mine, other in zip(*(engine.attention(sources(), without_end) for engine in both), strict=True):
        assert mine.shape == other.shape
        assert mine == pytest.approx(other, abs=1e-4)


@pytest.mark.parametrize("changes", [{"beam_size": 1}, {"beam_size": 4}])
@pytest.mark.parametrize("step", ["packed", "plain"])
def test_pieces_that_are_not_said_are_as_good_as_impossible(changes, step, tmp_path, monkeypatch):
    """The same as if the output's bias kept them out."""
    if step == "plain":
        monkeypatch.setattr("headwise.engine.torch.packs", lambda model: False)
    engine, fast = engines("said", tmp_path)
    search = SearchConfig(**SHARED | changes)
    found, again = (in_order(one.generate(sources(), search)) for one in (engine, fast))
    assert {piece for one in [*found, *again] for h in one for piece in h.ids} <= {*SAID}
    targets = [[*best.ids, 2] for best, *_ in found]
    told = engine.score(sources(), targets)
    with torch.no_grad():
        engine.model.output.bias[[piece for piece in range(41) if piece not in SAID]] = -1e9
    kept_out = TorchEngine(engine.model)
    for mine, other in zip(found, in_order(kept_out.generate(sources(), search)), strict=True):
        assert [h.ids for h in mine] == [h.ids for h in other]
        assert [h.log_prob for h in mine] == pytest.approx([h.log_prob for h in other], rel=1e-4)
    for [best, *_], mine, other in zip(found, told, kept_out.score(sources(), targets), strict=True):
        assert mine == pytest.approx(other, rel=1e-4)
        assert sum(mine[: len(best.ids) + best.complete]) == pytest.approx(best.log_prob, rel=1e-4)


def test_a_target_with_a_piece_that_is_never_said_is_scored_among_all(tmp_path):
    engine, fast = engines("said", tmp_path)
    pairs = [[9, 2], [9, 2]], [[6, 5, 2], [6, 9, 2]]  # 5 is never said
    (odd, plain), among_all = engine.score(*pairs), TorchEngine(engine.model).score(*pairs)
    assert odd == pytest.approx(among_all[0])
    assert all(mine > other for mine, other in zip(plain, among_all[1], strict=True))
    for mine, other in zip(fast.score(*pairs), (odd, plain), strict=True):
        assert mine == pytest.approx(other, rel=1e-3)
    search = SearchConfig(**SHARED | {"beam_size": 1})
    for one in (engine, fast):
        [[found]] = in_order(one.generate([[9, 2]], search, [[5]]))
        assert found.ids[0] == 5


def test_without_scores_the_same_is_found(both):
    for changes in ({"beam_size": 1}, {"beam_size": 4}, {"beam_size": 1, "no_repeat": 2}):
        search = SearchConfig(**SHARED | changes)
        for engine in both:
            with_them, without = (in_order(engine.generate(sources(), search, scores=told)) for told in (True, False))
            assert [[h.ids for h in one] for one in with_them] == [[h.ids for h in one] for one in without]


def test_nothing_in_nothing_out(both):
    for engine in both:
        assert in_order(engine.generate([], SearchConfig(**SHARED))) == []
        assert engine.score([], []) == []
        assert engine.attention([], []) == []


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"length_penalty": "gnmt"}, "length penalty 'gnmt'"),
        ({"stop": "bound"}, "stop 'bound'"),
        ({"temperature": 1.0}, "sampling"),
        ({"min_pieces": 2}, "least length in a beam"),
        ({"no_repeat": 2}, "rule against repeats in a beam"),
    ],
)
def test_ctranslate2_says_what_it_cannot_do(changes, reason, tmp_path):
    _, engine = engines("post", tmp_path)
    with pytest.raises(InputError, match=rf"ctranslate2 has no .*{reason}.*--engine torch"):
        in_order(engine.generate(sources(), SearchConfig(**SHARED | changes)))


def test_what_is_too_long_for_the_table_of_positions_is_refused(tmp_path):
    _, engine = engines("post", tmp_path)
    with pytest.raises(InputError, match="more than the 2048 that ctranslate2 gets"):
        in_order(engine.generate([[5] * 2040], SearchConfig(**SHARED)))
