"""The engine is the one asked for, or the fastest that can do it; what was measured is kept."""

import json
from importlib.util import find_spec

import pytest

from headwise.bundle import Bundle
from headwise.config import SearchConfig
from headwise.engine import choose
from headwise.engine.choose import open_engine
from headwise.engine.contract import in_order
from headwise.errors import InputError, MissingExtra

SHARED = SearchConfig(length_penalty="length+eos", stop="finished", alpha=1.0)
torch_alone = pytest.mark.skipif(not find_spec("torch"), reason="torch is not installed")


@pytest.fixture
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("HEADWISE_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def kept(own_cache):
    [file] = own_cache.rglob("seconds.json")
    return json.loads(file.read_text())


def test_what_was_measured_is_kept_and_believed(babbler, own_cache, monkeypatch):
    monkeypatch.setattr(choose, "has_torch", lambda: False)
    bundle = Bundle.read(babbler)
    opened = open_engine(babbler, bundle, SHARED, threads=2)
    [(key, seconds)] = kept(own_cache).items()
    assert key.endswith("2 threads, beam 4")
    assert opened.why.startswith(min(seconds, key=seconds.get))
    for slow in ("float32", "int8"):
        [file] = own_cache.rglob("seconds.json")
        file.write_text(json.dumps({key: dict.fromkeys(seconds, 1.0) | {f"ctranslate2 {slow}": 0.5}}))
        again = open_engine(babbler, bundle, SHARED, threads=2)
        assert again.engine.compute_type == slow
        assert f"ctranslate2 {slow} 0.500 s" in again.why
    open_engine(babbler, bundle, SHARED.model_copy(update={"beam_size": 1}), threads=2)
    assert [name.split(", ")[-1] for name in kept(own_cache)] == ["beam 4", "beam 1"]


@torch_alone
def test_torch_is_taken_where_it_is_faster_and_where_it_alone_can(babbler, own_cache):
    bundle = Bundle.read(babbler)
    open_engine(babbler, bundle, SHARED, threads=1)
    [file] = own_cache.rglob("seconds.json")
    [(key, seconds)] = kept(own_cache).items()
    assert "torch" in seconds
    file.write_text(json.dumps({key: dict.fromkeys(seconds, 1.0) | {"torch": 0.9}}))  # loading it takes longer
    assert open_engine(babbler, bundle, SHARED, threads=1).why.startswith("ctranslate2 ")
    file.write_text(json.dumps({key: seconds | {"torch": 1e-9}}))
    assert open_engine(babbler, bundle, SHARED, threads=1).why.startswith("torch: torch 0.000 s, ctranslate2")
    assert open_engine(babbler, bundle, SHARED, threads=1, name="ctranslate2").why.startswith("ctranslate2 ")
    bound = SHARED.model_copy(update={"stop": "bound"})
    assert open_engine(babbler, bundle, bound, threads=1).why == "torch: ctranslate2 has no stop 'bound'"
    with pytest.raises(InputError, match="ctranslate2 has no stop 'bound'; use --engine torch"):
        open_engine(babbler, bundle, bound, threads=1, name="ctranslate2")


def test_without_torch_that_is_said(babbler, own_cache, monkeypatch):
    monkeypatch.setattr(choose, "has_torch", lambda: False)
    with pytest.raises(MissingExtra, match="torch"):
        open_engine(babbler, Bundle.read(babbler), SHARED, threads=1, name="torch")


def test_a_home_that_cannot_be_written_to_is_done_without(babbler, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("HEADWISE_HOME", str(tmp_path / "file"))
    opened = open_engine(babbler, Bundle.read(babbler), SHARED, threads=1, kind="float32")
    assert in_order(opened.engine.generate([[5, 2]], SHARED))
