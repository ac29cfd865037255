"""Settings: what is said of every wrong one, precedence, presets."""

import contextlib
import itertools
import re
import time
import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from headwise.bundle import Bundle
from headwise.config import (
    ModelConfig,
    RunConfig,
    check,
    known_settings,
    load_config,
    parse_override,
    preset_names,
    read_preset,
)
from headwise.errors import ConfigError
from headwise.home import box_model

PRESETS = ["base", "big", "small", "tiny"]
SIZES = {"vocab_size": 31, "d_model": 14, "d_ff": 19, "n_heads": 7, "n_encoder_layers": 2, "n_decoder_layers": 1}


def test_presets():
    assert preset_names() == PRESETS
    shapes = {name: load_config(name).model for name in PRESETS}
    assert {
        name: (m.n_encoder_layers, m.n_decoder_layers, m.d_model, m.d_ff, m.n_heads, m.d_k, m.d_v)
        for name, m in shapes.items()
    } == {
        "tiny": (4, 4, 128, 256, 4, 32, 32),
        "small": (6, 6, 256, 1024, 4, 64, 64),
        "base": (6, 6, 512, 2048, 8, 64, 64),
        "big": (6, 6, 1024, 4096, 16, 64, 64),
    }


@pytest.mark.parametrize(
    ("preset", "steps", "dropout", "averaged"), [("base", 100_000, 0.1, 5), ("big", 300_000, 0.3, 20)]
)
def test_base_and_big_are_the_papers_recipe(preset, steps, dropout, averaged):
    config = load_config(preset)
    model, train, search = config.model, config.train, config.search
    assert (train.adam_beta1, train.adam_beta2, train.adam_eps) == (0.9, 0.98, 1e-9)
    assert (train.warmup_steps, train.schedule, train.peak_lr, train.label_smoothing) == (4000, "paper", None, 0.1)
    assert (train.max_steps, train.average_checkpoints, model.dropout) == (steps, averaged, dropout)
    assert (model.norm, model.activation, model.positions, model.share_embeddings) == (
        "post",
        "relu",
        "paper",
        "three-way",
    )
    assert (model.attention_dropout, model.ff_dropout, model.scale_embeddings, model.output_bias) == (0, 0, True, False)
    assert config.data.batch_tokens == 25_000
    assert (search.beam_size, search.length_penalty, search.alpha, search.extra_pieces) == (4, "gnmt", 0.6, 50)
    assert (search.stop, model.vocab_size) == ("bound", 37_000)


def test_tiny_and_small_search_as_both_engines_do():
    for preset in ("tiny", "small"):
        search = load_config(preset).search
        assert (search.beam_size, search.length_penalty, search.alpha, search.stop) == (
            4,
            "length+eos",
            1.0,
            "finished",
        )


@pytest.mark.parametrize("preset", PRESETS)
def test_a_preset_says_everything_that_is_not_derived(preset):
    derived = {"model.d_k", "model.d_v", "model.src_vocab_size", "train.max_epochs", "train.max_minutes", "train.init"}
    derived |= {f"data.{name}" for name in ("source_lang", "target_lang", "both_ways", "train", "dev")}
    derived |= {f"data.copies.{name}" for name in ("upper", "lower", "no_stop", "with_unknown", "numbers")}
    if preset in ("tiny", "small"):
        derived |= {"tokenizer.vocab_size"}
    if load_config(preset).train.schedule == "paper":
        derived |= {"train.peak_lr"}

    def paths(table: dict, prefix: str = "") -> set[str]:
        return {
            path
            for key, value in table.items()
            for path in (paths(value, f"{prefix}{key}.") if isinstance(value, dict) else {f"{prefix}{key}"})
        }

    assert paths(read_preset(preset)) == set(known_settings()) - derived


def test_every_setting_is_described():
    assert all(field.description for field in known_settings().values())


