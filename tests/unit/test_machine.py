"""What the processor has, and who is told of it."""

import os

import pytest

from headwise import machine


@pytest.mark.parametrize(
    ("flags", "said", "told"),
    [
        ("avx2 avx512f avx512cd avx512vl avx512dq avx512bw", None, "SkylakeX"),
        ("avx2 avx512f avx512cd avx512vl avx512dq avx512bw", "Haswell", "Haswell"),
        ("avx2 avx512f", None, None),
    ],
)
def test_avx512_is_told_of_where_it_is_and_the_user_has_said_nothing(flags, said, told, tmp_path, monkeypatch):
    (tmp_path / "cpuinfo").write_text(f"flags\t\t: {flags}\n")
    monkeypatch.setattr(machine, "CPUINFO", tmp_path / "cpuinfo")
    monkeypatch.setenv("OPENBLAS_CORETYPE", said or "")
    if said is None:
        monkeypatch.delenv("OPENBLAS_CORETYPE")
    machine.prefer_avx512("OPENBLAS_CORETYPE")
    assert os.environ.get("OPENBLAS_CORETYPE") == told
