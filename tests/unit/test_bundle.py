"""A model folder: what is written comes back, and what is not sound is refused in its own words."""

import hashlib
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import safetensors.numpy
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from headwise import bundle as module
from headwise.bundle import Bundle
from headwise.errors import BundleDamaged, BundleError, BundleVersion, FolderError, NotABundle, ParameterMismatch

FILES = ["card.md", "config.json", "manifest.json", "tokenizer.json", "weights.safetensors"]


def test_what_is_written_comes_back(bundle, tmp_path):
    bundle.write(tmp_path / "new" / "model")
    again = Bundle.read(tmp_path / "new" / "model")
    assert (again.config, again.tokenizer, again.card, again.stored) == (
        bundle.config,
        bundle.tokenizer,
        bundle.card,
        "float32",
    )
    assert again.weights.keys() == bundle.weights.keys()
    assert all(np.array_equal(again.weights[name], array) for name, array in bundle.weights.items())
    assert sorted(os.listdir(tmp_path / "new" / "model")) == FILES
    assert os.listdir(tmp_path / "new") == ["model"]


def test_which_pieces_are_said_comes_back(bundle, tmp_path):
    n = bundle.config.model.vocab_size
    for name, said in (("some", (0, 1, 2, 3, 6, n - 1)), ("all", tuple(range(n))), ("unknown", ())):
        replace(bundle, said=said).write(tmp_path / name)
        assert Bundle.read(tmp_path / name).said == said


@pytest.mark.parametrize("said", ["AAAA", "8" * 400, "?", 7, ""])
def test_pieces_that_cannot_be_are_refused(bundle, said, tmp_path, monkeypatch):
    """Of another vocabulary, without the end, or no such thing at all."""
    monkeypatch.setattr(module, "_folded", lambda pieces, model: said)
    replace(bundle, said=(0, 1, 2, 3)).write(tmp_path / "model")
    with pytest.raises(BundleDamaged, match="cannot be read"):
        Bundle.read(tmp_path / "model")


def test_a_piece_past_the_vocabulary_is_refused(bundle, tmp_path, monkeypatch):
    n = bundle.config.model.vocab_size
    assert n % 8  # else there is no room for one
    folded = module._folded
    monkeypatch.setattr(
        module, "_folded", lambda said, model: folded(said, model.model_copy(update={"vocab_size": n + 1}))
    )
    replace(bundle, said=(0, 1, 2, 3, n)).write(tmp_path / "model")
    with pytest.raises(BundleDamaged, match=f"does not fit a vocabulary of {n}"):
        Bundle.read(tmp_path / "model")


def test_tokenizer_and_card_may_be_absent(bundle, tmp_path):
    replace(bundle, tokenizer=None, card=None).write(tmp_path / "model")
    again = Bundle.read(tmp_path / "model")
    assert (again.tokenizer, again.card) == (None, None)


def test_the_same_model_is_written_to_the_same_bytes(bundle, tmp_path):
    for name in "ab":
        bundle.write(tmp_path / name)
    for file in FILES:
        assert (tmp_path / "a" / file).read_bytes() == (tmp_path / "b" / file).read_bytes()


def test_float16_is_the_nearest_half(bundle, tmp_path):
    replace(bundle, stored="float16").write(tmp_path / "model")
    again = Bundle.read(tmp_path / "model")
    assert again.stored == "float16"
    for name, array in bundle.weights.items():
        assert again.weights[name].dtype == np.float32
        assert np.array_equal(again.weights[name], array.astype(np.float16))


def test_int8_is_within_half_a_step_of_each_row(bundle, tmp_path):
    bundle.weights["embedding.weight"][5] = 0  # a row of zeros has no scale
    replace(bundle, stored="int8").write(tmp_path / "model")
    again = Bundle.read(tmp_path / "model")
    assert again.stored == "int8"
    for name, array in bundle.weights.items():
        if array.ndim == 2:
            step = np.abs(array).max(axis=1, keepdims=True) / 127
            assert (np.abs(again.weights[name] - array) <= step * 0.5001).all()
        else:
            assert np.array_equal(again.weights[name], array)
    sizes = {}
    for stored in ("float32", "float16", "int8"):
        replace(bundle, stored=stored).write(tmp_path / stored)
        sizes[stored] = (tmp_path / stored / "weights.safetensors").stat().st_size
    assert sizes["int8"] < sizes["float16"] < sizes["float32"]


