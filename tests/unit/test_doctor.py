"""What is well passes, what is amiss is found, and each comes with its way out."""

import importlib.metadata
import os
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from headwise import __version__, doctor, home, machine, models
from headwise.doctor import Finding, examine

torch_alone = pytest.mark.skipif(not find_spec("torch"), reason="torch is not installed")


@pytest.fixture(autouse=True)
def well(tmp_path, monkeypatch):
    """A machine on which nothing is amiss, and torch is not asked."""
    monkeypatch.setenv("HEADWISE_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(home, "files", lambda package: tmp_path / "package")
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.chdir(tmp_path)
    for name in (*doctor.LIMITS, *doctor.HOLD_BACK):
        monkeypatch.delenv(name, raising=False)


def found() -> dict[str, Finding]:
    return {finding.name: finding for finding in examine()}


def about(name: str) -> tuple[str, str, str]:
    finding = found()[name]
    return finding.level, finding.found, finding.remedy


def test_where_all_is_well(babbler, tmp_path):
    models.add(babbler, "mine")
    seen = found()
    assert [name for name, finding in seen.items() if finding.level == "problem"] == []
    assert seen["headwise"].found == __version__
    assert seen["numpy"].found == importlib.metadata.version("numpy")
    assert seen["gpu"].found == "not used: torch is not installed"
    assert seen["processor"].found
    assert seen["your models"].found.startswith(str(tmp_path / "home" / "models"))
    assert seen["mine"].found.startswith("sound; und -> und, ")
    assert {finding.part for finding in seen.values()} == {"versions", "machine", "places", "extras", "models"}
    assert all(finding.remedy for finding in seen.values() if finding.level != "pass")


def test_nothing_is_changed(tmp_path):
    list(examine())
    assert os.listdir(tmp_path) == []


def requiring(monkeypatch, *lines: str) -> None:
    monkeypatch.setattr(importlib.metadata, "requires", lambda name: list(lines))


def test_libraries_out_of_range_and_extras(monkeypatch):
    pytest.importorskip("packaging")
    version = importlib.metadata.version("numpy")
    requiring(
        monkeypatch,
        "numpy>=900",
        "nonsense<3,>=2",
        'numpy>=1; extra == "good"',
        "nonsense>=2; extra == 'lacking'",
        'numpy>=900; extra == "old"',
    )
    assert about("numpy") == ("problem", f"{version} is not >=900", "pip install 'numpy>=900'")
    assert about("nonsense") == ("problem", "not installed", "pip install 'nonsense<3,>=2'")
    assert about("good") == ("pass", f"numpy {version}", "")
    assert about("lacking") == ("note", "not installed: nonsense", "pip install 'headwise[lacking]'")
    assert about("old") == ("problem", "installed, but not numpy>=900", "pip install 'headwise[old]'")


def test_without_packaging_ranges_are_taken_for_granted(monkeypatch):
    monkeypatch.setitem(sys.modules, "packaging.requirements", None)
    requiring(monkeypatch, "numpy>=900")
    assert about("numpy")[0] == "pass"


def test_run_from_its_source(monkeypatch):
    def nothing(name):
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "requires", nothing)
    assert about("libraries")[:2] == ("note", "headwise is not installed, but run from its source")


@pytest.mark.parametrize(
    ("flags", "level", "told"),
    [
        ("flags : fpu avx2 avx512f avx512_vnni avx512_bf16", "pass", "avx2, avx512, vnni, bf16"),
        ("flags : fpu avx2 avx_vnni", "pass", "avx2, vnni; no avx512, bf16"),
        ("Features : asimd bf16", "pass", "bf16; no avx2, avx512, vnni"),
        ("flags : fpu", "pass", "none known"),
    ],
)
def test_instructions(monkeypatch, tmp_path, flags, level, told):
    monkeypatch.setattr(machine, "CPUINFO", tmp_path / "cpuinfo")
    monkeypatch.setattr(doctor.platform, "machine", lambda: "aarch64" if "Features" in flags else "x86_64")
    (tmp_path / "cpuinfo").write_text(f"processor : 0\nmodel name : A: B\n{flags}\n")
    assert about("instructions")[:2] == (level, told)
    assert about("processor")[1] == "A: B"


