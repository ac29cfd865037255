"""What must hold of the whole model, whatever its weights."""

import itertools

import pytest
import torch

from headwise.architecture import parameters
from headwise.config import ModelConfig, load_config
from headwise.errors import InputError
from headwise.model.attend import WAYS, Reference
from headwise.model.attend.auto import CPU_FUSED_FROM_KEYS
from headwise.model.transformer import Transformer

NOISE = 2e-5  # of float32 sums in another order

VARIANTS = {
    "paper": {},
    "pre-norm": {"norm": "pre", "activation": "gelu", "output_bias": True},
    "halves": {"positions": "fairseq", "share_embeddings": "two-way", "src_vocab_size": 37},
    "learned": {"positions": "learned", "max_positions": 23, "share_embeddings": "none", "src_vocab_size": 37},
    "rotary": {"positions": "rotary", "activation": "silu", "norm": "pre"},
    "nowhere": {"positions": "none", "scale_embeddings": False},
    "fused": {"attention": {"encoder": "fused", "decoder": "fused", "cross": "fused"}},
}
every_variant = pytest.mark.parametrize("variant", VARIANTS.values(), ids=VARIANTS)


@every_variant
def test_forward_is_encode_decode_project(variant, make_model, batch):
    model, (src, tgt_in) = make_model(**variant), batch
    memory = model.encode(src)
    hidden = model.decode(memory, tgt_in)
    assert memory.hidden.shape == (5, 7, 14)
    assert hidden.shape == (5, 6, 14)
    assert torch.equal(model.project(hidden), model(src, tgt_in))
    assert model(src, tgt_in).shape == (5, 6, 31)


@every_variant
def test_parameters_are_those_of_the_settings(variant, make_model):
    model = make_model(**variant)
    assert {name: tuple(p.shape) for name, p in model.named_parameters()} == parameters(model.config)
    assert set(model.state_dict()) == set(parameters(model.config))


def test_parameter_names_are_stable(make_model):
    """They are the model folder's; a renaming would orphan every saved model."""
    layer = [
        name for name in parameters(make_model(norm="pre").config) if ".layers.0." in name and name.endswith("weight")
    ]
    attention = ["w_q", "w_k", "w_v", "w_o"]
    assert layer == [
        *(f"encoder.layers.0.self_attention.{w}.weight" for w in attention),
        *(f"encoder.layers.0.feed_forward.{w}.weight" for w in ("w_1", "w_2")),
        *(f"encoder.layers.0.residual_{part}.norm.weight" for part in ("self", "ff")),
        *(f"decoder.layers.0.self_attention.{w}.weight" for w in attention),
        *(f"decoder.layers.0.cross_attention.{w}.weight" for w in attention),
        *(f"decoder.layers.0.feed_forward.{w}.weight" for w in ("w_1", "w_2")),
        *(f"decoder.layers.0.residual_{part}.norm.weight" for part in ("self", "cross", "ff")),
    ]


@every_variant
@torch.no_grad()
def test_cached_steps_equal_the_uncached_decode(variant, make_model, batch):
    model, (src, _) = make_model(**variant), batch
    n = 23 if model.config.positions == "learned" else 70  # past two doublings of the cache
    tgt_in = torch.randint(3, 31, (5, n))
    uncached = model(src, tgt_in).log_softmax(dim=-1)
    state = model.start(src)
    for t in range(tgt_in.size(1)):
        log_probs, state = model.step(tgt_in[:, t], state)
        torch.testing.assert_close(log_probs, uncached[:, t], rtol=0, atol=NOISE)


@every_variant
@torch.no_grad()
def test_padding_mates_and_order_change_nothing(variant, make_model, batch):
    model, (src, tgt_in) = make_model(**variant), batch
    together = model(src, tgt_in)
    lengths = (src != 0).sum(dim=1), (tgt_in != 0).sum(dim=1)
    for row, n_src, n_tgt in zip(range(5), *lengths, strict=True):
        alone = model(src[row : row + 1, :n_src], tgt_in[row : row + 1, :n_tgt])
        torch.testing.assert_close(together[row : row + 1, :n_tgt], alone, rtol=0, atol=NOISE)
    padded = model(torch.nn.functional.pad(src, (0, 11)), torch.nn.functional.pad(tgt_in, (0, 13)))
    torch.testing.assert_close(padded[:, :6], together, rtol=0, atol=NOISE)
    order = torch.tensor([3, 0, 4, 2, 1])
    torch.testing.assert_close(model(src[order], tgt_in[order]), together[order], rtol=0, atol=NOISE)


@every_variant
@torch.no_grad()
def test_the_decoder_never_sees_the_future(variant, make_model, batch):
    model, (src, tgt_in) = make_model(**variant), batch
    tgt_in = torch.randint(3, 31, tgt_in.shape)
    before = model(src, tgt_in)
    for t in range(6):
        changed = tgt_in.clone()
        changed[:, t] = (changed[:, t] + 5) % 31
        after = model(src, changed)
        assert torch.equal(after[:, :t], before[:, :t])
        assert not torch.equal(after[:, t], before[:, t])


