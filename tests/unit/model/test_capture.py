"""Every head's weights in one call, and nothing left behind."""

import threading

import pytest
import torch

from headwise.errors import InputError
from headwise.model.attend import Attend
from headwise.model.capture import capture
from headwise.model.transformer import Transformer

FUSED = {"encoder": "fused", "decoder": "fused", "cross": "fused"}


def test_every_head_of_every_layer(make_model, batch):
    model, (src, tgt_in) = make_model(), batch
    with capture(model) as seen:
        model(src, tgt_in)
    assert [w.shape for w in seen.encoder] == [(5, 3, 7, 7)] * 2
    assert [w.shape for w in seen.decoder] == [(5, 3, 6, 6)] * 3
    assert [w.shape for w in seen.cross] == [(5, 3, 6, 7)] * 3
    for weights in (*seen.encoder, *seen.decoder, *seen.cross):
        torch.testing.assert_close(weights.sum(dim=-1), torch.ones(weights.shape[:-1]))


def test_hidden_positions_have_weight_exactly_zero(make_model, batch):
    model, (src, tgt_in) = make_model(), batch
    with capture(model) as seen:
        model(src, tgt_in)
    padding = src == 0
    for weights in (*seen.encoder, *seen.cross):
        assert (weights.transpose(1, 3)[padding] == 0).all()
        assert (weights.transpose(1, 3)[~padding] > 0).all()
    for weights in seen.decoder:
        assert (weights == weights.tril()).all()


def test_reference_stands_in_for_the_kernel(make_model, batch):
    plain, fused = make_model(), make_model(attention=FUSED)
    with capture(plain) as expected:
        plain(*batch)
    with capture(fused) as seen:
        captured = fused(*batch)
    torch.testing.assert_close(captured, fused(*batch), rtol=0, atol=2e-6)
    for ours, theirs in zip(seen.cross + seen.encoder, expected.cross + expected.encoder, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=0, atol=2e-6)


def test_nothing_is_left_on_the_model(make_model, batch):
    model = make_model(attention=FUSED)
    before = {name: sorted(vars(module)) for name, module in model.named_modules()}
    with pytest.raises(TypeError), capture(model):
        model(*batch, "a third argument, at which the call fails while weights are being captured")
    assert {name: sorted(vars(module)) for name, module in model.named_modules()} == before
    assert not any(module._forward_hooks for module in model.modules())


def test_the_weights_are_those_that_mixed_the_values(make_model, batch):
    """Redone from outside: weights times values, joined and projected, is what the layer put out."""
    model, (src, tgt_in) = make_model(), batch
    attention = model.decoder.layers[1].cross_attention
    outputs = []
    handle = attention.w_o.register_forward_hook(lambda module, args, out: outputs.append(out))
    with capture(model) as seen:
        memory = model.encode(src)
        model.decode(memory, tgt_in)
    handle.remove()
    _, v = attention.keys_values(memory.hidden)
    redone = attention.w_o((seen.cross[1] @ v).transpose(1, 2).flatten(2))
    torch.testing.assert_close(outputs[0], redone)


def test_steps_join_to_the_whole(make_model, batch):
    model, (src, tgt_in) = make_model(), batch
    with capture(model) as whole:
        model(src, tgt_in)
    with capture(model) as steps:
        state = model.start(src)
        for t in range(6):
            _, state = model.step(tgt_in[:, t], state)
    for place in ("encoder", "decoder", "cross"):
        for ours, theirs in zip(getattr(steps, place), getattr(whole, place), strict=True):
            torch.testing.assert_close(ours, theirs, rtol=0, atol=2e-6)


def test_a_batch_that_changes_is_refused(make_model, batch):
    model, (src, tgt_in) = make_model(), batch
    with capture(model) as seen:
        model(src, tgt_in)
        model(src[:2], tgt_in[:2])
    with pytest.raises(InputError, match="the batch changed"):
        _ = seen.cross


def test_other_threads_are_not_captured(make_model, batch):
    model = make_model()
    with capture(model) as seen:
        thread = threading.Thread(target=model, args=batch)
        thread.start()
        thread.join()
    assert seen.encoder == ()


def test_a_way_without_weights_is_named(make_model, batch):
    class Silent(Attend):
        def forward(self, q, k, v, keep=None, dropout=0.0):
            return q[..., :1] + v.mean(dim=-2, keepdim=True), None

    model = Transformer(make_model().config, attend={"cross": Silent})
    with capture(model), pytest.raises(InputError, match="Silent has no attention weights to show"):
        model(*batch)