@given(arrays.arrays(np.float32, (3, 5), elements=st.floats(-(2.0**90), 2.0**90, width=32)))
def test_int8_once_is_int8_for_ever(array):
    once, _ = module._unpack(module._pack({"w": array}, "int8"))
    twice = module._pack(once, "int8")
    assert np.array_equal(twice["w"], module._pack({"w": array}, "int8")["w"])


@pytest.mark.parametrize(("stored", "value", "message"), [
    ("float32", np.nan, "embedding.weight holds NaN or Inf"),
    ("int8", np.inf, "embedding.weight holds NaN or Inf"),
    ("float16", 1e6, "embedding.weight holds values past the range of float16"),
])  # fmt: skip
def test_weights_that_would_be_lost_are_not_written(bundle, tmp_path, stored, value, message):
    bundle.weights["embedding.weight"][2, 3] = value
    with pytest.raises(BundleError, match=message):
        replace(bundle, stored=stored).write(tmp_path / "model")
    assert os.listdir(tmp_path) == []


def test_all_mismatches_are_named_at_once(bundle, tmp_path):
    weights = dict(bundle.weights)
    del weights["encoder.layers.1.feed_forward.w_1.bias"], weights["decoder.layers.0.residual_cross.norm.weight"]
    weights["embedding.weight"] = weights["embedding.weight"][:-1]
    weights["extra.weight"] = np.zeros((2, 3), np.float32)
    expected = [
        "missing: encoder.layers.1.feed_forward.w_1.bias (19,)",
        "missing: decoder.layers.0.residual_cross.norm.weight (14,)",
        "unexpected: extra.weight (2, 3)",
        "wrong shape: embedding.weight is (30, 14), not (31, 14)",
    ]
    with pytest.raises(ParameterMismatch) as caught:
        replace(bundle, weights=weights).write(tmp_path / "model")
    assert str(caught.value).split("\n")[1:] == expected

    bundle.write(tmp_path / "model")
    rewrite(tmp_path / "model", {"weights.safetensors": safetensors.numpy.save(weights)})
    with pytest.raises(ParameterMismatch) as caught:
        Bundle.read(tmp_path / "model")
    assert sorted(str(caught.value).split("\n")[1:]) == sorted(expected)


def rewrite(folder: Path, changes: dict[str, bytes]) -> None:
    """Change files and make the manifest true again, as a careful forger would."""
    for name, data in changes.items():
        (folder / name).write_bytes(data)
    contents = {name: (folder / name).read_bytes() for name in FILES if name != "manifest.json"}
    (folder / "manifest.json").write_bytes(module._manifest(contents))


def edit_manifest(folder: Path, **changes) -> None:
    manifest = json.loads((folder / "manifest.json").read_text())
    (folder / "manifest.json").write_bytes(module._canonical({**manifest, **changes}))


def flip(file: Path, at: int, bit: int = 0) -> None:
    data = bytearray(file.read_bytes())
    data[at] ^= 1 << bit
    file.write_bytes(data)