def test_precedence(tmp_path):
    run = tmp_path / "run.toml"
    run.write_text('preset = "base"\n[model]\nd_model = 256\nd_ff = 100\n[train]\nwarmup_steps = 7\n')
    config = load_config(file=run, overrides=["model.d_ff=101", "train.max_steps=3"])
    assert (config.model.d_model, config.model.d_ff, config.model.d_k) == (256, 101, 32)
    assert (config.train.warmup_steps, config.train.max_steps, config.model.n_encoder_layers) == (7, 3, 6)
    assert load_config("big", file=run).model.n_heads == 16  # the preset asked for stands over the one in the file
    assert load_config(file=run, overrides=["model.d_ff=1", "model.d_ff=2"]).model.d_ff == 2


def test_the_model_has_the_pieces_that_are_learned(tmp_path):
    run = tmp_path / "run.toml"
    run.write_text('preset = "base"\n[tokenizer]\nvocab_size = 8000\n')
    model = load_config(file=run).model
    assert (model.vocab_size, model.src_vocab_size) == (8000, 8000)
    assert load_config(file=run, overrides=["tokenizer.vocab_size=900"]).model.vocab_size == 900
    assert load_config(file=run, overrides=["model.vocab_size=901"]).model.vocab_size == 901  # said last
    run.write_text('preset = "base"\n[model]\nvocab_size = 7990\n[tokenizer]\nvocab_size = 8000\n')
    assert load_config(file=run).model.vocab_size == 7990  # as in the run file of a run


@pytest.mark.parametrize(("text", "value"), [
    ("3", 3), ("0.5", 0.5), ("true", True), ("post", "post"), ('"post"', "post"), ("[1, 2]", [1, 2]), ("a=b", "a=b"),
    ("1\nother = 2", "1\nother = 2"), ("", ""), ("length+eos", "length+eos"), ("1_000", 1000), ("  7 ", 7),
])  # fmt: skip
def test_an_override_is_toml_or_else_a_string(text, value):
    assert parse_override(f"a.b={text}") == {"a": {"b": value}}


def test_settings_are_frozen():
    config = load_config("tiny")
    with pytest.raises(ValidationError):
        config.model.d_model = 3


def test_the_resolved_configuration_comes_back(small_config):
    assert check(RunConfig, small_config.model_dump()) == small_config
    assert RunConfig.model_validate_json(small_config.model_dump_json()) == small_config


MESSAGES = [
    ("model.d_modle=3", "unknown setting 'model.d_modle' from --set; did you mean 'model.d_model'?"),
    ("train.batch_tokens=3", "unknown setting 'train.batch_tokens' from --set; did you mean 'data.batch_tokens'?"),
    ("modle.d_model=3", "unknown setting 'modle' from --set; did you mean 'model'?"),
    ("model.zzz=3", "unknown setting 'model.zzz' from --set"),
    ("model.attention.encodr=auto", "unknown setting 'model.attention.encodr' from --set; did you mean 'model.attention.encoder'?"),
    ("model.d_model=1000000000", "setting 'model.d_model' is 1000000000 from --set; it must be at most 16384"),
    ("model.d_ff=65537", "setting 'model.d_ff' is 65537 from --set; it must be at most 65536"),
    ("model.n_encoder_layers=257", "setting 'model.n_encoder_layers' is 257 from --set; it must be at most 256"),
    ("model.n_heads=257", "setting 'model.n_heads' is 257 from --set; it must be at most 256"),
    ("model.vocab_size=1000001", "setting 'model.vocab_size' is 1000001 from --set; it must be at most 1000000"),
    ("model.n_decoder_layers=0", "setting 'model.n_decoder_layers' is 0 from --set; it must be at least 1"),
    ("model.dropout=1.0", "setting 'model.dropout' is 1.0 from --set; it must be less than 1"),
    ("model.norm_eps=0.0", "setting 'model.norm_eps' is 0.0 from --set; it must be more than 0"),
    ("model.d_model=abc", "setting 'model.d_model' is 'abc' from --set; it must be a whole number"),
    ("model.d_model=12.5", "setting 'model.d_model' is 12.5 from --set; it must be a whole number"),
    ("search.beam_size=true", "setting 'search.beam_size' is True from --set; it must be a whole number"),
    ("model.dropout=lots", "setting 'model.dropout' is 'lots' from --set; it must be a number"),
    ("model.output_bias=1", "setting 'model.output_bias' is 1 from --set; it must be true or false"),
    ("model.norm=psot", "setting 'model.norm' is 'psot' from --set; choose from post, pre; did you mean 'post'?"),
    ("model.attention.cross=x", "setting 'model.attention.cross' is 'x' from --set; choose from auto, reference, fused"),
    ("model=3", "'model' is 3 from --set; it is a section, not a setting"),
    ("model.n_heads=7", "model: d_model (512) is not a multiple of n_heads (7): change one, or give d_k and d_v"),
    ("model.src_vocab_size=9", "model: share_embeddings is 'three-way', so src_vocab_size (9) must equal vocab_size (37000)"),
    ("model.pad_id=40000", "model: pad_id (40000) lies outside the vocabulary of 37000"),
    ("model.eos_id=1", "model: eos_id (1) must differ from pad_id (0) and bos_id (1)"),
    ("train.peak_lr=0.1", "train: peak_lr goes with every schedule but 'paper', which has a peak of its own"),
    ("nonsense", "--set nonsense: write it as section.name=value, such as model.d_model=256"),
    (".=3", "--set .=3: write it as section.name=value, such as model.d_model=256"),
    ("model.dropout=nan", "setting 'model.dropout' is nan from --set; it must be a finite number"),
]  # fmt: skip


