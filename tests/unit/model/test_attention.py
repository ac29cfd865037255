"""Multi-head attention against the paper's formula, head by head."""

import pytest
import torch
from torch.nn import functional as F

from headwise.config import ModelConfig
from headwise.model.attend import Reference
from headwise.model.attention import MultiHeadAttention

CONFIG = ModelConfig(
    vocab_size=17, d_model=13, d_ff=3, n_heads=5, n_encoder_layers=1, n_decoder_layers=1, d_k=7, d_v=11
)


def test_concat_of_heads_times_w_o():
    torch.manual_seed(2)
    attention = MultiHeadAttention(CONFIG, Reference(CONFIG), rotary=False)
    x, source = torch.randn(2, 3, 13), torch.randn(2, 19, 13)
    heads = []
    for h in range(5):
        keys, values = slice(7 * h, 7 * h + 7), slice(11 * h, 11 * h + 11)
        q = x @ attention.w_q.weight[keys].T + attention.w_q.bias[keys]
        k = source @ attention.w_k.weight[keys].T + attention.w_k.bias[keys]
        v = source @ attention.w_v.weight[values].T + attention.w_v.bias[values]
        heads.append(F.softmax(q @ k.transpose(1, 2) / 7**0.5, dim=-1) @ v)
    expected = torch.cat(heads, dim=-1) @ attention.w_o.weight.T + attention.w_o.bias
    torch.testing.assert_close(attention(x, source, None), expected)


@pytest.mark.parametrize(("setting", "value", "n_fewer"), [("d_k", 6, 2 * 5 * 14), ("d_v", 10, 5 * 14 + 5 * 13)])
def test_widths_of_heads_are_free(setting, value, n_fewer):
    """Table 3 B changes d_k alone: of W^Q and W^K a column a head goes, weight and bias; d_v is one of W^V and W^O."""

    def count(config: ModelConfig) -> int:
        return sum(p.numel() for p in MultiHeadAttention(config, Reference(config), rotary=False).parameters())

    assert count(CONFIG) - count(CONFIG.model_copy(update={setting: value})) == n_fewer
