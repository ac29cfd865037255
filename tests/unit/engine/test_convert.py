"""int8 matrices: how large their numbers are, and that they say what the model says."""

import numpy as np
import pytest

from headwise import machine
from headwise.bundle import Bundle
from headwise.config import SearchConfig
from headwise.engine import convert
from headwise.engine.choose import open_engine
from headwise.engine.convert import largest_int8, make_spec


@pytest.mark.parametrize("largest", [63, 127])
def test_no_number_is_larger_and_none_is_further_off_than_half_a_step(babbler, largest):
    bundle = Bundle.read(babbler)
    found = make_spec(bundle.config.model, bundle.weights, largest).variables()
    whole = make_spec(bundle.config.model, bundle.weights).variables()
    matrices = [name.removesuffix("_scale") for name, value in found.items() if name.endswith("weight_scale")]
    matrices = [name for name in matrices if not isinstance(found[name], str)]  # others are the same as one of these
    assert len(matrices) > 8
    for name in matrices:
        integers, factor = found[name].numpy(), found[f"{name}_scale"].numpy()[:, None]
        assert integers.dtype == np.int8
        assert np.abs(integers).max() == largest
        assert np.abs(integers / factor - whole[name].numpy()).max() <= 0.5001 / factor.min()


def test_what_int8_says_is_near_to_what_float32_says(babbler, tmp_path, monkeypatch):
    monkeypatch.setenv("HEADWISE_HOME", str(tmp_path))
    bundle, search = Bundle.read(babbler), SearchConfig(length_penalty="length+eos", stop="finished", alpha=1.0)
    sources, targets = [[5, 9, 40, 2], [77, 2]], [[31, 8, 2], [12, 2]]
    exact, near = (
        open_engine(babbler, bundle, search, threads=1, kind=kind).engine.score(sources, targets)
        for kind in ("float32", "int8")
    )
    assert near != exact
    for one, other in zip(near, exact, strict=True):
        assert one == pytest.approx(other, abs=0.35)
    assert {place.name for place in tmp_path.glob("ctranslate2/*/*")} == {"float32", f"int8-{largest_int8()}"}


def test_how_large_depends_on_the_machine(monkeypatch, tmp_path):
    monkeypatch.setattr(convert.platform, "machine", lambda: "aarch64")
    assert largest_int8() == 127
    monkeypatch.setattr(convert.platform, "machine", lambda: "x86_64")
    for flags, expected in (("flags : avx2 avx512_vnni", 127), ("flags : avx2 avx_vnni", 127), ("flags : avx2", 63)):
        (tmp_path / "cpuinfo").write_text(flags)
        monkeypatch.setattr(machine, "CPUINFO", tmp_path / "cpuinfo")
        assert largest_int8() == expected
    monkeypatch.setattr(machine, "CPUINFO", tmp_path / "nowhere")
    assert largest_int8() == 63