@pytest.mark.parametrize(("override", "message"), MESSAGES)
def test_messages(override, message):
    with pytest.raises(ConfigError) as caught:
        load_config("base", overrides=[override])
    assert str(caught.value) == message


@pytest.mark.parametrize(("changes", "message"), [
    ({"positions": "fairseq", "d_model": 13, "n_heads": 13}, "positions 'fairseq' need an even d_model of at least 4, not 13"),
    ({"positions": "rotary", "d_k": 3}, "positions 'rotary' need an even d_k, not 3"),
    ({"n_heads": 200, "d_k": 400, "d_v": 1}, "n_heads (200) times d_k (400) is more than 65536"),
    ({"src_vocab_size": 5, "share_embeddings": "two-way", "eos_id": 7}, "eos_id (7) lies outside the vocabulary of 5"),
])  # fmt: skip
def test_checks_over_two_fields(changes, message):
    with pytest.raises(ConfigError, match=re.escape(message)):
        check(ModelConfig, {**SIZES, **changes})


def test_problems_are_listed_together():
    with pytest.raises(ConfigError) as caught:
        load_config("base", overrides=["model.d_modle=3", "model.norm=x", "search.alpha=-1", "model.d_model=0"])
    assert sorted(str(caught.value).split("\n")) == [
        "setting 'model.d_model' is 0 from --set; it must be at least 1",
        "setting 'model.norm' is 'x' from --set; choose from post, pre",
        "setting 'search.alpha' is -1 from --set; it must be at least 0",
        "unknown setting 'model.d_modle' from --set; did you mean 'model.d_model'?",
    ]


@pytest.mark.parametrize(("content", "message"), [
    (b"[model]\nd_modle = 3", "unknown setting 'model.d_modle' in {file}; did you mean 'model.d_model'?"),
    (b"preset = 'bse'", "unknown preset 'bse'; choose from base, big, small, tiny; did you mean 'base'?"),
    (b"preset = 3", "unknown preset 3; choose from base, big, small, tiny"),
    (b"preset = 'base'\n[model\n", "{file} is not valid TOML: Expected ']' at the end of a table declaration (at line 2, column 7)"),
    (b"preset = '\xff'", "{file} is not UTF-8: byte 10 is 0xff"),
    (b"[search]\nbeam_size = 2", "missing setting 'model' in {file}; write it, or name a preset (base, big, small, tiny)"),
])  # fmt: skip
def test_run_files(tmp_path, content, message):
    file = tmp_path / "run.toml"
    file.write_bytes(content)
    with pytest.raises(ConfigError) as caught:
        load_config(file=file)
    assert message.format(file=file) in str(caught.value).split("\n")


