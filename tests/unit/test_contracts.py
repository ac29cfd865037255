"""The house rules that a machine can hold: who imports whom, public names, nothing unpickled, nothing done on import."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import headwise

SOURCE = Path(headwise.__file__).parent
FILES = sorted(SOURCE.rglob("*.py"))
LAYERS = [  # lowest first; siblings on one line never import each other
    {"errors"},
    {"atomic", "units"},
    {"config", "presets"},
    {"architecture", "runfile", "sinusoids", "home", "machine", "translation"},
    {"text", "model", "search"},
    {"bundle", "data"},
    {"engine", "models"},
    {"guard", "alignment"},
    {"translator"},
    {"loading"},
    {"evaluate", "doctor"},
    {"train", "explain", "interchange"},
    {"serve", "reproduce", "compress", "demo"},
    {"cli"},
]
LEVEL = {name: level for level, names in enumerate(LAYERS) for name in names}
NEED_TORCH = {"model", "search", "engine/torch.py", "train", "explain"}


def part_of(file: Path) -> str:
    return file.relative_to(SOURCE).parts[0].removesuffix(".py")


def imports(file: Path) -> list[str]:
    found = []
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file} imports relatively"
            found.append(node.module or "")
    return found


def test_imports_point_downward():
    for file in FILES:
        here = part_of(file)
        if here in ("__init__", "__main__"):
            continue
        for name in imports(file):
            if name.startswith("headwise.") and (there := name.split(".")[1]) != here:
                assert LEVEL[there] < LEVEL[here], f"{file.relative_to(SOURCE)} imports {name}"


def test_every_part_has_a_layer():
    assert {part_of(file) for file in FILES} - {"__init__", "__main__"} <= set(LEVEL)


def test_torch_is_imported_only_where_it_may_be():
    for file in FILES:
        where = str(file.relative_to(SOURCE))
        if any(name.split(".")[0] == "torch" for name in imports(file)):
            assert where.split("/")[0] in NEED_TORCH or where in NEED_TORCH, where


def test_nothing_is_ever_unpickled():
    forbidden = (
        "pickle",
        " torch.load",
        " torch.save",
        "(torch.load",
        "(torch.save",
        "marshal",
        "shelve",
        "joblib",
        "np.load",
    )
    for file in FILES:
        text = file.read_text()
        assert not [word for word in forbidden if word in text], file
        assert not any(name.split(".")[0] in ("pickle", "marshal", "shelve", "dill") for name in imports(file)), file


PUBLIC = ["Bundle", "HeadwiseError", "ModelConfig", "RunConfig", "SearchConfig", "Task", "Transformer", "Translation", "Translator", "beam", "capture", "describe", "greedy", "load", "load_config"]  # fmt: skip


def test_public_names():
    assert headwise.__all__ == PUBLIC
    with pytest.raises(AttributeError, match="headwise has no 'nonsense'"):
        _ = headwise.nonsense


def test_the_core_does_not_import_torch():
    """Settings, model folder, info and help run to the end without torch in the process."""
    script = (
        "import sys, headwise, headwise.bundle, headwise.architecture, headwise.cli.main as cli\n"
        "assert cli.main(['--help']) == 0 and cli.main(['info', 'base']) == 0 and cli.main(['info', 'tiny', '--json']) == 0\n"
        "assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", script], check=True, stdout=subprocess.DEVNULL)


def test_importing_is_silent_and_cheap():
    """No output, and none of the libraries that only some commands need."""
    script = "import sys, headwise; print([m for m in ('torch', 'numpy', 'pydantic', 'typer') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
    assert (done.stdout.strip(), done.stderr) == ("[]", "")
