"""A run file says everything, and reads back the same."""

import tomllib

import pytest

from headwise.config import known_settings, load_config
from headwise.runfile import to_toml

ODD = 'a"b\\c\tü\x7f\u2028.en'


@pytest.mark.parametrize("preset", ["tiny", "small", "base", "big"])
def test_it_reads_back_the_same(preset, tmp_path):
    files = {"train": [{"src": ODD, "tgt": "b.de", "weight": 2.5}, {"pairs": "c.tsv"}], "source_lang": "en"}
    config = load_config(preset, flags={"data": files}, overrides=["train.max_minutes=1.5"])
    (tmp_path / "run.toml").write_text(to_toml(config), encoding="utf-8")
    assert load_config(file=tmp_path / "run.toml") == config


def test_every_setting_is_there_with_its_meaning():
    text = to_toml(load_config("tiny"), {"preset": "tiny", "out": "runs/x"}, frozenset({"model.d_k"}))
    assert text.startswith('preset = "tiny"\nout = "runs/x"\n\n[model]\n')
    for path, field in known_settings().items():
        if path != "model.d_k":
            assert field.description in text, path
            assert path.rpartition(".")[2] in text, path
    assert "d_k =" not in text
    tomllib.loads(text)