@torch.no_grad()
def test_without_positions_the_encoder_is_permutation_equivariant(make_model):
    src = torch.randint(3, 31, (2, 11))
    order = torch.randperm(11)
    blind = make_model(positions="none")
    torch.testing.assert_close(
        blind.encode(src[:, order]).hidden, blind.encode(src).hidden[:, order], rtol=0, atol=NOISE
    )
    for positions in ("paper", "learned", "rotary"):
        model = make_model(positions=positions)
        assert (model.encode(src[:, order]).hidden - model.encode(src).hidden[:, order]).abs().max() > 0.01


@every_variant
def test_a_row_of_nothing_but_padding_gives_finite_numbers(variant, make_model, batch):
    model, (src, tgt_in) = make_model(**variant).train(), batch
    src[2], tgt_in[2] = 0, 0
    logits = model(src, tgt_in)
    logits.sum().backward()
    assert logits.isfinite().all()
    assert all(p.grad.isfinite().all() for p in model.parameters())
    log_probs, _ = model.step(tgt_in[:, 0], model.start(src))
    assert log_probs.isfinite().all()


@every_variant
def test_gradients_reach_every_parameter(variant, make_model, batch):
    model, (src, tgt_in) = make_model(**variant), batch
    model(src, tgt_in).logsumexp(dim=-1).sum().backward()
    for name, parameter in model.named_parameters():
        if name.endswith("w_k.bias") and (variant.get("positions") != "rotary" or "cross" in name):
            # shifts all scores of a query alike, so softmax cancels it: zero in mathematics, noise in floats
            assert parameter.grad.abs().max() < 1e-4, name
        else:
            assert parameter.grad.abs().max() > 1e-6, name


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_gradients_agree_with_differences_in_float64(norm):
    torch.manual_seed(7)
    config = ModelConfig(
        vocab_size=7, d_model=5, d_ff=3, n_heads=2, d_k=3, d_v=2, n_encoder_layers=1, n_decoder_layers=1, norm=norm,
        activation="silu", attention={"encoder": "reference", "decoder": "reference", "cross": "reference"},
    )  # fmt: skip
    model = Transformer(config).double().eval()
    src, tgt_in = torch.tensor([[3, 4, 2], [5, 2, 0]]), torch.tensor([[1, 5], [1, 6]])
    names, values = zip(*model.named_parameters(), strict=True)

    def logits(*parameters):
        return torch.func.functional_call(model, dict(zip(names, parameters, strict=True)), (src, tgt_in))

    assert torch.autograd.gradcheck(logits, values)


@pytest.mark.parametrize("length", [7, CPU_FUSED_FROM_KEYS + 3])
@torch.no_grad()
def test_fused_auto_and_reference_agree(length, make_model):
    """All at once and step by step, below and above the length at which `auto` changes over."""
    torch.manual_seed(19)
    src, tgt_in = torch.randint(3, 31, (4, length)), torch.randint(3, 31, (4, length))
    src[1, 2:] = 0
    logits, steps = {}, {}
    for way in WAYS:
        model = make_model(attention={"encoder": way, "decoder": way, "cross": way})
        logits[way], state = model(src, tgt_in), model.start(src)
        for t in range(length):
            steps[way], state = model.step(tgt_in[:, t], state)
    for way in WAYS:
        torch.testing.assert_close(logits[way], logits["reference"], rtol=0, atol=NOISE)
        torch.testing.assert_close(steps[way], steps["reference"], rtol=0, atol=NOISE)


def test_attention_is_chosen_for_each_place_apart(make_model):
    model = make_model(attention={"encoder": "fused", "decoder": "reference", "cross": "auto"})
    names = [
        {type(layer.self_attention.attend).__name__ for layer in model.encoder.layers},
        {type(layer.self_attention.attend).__name__ for layer in model.decoder.layers},
        {type(layer.cross_attention.attend).__name__ for layer in model.decoder.layers},
    ]
    assert names == [{"Fused"}, {"Reference"}, {"Auto"}]


def test_a_way_from_outside_comes_in_as_an_argument(make_model, batch):
    class Uniform(Reference):
        """Every visible key alike, and a parameter of its own."""

        def __init__(self, config):
            super().__init__(config)
            self.own = torch.nn.Parameter(torch.tensor([17.0]))

        def forward(self, q, k, v, keep=None, dropout=0.0):
            return super().forward(q * 0, k, v, keep, dropout)

    config = make_model().config
    model = Transformer(config, attend={"cross": Uniform})
    assert {type(layer.cross_attention.attend) for layer in model.decoder.layers} == {Uniform}
    assert model.decoder.layers[0].cross_attention.attend.own.item() == 17  # initialise() leaves it alone
    assert model(*batch).isfinite().all()
    with pytest.raises(InputError, match="no place 'middle'; the places are encoder, decoder, cross"):
        Transformer(config, attend={"middle": Uniform})