FAULTS = {
    "absent": (lambda m: shutil.rmtree(m), NotABundle, "there is no model folder"),
    "a file": (lambda m: (shutil.rmtree(m), m.write_text("x")), NotABundle, "is a file; a model of headwise is a folder"),
    "empty": (lambda m: [f.unlink() for f in m.iterdir()], NotABundle, "there is no manifest.json"),
    "no manifest": (lambda m: (m / "manifest.json").unlink(), NotABundle, "has no manifest.json, so its files cannot be"),
    "Hugging Face": (lambda m: foreign(m, "config.json", "model.safetensors"), NotABundle, "like a Hugging Face model"),
    "CTranslate2": (lambda m: foreign(m, "model.bin", "config.json"), NotABundle, "looks like a CTranslate2 model"),
    "Marian": (lambda m: foreign(m, "opus.npz", "decoder.yml"), NotABundle, "looks like a Marian model"),
    "fairseq": (lambda m: foreign(m, "model.pt", "dict.en.txt"), NotABundle, "looks like a PyTorch or fairseq checkpoint"),
    "other manifest": (lambda m: (m / "manifest.json").write_text('{"files": {}}'), NotABundle, "is of something else"),
    "newer": (lambda m: edit_manifest(m, format_version=9), BundleVersion, r"newer headwise \(format 9, this one reads 1\)"),
    "older": (lambda m: edit_manifest(m, format_version=0), BundleVersion, "format 0, older than this headwise reads"),
    "no weights": (lambda m: (m / "weights.safetensors").unlink(), BundleDamaged, "weights.safetensors is missing"),
    "truncated": (lambda m: os.truncate(m / "weights.safetensors", 999), BundleDamaged, "is truncated: 999 bytes, not"),
    "lengthened": (lambda m: (m / "card.md").write_text("# A model\n\n"), BundleDamaged, "is longer than it was: 11 bytes"),
    "flipped": (lambda m: flip(m / "weights.safetensors", 5000), BundleDamaged, "damaged: its SHA-256 is not the one"),
    "manifest cut": (lambda m: os.truncate(m / "manifest.json", 100), BundleDamaged, "it is not a JSON object"),
    "manifest spaced": (lambda m: (m / "manifest.json").open("a").write(" "), BundleDamaged, "manifest.json is damaged"),
    "manifest bare": (lambda m: edit_manifest(m, files={"config.json": 3}), BundleDamaged, "manifest.json is damaged"),
    "manifest without weights": (lambda m: edit_manifest(m, files={}), BundleDamaged, "manifest.json is damaged"),
    "deep JSON": (lambda m: (m / "manifest.json").write_text("[" * 99999), BundleDamaged, "it is not a JSON object"),
    "not safetensors": (lambda m: rewrite(m, {"weights.safetensors": b"\x80\x04K."}), BundleDamaged, "cannot be read"),
    "not UTF-8": (lambda m: rewrite(m, {"card.md": b"\xff"}), BundleDamaged, "cannot be read"),
    "other numbers": (lambda m: rewrite(m, {"weights.safetensors": numbers(np.int64)}), BundleDamaged, "w is int64, not"),
    "no scale": (lambda m: rewrite(m, {"weights.safetensors": numbers(np.int8)}), BundleDamaged, "int8 without a float32"),
    "typo in settings": (lambda m: rewrite(m, {"config.json": b'{"settings": {"modle": {}}}'}), BundleDamaged,
                         "unknown setting 'modle' in .*config.json; did you mean 'model'"),
    "huge": (lambda m: rewrite(m, {"config.json": resized(m, 10**9)}), BundleDamaged, "'model.d_model' is 1000000000"),
}  # fmt: skip


def foreign(folder: Path, *names: str) -> None:
    shutil.rmtree(folder)
    folder.mkdir()
    for name in names:
        (folder / name).write_text("{}")


def numbers(dtype) -> bytes:
    return safetensors.numpy.save({"w": np.zeros((2, 3), dtype)})


def resized(folder: Path, d_model: int) -> bytes:
    raw = json.loads((folder / "config.json").read_text())
    raw["settings"]["model"]["d_model"] = d_model
    return json.dumps(raw).encode()


@pytest.mark.parametrize("fault", FAULTS)
def test_each_fault_has_its_own_words(fault, bundle, tmp_path):
    harm, error, words = FAULTS[fault]
    bundle.write(tmp_path / "model")
    harm(tmp_path / "model")
    with pytest.raises(error, match=words) as caught:
        Bundle.read(tmp_path / "model")
    assert type(caught.value) is error
    assert str(tmp_path / "model") in str(caught.value)


def test_several_damaged_files_are_listed_together(bundle, tmp_path):
    bundle.write(tmp_path / "model")
    (tmp_path / "model" / "card.md").unlink()
    flip(tmp_path / "model" / "config.json", 40)
    with pytest.raises(BundleDamaged) as caught:
        Bundle.read(tmp_path / "model")
    assert len(str(caught.value).split("\n")) == 2