def test_run_files_that_cannot_be_read(tmp_path):
    with pytest.raises(ConfigError, match="there is no run file"):
        load_config(file=tmp_path / "none.toml")
    with pytest.raises(ConfigError, match=r"cannot read the run file .*: Is a directory"):
        load_config(file=tmp_path)


def test_a_missing_setting_is_named_with_the_way_out():
    sizes = {name: size for name, size in SIZES.items() if name != "d_ff"}
    with pytest.raises(ConfigError, match="missing setting 'd_ff' here; write it, or name a preset"):
        check(ModelConfig, sizes)


def test_a_size_past_the_cap_is_refused_at_once():
    load_config("base")
    began = time.perf_counter()
    with pytest.raises(ConfigError, match="at most 16384"):
        load_config("base", overrides=[f"model.d_model={10**9}"])
    assert time.perf_counter() - began < 0.5  # it takes milliseconds; half a second says that nothing was allocated


def test_from_python_a_wrong_setting_says_the_same():
    with pytest.raises(ConfigError) as caught:
        ModelConfig(**{**SIZES, "d_ff": 0}, d_modle=3, attention={"encoder": "fusd"})
    assert sorted(str(caught.value).split("\n")) == [
        "setting 'attention.encoder' is 'fusd' in ModelConfig; choose from auto, reference, fused; did you mean 'fused'?",
        "setting 'd_ff' is 0 in ModelConfig; it must be at least 1",
        "unknown setting 'd_modle' in ModelConfig; did you mean 'd_model'?",
    ]
    assert ModelConfig(**SIZES, attention={"encoder": "fused"}).attention.encoder == "fused"


def test_widths_of_heads_follow_unless_given():
    assert ModelConfig(**SIZES).d_k == 2
    config = ModelConfig(**{**SIZES, "d_model": 15}, d_k=3, d_v=5)
    assert (config.d_k, config.d_v) == (3, 5)


@given(
    st.recursive(
        st.integers() | st.floats() | st.text() | st.booleans() | st.none(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
        max_leaves=8,
    )
)
def test_no_input_is_an_error_of_ours(raw):
    """Whatever stands in place of the settings, it is either taken or refused as the user's."""
    for shaped in (raw, {"model": raw}, {**read_preset("tiny"), "search": raw}, {"model": {**SIZES, "attention": raw}}):
        with contextlib.suppress(ConfigError):
            check(RunConfig, shaped)


@given(st.text())
def test_any_override_is_taken_or_refused(text):
    for override in (text, f"model.norm={text}", f"{text}=3"):
        with contextlib.suppress(ConfigError):
            load_config("tiny", overrides=[override])


def test_presets_are_commented_toml():
    from importlib import resources

    for name in PRESETS:
        text = resources.files("headwise.presets").joinpath(f"{name}.toml").read_text()
        assert text.startswith(f"# {name}: ")
        assert text.count("#") > 8
        assert tomllib.loads(text)


def test_recipes_say_what_the_box_says_of_its_training():
    folder = Path(__file__).parents[2] / "recipes"
    names = ["en-de", "en-de-end", "one-way", "one-way-end", "again-1", "again-1-end", "again-2", "again-2-end"]
    files = {name: folder / f"tatoeba-{name}.toml" for name in [*names, "again-2-words"]}
    assert {*files.values()} == {*folder.glob("*.toml")}
    loaded = {"en-de": load_config(file=files["en-de"])}
    for before, name in itertools.pairwise(files):
        base = loaded[before].model_dump(exclude={"data": {"train", "dev"}})
        loaded[name] = load_config(file=files[name], base=base)
    assert loaded["en-de"].data.both_ways
    assert loaded["en-de"].model.vocab_size == 8000
    for languages, last in ((("en", "de"), "again-2-end"), (("de", "en"), "again-2-words")):
        said, ours = Bundle.read(box_model(*languages)).config, loaded[last]
        once = {"init": None, "max_minutes": None}  # where it was run
        assert said.train.model_copy(update=once) == ours.train.model_copy(update=once)
        assert (said.data.copies, said.data.batch_tokens) == (ours.data.copies, ours.data.batch_tokens)
        assert said.model.dropout == ours.model.dropout
        assert said.search == ours.search
