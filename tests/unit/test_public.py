"""With torch, every public name is there."""

import torch  # noqa: F401

import headwise


def test_every_public_name_resolves():
    for name in headwise.__all__:
        assert getattr(headwise, name).__name__ == name