def test_no_flipped_bit_goes_unnoticed(bundle, tmp_path):
    """400 single bits over all files, and 100 truncations: every one is refused, none as an error of ours."""
    bundle.write(tmp_path / "sound")
    choose = random.Random(5)
    for i in range(500):
        harmed = tmp_path / "harmed"
        shutil.copytree(tmp_path / "sound", harmed)
        file = harmed / FILES[i % len(FILES)]
        size = file.stat().st_size
        if i < 400:
            flip(file, choose.randrange(size), choose.randrange(8))
        else:
            os.truncate(file, choose.randrange(size))
        with pytest.raises(BundleError):
            Bundle.read(harmed)
        shutil.rmtree(harmed)


def test_an_existing_folder_is_never_touched(bundle, tmp_path):
    bundle.write(tmp_path / "model")
    before = {file: hashlib.sha256((tmp_path / "model" / file).read_bytes()).digest() for file in FILES}
    with pytest.raises(FolderError, match="is there already; choose another name or move it away"):
        replace(bundle, card="other").write(tmp_path / "model")
    assert before == {file: hashlib.sha256((tmp_path / "model" / file).read_bytes()).digest() for file in FILES}
    (tmp_path / "file").write_text("mine")
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    for name in ("file", "dangling"):
        with pytest.raises(FolderError, match="is there already"):
            bundle.write(tmp_path / name)
    (tmp_path / "empty").mkdir()
    bundle.write(tmp_path / "empty")
    assert Bundle.read(tmp_path / "empty").card == bundle.card
    assert sorted(os.listdir(tmp_path)) == ["dangling", "empty", "file", "model"]


def test_a_full_disk_leaves_nothing(bundle, tmp_path):
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, limit[1]))
    try:
        with pytest.raises(FolderError, match=r"cannot write .*model: File too large; nothing was changed"):
            bundle.write(tmp_path / "model")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
        signal.signal(signal.SIGXFSZ, ignored)
    assert os.listdir(tmp_path) == []


def as_another_user(work) -> str:
    """What `work` raises when it is done without root's privileges, in a child."""
    reader, writer = os.pipe()
    if not (child := os.fork()):
        try:
            if os.getuid() == 0:
                os.setuid(65534)
            work()
            os.write(writer, b"nothing")
        except BaseException as error:
            os.write(writer, f"{type(error).__name__}: {error}".encode())
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    return os.read(reader, 10_000).decode()


@pytest.mark.filterwarnings(
    "ignore:This process:DeprecationWarning"
)  # that it has threads and forks; the child has none
def test_a_folder_of_another_user(bundle, tmp_path):
    bundle.write(tmp_path / "model")
    tmp_path.chmod(0o500 if os.getuid() else 0o700)
    try:
        assert as_another_user(lambda: bundle.write(tmp_path / "new")).startswith("FolderError: cannot write")
        (tmp_path / "model" / "manifest.json").chmod(0)
        assert as_another_user(lambda: Bundle.read(tmp_path / "model")).startswith("BundleError: cannot read")
    finally:
        tmp_path.chmod(0o700)


def test_killed_while_writing_leaves_a_whole_folder_or_none(bundle, tmp_path):
    """A child writes models over and over and is killed at random moments; every folder that has its name is sound."""
    bundle.write(tmp_path / "first")
    script = f"""
from headwise.bundle import Bundle
bundle = Bundle.read({str(tmp_path / "first")!r})
print("ready", flush=True)
for i in range(100_000):
    bundle.write({str(tmp_path)!r} + f"/{{ROUND}}-{{i}}")
"""
    choose = random.Random(9)
    for kill in range(8):
        child = subprocess.Popen([sys.executable, "-c", script.replace("{ROUND}", str(kill))], stdout=subprocess.PIPE)
        child.stdout.readline()
        with pytest.raises(subprocess.TimeoutExpired):
            child.wait(timeout=choose.uniform(0.005, 0.2))
        child.kill()
        child.wait()
        child.stdout.close()
    folders = [folder for folder in tmp_path.iterdir() if not folder.name.startswith(".")]
    assert len(folders) > 8
    for folder in folders:
        assert Bundle.read(folder).card == bundle.card
