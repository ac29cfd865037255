"""Maps of attention that one can draw by hand, and the heads of a model."""

import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest
import torch

from headwise.config import TokenizerConfig, load_config
from headwise.explain.heads import Heads, heads, sharpest
from headwise.explain.heatmap import in_blocks, in_svg
from headwise.model.transformer import Transformer
from headwise.text.tokenizer import Tokenizer

SVG = "{http://www.w3.org/2000/svg}"


def map_of(*heads_of_it: list[list[float]], source: str = "<b⏎", target: str = "x⏎", layer: int = 1) -> Heads:
    return Heads(layer, tuple(source), tuple(target), np.array(heads_of_it))


def test_blocks():
    """The mean of two heads is 0.8 0.2 0 and 0 0.4 0.6; each row has a darkest block."""
    drawn = in_blocks(map_of([[1, 0, 0], [0, 0.8, 0.2]], [[0.6, 0.4, 0], [0, 0, 1]]))
    assert drawn == "   <b⏎\nx  █░\n⏎   ▓█"


def test_blocks_with_longer_pieces():
    view = Heads(1, ("two", "⏎"), ("zwei", "⏎"), np.array([[[1.0, 0.0], [0.0, 1.0]]]))
    assert in_blocks(view) == "      t⏎\n      w\n      o\nzwei  █\n   ⏎   █"


def test_svg_has_every_label_and_weight():
    root = ElementTree.fromstring(in_svg(map_of([[1, 0, 0], [0, 0.8, 0.2]], [[0.6, 0.4, 0], [0, 0, 1]])))
    assert root.find(f"{SVG}title").text == "<b → x"
    assert "x from <, number 1; ⏎ from ⏎, number 3" in root.find(f"{SVG}desc").text
    assert root.find(f"{SVG}rect").get("fill") == "#fff"
    texts = [text.text for text in root.iter(f"{SVG}text")]
    for label in ("<", "b", "x"):
        assert texts.count(label) == 3  # the mean and two heads
    assert {"mean of 2 heads, up to 0.80", "head 1, up to 1.00", "head 2, up to 1.00"} <= set(texts)
    told = [title.text for title in root.iter(f"{SVG}title")][1:]
    assert told[:4] == ["x from <: 0.80", "x from b: 0.20", "⏎ from b: 0.40", "⏎ from ⏎: 0.60"]
    shades = [rect.get("fill-opacity") for rect in root.iter(f"{SVG}rect") if rect.get("fill-opacity")]
    assert shades[:4] == ["1.00", "0.25", "0.50", "0.75"]


def test_the_sharpest_layer_is_the_one_that_looks_at_fewest_places():
    even, one = map_of([[1 / 3] * 3] * 2, layer=1), map_of([[1, 0, 0], [0, 0, 1]], layer=2)
    assert even.entropy == pytest.approx(np.log(3))
    assert one.entropy == pytest.approx(0)
    assert sharpest([even, one]).layer == 2


def test_the_heads_of_a_model():
    tokenizer = Tokenizer.learn(["abc"], ["xy"], TokenizerConfig(kind="characters"), 1)
    sizes = ["d_model=8", "d_ff=5", "n_heads=2", "n_encoder_layers=1", "n_decoder_layers=3"]
    config = load_config("tiny", overrides=[f"model.{s}" for s in (*sizes, f"vocab_size={tokenizer.vocab_size}")])
    torch.manual_seed(1)
    layers = heads(Transformer(config.model), tokenizer, "ab", "xyx")
    assert [layer.layer for layer in layers] == [1, 2, 3]
    assert (layers[0].source, layers[0].target) == (("a", "b", "⏎"), ("x", "y", "x", "⏎"))
    for layer in layers:
        assert layer.weights.shape == (2, 4, 3)
        np.testing.assert_allclose(layer.weights.sum(-1), 1, atol=1e-6)