def test_sharing_of_embeddings(make_model):
    """The output projection is the target's table, unless it has one of its own; the source's likewise."""
    hidden = torch.randn(2, 14)
    shared, own = make_model(), make_model(share_embeddings="none")
    assert torch.equal(shared.project(hidden), hidden @ shared.embedding.weight.T)
    assert torch.equal(own.project(hidden), hidden @ own.output.weight.T)
    src, tgt_in = torch.tensor([[3, 4]]), torch.tensor([[1, 6]])

    def moves(model: Transformer, table: torch.nn.Parameter, row: int) -> bool:
        before = model.decode(model.encode(src), tgt_in)
        with torch.no_grad():
            table[row] += 1
        return not torch.equal(before, model.decode(model.encode(src), tgt_in))

    assert moves(shared, shared.embedding.weight, 3)
    assert not moves(own, own.embedding.weight, 3)  # only in the source
    assert moves(own, own.src_embedding.weight, 3)
    assert moves(own, own.embedding.weight, 6)


def test_embeddings_are_scaled_before_positions_are_added(make_model):
    model = make_model()
    embedded = model.embed(torch.full((1, 1, 14), 0.5), torch.ones(1, 14))
    assert embedded.flatten().tolist() == pytest.approx([0.5 * 14**0.5 + 1] * 14)


@pytest.mark.parametrize("ids", [torch.zeros(2, 0, dtype=torch.long), torch.zeros(3, dtype=torch.long)])
def test_ids_of_a_wrong_shape_are_refused(ids, make_model):
    with pytest.raises(InputError, match="ids must be"):
        make_model().encode(ids)


def test_arrays_round_trip(make_model, batch):
    model = make_model(norm="pre", output_bias=True)
    again = Transformer.from_arrays(model.config, model.to_arrays())
    assert torch.equal(again(*batch), model(*batch))
    model.to_arrays()["embedding.weight"][:] = 0  # a copy
    assert model.embedding.weight.any()


def test_initialisation_is_as_stated():
    """Matrices: variance 2 / (in + out) within +-sqrt(6 / (in + out)), times a gain; tables N(0, 1/d_model)."""
    torch.manual_seed(1)
    model = Transformer(load_config("tiny", overrides=["model.share_embeddings=none", "model.positions=learned"]).model)
    for name, parameter in model.named_parameters():
        value = parameter.detach()
        if name.endswith("norm.weight"):
            assert value.eq(1).all(), name
        elif value.dim() == 1:
            assert value.eq(0).all(), name
        elif "layers" in name:
            n_both, square = sum(value.shape), 0.5 if name.split(".")[-2] in ("w_q", "w_k") else 0.25
            assert value.abs().max() <= (square * 6 / n_both) ** 0.5, name
            assert value.var().item() == pytest.approx(square * 2 / n_both, rel=0.05), name
        else:
            assert value.var().item() == pytest.approx(1 / 128, rel=0.05), name
            assert value.mean().item() == pytest.approx(0, abs=0.001), name


def test_a_fresh_model_is_near_uniform():
    """Logits of variance about one: the loss starts near ln V, not far above it.

    Tables of their own, since with a shared one the piece that goes in is also likely to come out.
    """
    torch.manual_seed(1)
    model = Transformer(load_config("tiny", overrides=["model.share_embeddings=none"]).model).eval()
    src, tgt = torch.randint(3, 10_000, (8, 20)), torch.randint(3, 10_000, (8, 20))
    loss = torch.nn.functional.cross_entropy(model(src, tgt).flatten(0, 1), torch.randint(3, 10_000, (160,)))
    assert loss.item() == pytest.approx(9.21 + 0.5, abs=0.2)  # ln V, and half the variance


def test_the_papers_sizes_to_the_parameter():
    for preset, n in (("base", 63_082_496), ("big", 214_245_376)):
        with torch.device("meta"):
            model = Transformer(load_config(preset).model)
        assert sum(p.numel() for p in model.parameters()) == n


def test_dropout_settings_are_apart(make_model, batch):
    """In training each of the three kinds alone changes the output; in eval none does."""
    kinds = ("dropout", "attention_dropout", "ff_dropout")
    still = make_model(dropout=0.0)
    assert torch.equal(still.train()(*batch), still.eval()(*batch))
    for kind in kinds:
        model = make_model(**{name: 0.5 if name == kind else 0.0 for name in kinds})
        assert torch.equal(model(*batch), still(*batch))
        assert not torch.equal(model.train()(*batch), still(*batch))


def test_unequal_depth(make_model, batch):
    for n_encoder, n_decoder in itertools.product((1, 4), repeat=2):
        model = make_model(n_encoder_layers=n_encoder, n_decoder_layers=n_decoder)
        assert (len(model.encoder.layers), len(model.decoder.layers)) == (n_encoder, n_decoder)
        assert model(*batch).shape == (5, 6, 31)