def test_variables_that_limit_threads(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    level, told, remedy = about("threads")
    assert (level, told.split(", ")[-1]) == ("note", "OMP_NUM_THREADS=1")
    assert "unset OMP_NUM_THREADS" in remedy


def test_variables_that_hold_instructions_back(monkeypatch, tmp_path):
    monkeypatch.setattr(machine, "CPUINFO", tmp_path / "cpuinfo")
    (tmp_path / "cpuinfo").write_text("flags : avx2 avx512f\n")
    monkeypatch.setenv("OPENBLAS_CORETYPE", "Haswell")
    level, told, remedy = about("instructions")
    assert (level, told.split(", ")[-1]) == ("note", "OPENBLAS_CORETYPE=Haswell")
    assert "unset OPENBLAS_CORETYPE" in remedy


def test_little_memory_and_little_disk(monkeypatch, tmp_path):
    monkeypatch.setattr(doctor, "MEMINFO", tmp_path / "meminfo")
    assert about("memory")[0] == "note"
    (tmp_path / "meminfo").write_text("MemTotal: 4000000 kB\nMemFree: 1 kB\nMemAvailable: 500000 kB\n")
    assert about("memory")[:2] == ("note", "512.0 MB of 4.1 GB free")
    monkeypatch.setattr(doctor, "LITTLE", 10**18)
    assert about("your models")[0] == about("current folder")[0] == "note"


def test_a_home_that_cannot_be_written_to(monkeypatch, tmp_path):
    (tmp_path / "file").touch()
    monkeypatch.setenv("HEADWISE_HOME", str(tmp_path / "file"))
    level, told, remedy = about("your models")
    assert (level, remedy) == ("problem", "set HEADWISE_HOME to a folder that you may write to")
    assert told == f"{tmp_path}/file/models cannot be written to: Not a directory"


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")  # that it has threads and forks
def test_a_home_of_another_user(tmp_path):
    (tmp_path / "home").mkdir(0o500)
    if not (child := os.fork()):  # root may write anywhere, so it is looked at without root's privileges
        if os.getuid() == 0:
            os.setuid(65534)
        os._exit([finding.level for finding in doctor._places()].index("problem"))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@pytest.mark.parametrize(
    ("variables", "said"),
    [
        ({"LC_ALL": "C.UTF-8"}, "pass UTF-8 \n"),
        ({"LC_ALL": "C"}, "pass UTF-8 \n"),  # where Python takes UTF-8 nevertheless
        ({"LC_ALL": "C.UTF-8", "PYTHONIOENCODING": "latin-1"}, "problem output is iso8859-1 unset PYTHONIOENCODING; export PYTHONUTF8=1\n"),
        ({"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONIOENCODING": "utf-8", "PYTHONCOERCECLOCALE": "0"},
         "problem locale is ANSI_X3.4-1968 unset PYTHONIOENCODING; export PYTHONUTF8=1\n"),
    ],
)  # fmt: skip
def test_output_that_is_not_utf_8(variables, said):
    script = "from headwise.doctor import _encoding as e; print(e().level, e().found, e().remedy)"
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("LC_", "LANG", "PYTHON"))}
    path = {"PYTHONPATH": str(Path(doctor.__file__).parents[1])}
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=kept | path | variables)
    assert done.stdout == said


def test_damaged_models(babbler, tmp_path):
    assert about("none") == ("note", "there are none yet", "headwise models add DIR")
    models.add(babbler, "mine")
    shutil.copytree(babbler, home.box() / "boxed")
    for folder in (home.own_models() / "mine", home.box() / "boxed"):
        (folder / "tokenizer.json").unlink()
    level, told, remedy = about("mine")
    assert (level, remedy) == ("problem", "headwise models remove mine, and add it again")
    assert "tokenizer.json is missing" in told
    assert about("boxed")[::2] == ("problem", "pip install --force-reinstall headwise")


@torch_alone
def test_torch_is_asked_in_a_process_of_its_own(monkeypatch):
    monkeypatch.delitem(sys.modules, "torch")
    before = "torch" in sys.modules
    assert doctor._gpu().level == "pass"
    assert ("torch" in sys.modules) == before
    monkeypatch.setattr(doctor, "ASK_TORCH", "raise OSError('libcudart.so: cannot open')")
    finding = doctor._gpu()
    assert (finding.level, finding.found) == ("problem", "torch cannot be imported: OSError: libcudart.so: cannot open")
