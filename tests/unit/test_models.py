"""Models that have a name: what is added is sound and whole, and what is removed was the user's own."""

import json
import os
import shutil
from pathlib import Path

import pytest

from headwise import bundle, home, models
from headwise.bundle import Bundle, find_model
from headwise.config import SearchConfig, TokenizerConfig
from headwise.engine.choose import open_engine
from headwise.errors import BundleDamaged, FolderError, InputError, NotABundle
from headwise.text.tokenizer import Tokenizer


@pytest.fixture(autouse=True)
def own(tmp_path, monkeypatch) -> Path:
    """A home without models, and a box without any."""
    monkeypatch.setenv("HEADWISE_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(home, "files", lambda package: tmp_path / "package")
    return tmp_path / "home" / "models"


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def in_box(babbler: Path, name: str) -> Path:
    return Path(shutil.copytree(babbler, home.box() / name))


def test_the_box_is_a_folder_of_the_package(monkeypatch):
    monkeypatch.undo()
    assert home.box() == Path(home.__file__).parent / "box"


def test_nothing_is_there_at_first(own):
    assert models.list_models() == models.verify() == []
    assert not own.exists()


def test_what_is_added_is_the_same_byte_for_byte_and_nothing_else(babbler, own, tmp_path):
    given = Path(shutil.copytree(babbler, tmp_path / "babbler"))
    (given / "notes.txt").write_text("mine")
    (given / "resume").mkdir()
    added = models.add(given)
    assert contents(own / "babbler") == contents(babbler)
    assert os.listdir(own) == ["babbler"]
    assert (added.name, added.folder, added.origin, added.fault) == ("babbler", own / "babbler", "yours", None)
    assert (added.languages, added.stored) == ("und -> und", "float32")
    assert added.n_bytes == sum(map(len, contents(babbler).values()))
    assert added.n_parameters == sum(array.size for array in Bundle.read(babbler).weights.values())
    assert models.list_models() == [added]
    assert find_model("babbler") == own / "babbler"


@pytest.mark.parametrize(
    ("place", "given", "name"),
    [
        ("runs/mine/model", "runs/mine/model", "mine"),
        ("runs/mine/model", "runs/mine", "mine"),
        ("runs/mine/checkpoints/step-00000007", "runs/mine", "mine"),
        ("runs/mine/checkpoints/step-00000007", "runs/mine/checkpoints/step-00000007", "mine"),
        ("runs/mine/model", "runs/mine/../mine/model/", "mine"),
        ("elsewhere/model", "elsewhere/model", "elsewhere"),
        ("my model", "my model", "my model"),
    ],
)
def test_the_name_is_that_of_the_run_or_the_folder(babbler, tmp_path, monkeypatch, place, given, name):
    monkeypatch.chdir(tmp_path)
    shutil.copytree(babbler, place)
    if place.startswith("runs"):
        Path("runs/mine/run.toml").touch()
    assert models.add(given).name == name


@pytest.mark.parametrize("name", ["", ".", "..", ".hidden", "a/b", "../up", "a\\b", "-x", "a\nb", "a\0b", "/tmp/x"])
def test_other_names_are_refused(babbler, own, name):
    with pytest.raises(InputError, match="is no name for a model"):
        models.add(babbler, name)
    assert not own.exists()


def test_a_name_is_taken_once(babbler, own):
    in_box(babbler, "boxed")
    models.add(babbler, "mine")
    before = contents(own / "mine")
    words = "there is a model 'mine' already; give another name with --name, or first: headwise models remove mine"
    with pytest.raises(FolderError, match=f"^{words}$"):
        models.add(babbler, "mine")
    with pytest.raises(FolderError, match=r"^there is a model 'boxed' already; give another name with --name$"):
        models.add(babbler, "boxed")
    assert contents(own / "mine") == before
    assert os.listdir(own) == ["mine"]


def test_what_is_not_sound_is_not_added(babbler, own, tmp_path):
    given = Path(shutil.copytree(babbler, tmp_path / "given"))
    (given / "config.json").write_text("{}")
    with pytest.raises(BundleDamaged, match=r"given/config.json is truncated"):
        models.add(given)
    (tmp_path / "foreign").mkdir()
    (tmp_path / "foreign" / "model.bin").touch()
    with pytest.raises(NotABundle, match="it looks like a CTranslate2 model"):
        models.add(tmp_path / "foreign")
    with pytest.raises(NotABundle, match="there is no model folder"):
        models.add(tmp_path / "nowhere")
    assert not own.exists()


def test_damage_is_told_and_stops_nothing(babbler, own):
    for name in ("cut", "empty", "sound"):
        models.add(babbler, name)
    os.truncate(own / "cut" / "weights.safetensors", 99)
    (own / "cut" / "tokenizer.json").unlink()
    shutil.rmtree(own / "empty")
    (own / "empty").mkdir()
    (own / ".unfinished").mkdir()
    (own / "a file").touch()
    cut, empty, sound = models.list_models()
    assert cut.fault
    assert empty.fault
    assert [line.split(";")[0].split("/")[-1] for line in cut.fault.split("\n")] == [
        "tokenizer.json is missing",
        f"weights.safetensors is truncated: 99 bytes, not {(babbler / 'weights.safetensors').stat().st_size}",
    ]
    assert "is not a model folder of headwise" in empty.fault
    assert (cut.n_parameters, empty.n_bytes, sound.fault) == (None, 0, None)
    assert models.verify("cut") == [cut]
    with pytest.raises(NotABundle, match=r"there is no model 'cuts'; did you mean 'cut'?"):
        models.verify("cuts")


def test_weights_that_do_not_fit_their_settings_are_a_fault(babbler, own):
    models.add(babbler, "mine")
    file = own / "mine" / "config.json"
    settings = json.loads(file.read_text())
    settings["settings"]["model"]["d_ff"] += 1
    file.write_text(json.dumps(settings))
    listed = {name: data for name, data in contents(own / "mine").items() if name != "manifest.json"}
    (own / "mine" / "manifest.json").write_bytes(bundle._manifest(listed))
    [found] = models.verify()
    assert found.fault
    assert "wrong shape" in found.fault


def test_target_languages_are_those_that_can_be_asked_for(babbler, tmp_path):
    known = Bundle.read(babbler)
    lines = ["the quick brown fox"] * 9
    tokenizer = Tokenizer.learn(lines, lines, TokenizerConfig(vocab_size=300), 9, languages=["de", "fr"])
    Bundle(known.config, known.weights, tokenizer.to_text()).write(tmp_path / "many")
    assert models.add(tmp_path / "many").languages == "und -> de, fr"
    turned = known.config.model_copy(update={"data": known.config.data.model_copy(update={"source_lang": "de"})})
    Bundle(turned, known.weights, tokenizer.to_text()).write(tmp_path / "both")
    assert models.add(tmp_path / "both").languages == "de <-> fr"


def test_a_model_in_the_box_can_be_used_but_not_removed(babbler, own):
    folder = in_box(babbler, "boxed")
    [found] = models.list_models()
    assert (found.name, found.origin, found.fault) == ("boxed", "box", None)
    assert find_model("boxed") == folder
    with pytest.raises(InputError, match="'boxed' came with headwise and stays"):
        models.remove("boxed")
    assert contents(folder) == contents(babbler)


def test_the_users_own_goes_before_one_that_a_later_headwise_brings(babbler, own):
    models.add(babbler, "same")
    in_box(babbler, "same")
    assert [(model.name, model.origin) for model in models.list_models()] == [("same", "yours")]
    models.remove("same")
    assert [(model.name, model.origin) for model in models.list_models()] == [("same", "box")]


def test_what_is_removed_is_gone_with_what_was_made_from_it(babbler, own, tmp_path):
    models.add(babbler, "mine")
    models.add(babbler, "other")
    search = SearchConfig(length_penalty="length+eos", stop="finished")
    open_engine(own / "mine", Bundle.read(own / "mine"), search, threads=1, kind="float32")
    (home.converted() / "0123-1.0").mkdir()
    assert len(os.listdir(home.converted())) == 2
    models.remove("mine")
    assert os.listdir(own) == ["other"]
    assert os.listdir(home.converted()) == ["0123-1.0"]


def test_a_damaged_one_can_be_removed(babbler, own):
    models.add(babbler, "mine")
    (own / "mine" / "manifest.json").unlink()
    models.remove("mine")
    assert os.listdir(own) == []


def test_nothing_outside_is_removed(babbler, own, tmp_path):
    models.add(babbler, "mine")
    outside = Path(shutil.copytree(babbler, tmp_path / "outside"))
    (own / "link").symlink_to(outside)
    with pytest.raises(InputError, match=r"link is a link to .*outside; remove the link with rm"):
        models.remove("link")
    for name in ("../outside", str(outside), ".", "..", "", "mine/", "mine/../mine"):
        with pytest.raises(NotABundle, match="there is no model"):
            models.remove(name)
    (own / "mine" / "inside").symlink_to(outside)
    models.remove("mine")
    assert contents(outside) == contents(babbler)
    assert os.listdir(own) == ["link"]


def test_an_unknown_name_is_answered_with_the_nearest(babbler):
    in_box(babbler, "english-german")
    with pytest.raises(NotABundle, match=r"^there is no model 'english-germn'; did you mean 'english-german'"):
        find_model("english-germn")
    with pytest.raises(NotABundle, match=r"^there is no model 'x'; headwise models list shows those that have a name$"):
        find_model("x")
