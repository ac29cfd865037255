"""The processor that headwise runs on."""

import platform
from pathlib import Path

CPUINFO = Path("/proc/cpuinfo")
INSTRUCTIONS = {  # those that matter for speed, and the flags of Linux that tell of them
    "avx2": {"avx2"},
    "avx512": {"avx512f"},
    "vnni": {"avx_vnni", "avx512_vnni"},
    "bf16": {"avx512_bf16", "bf16"},
}


def processor() -> str:
    """Its name."""
    return _line("model name") or platform.processor() or platform.machine()


def instructions() -> list[str]:
    """Those of INSTRUCTIONS that it has; none where that cannot be found out."""
    return [name for name, signs in INSTRUCTIONS.items() if signs & flags()]


def flags() -> set[str]:
    """All that Linux tells of it."""
    return set((_line("flags") or _line("Features")).split())


def _line(name: str) -> str:
    """What the first line of that name says."""
    try:
        lines = CPUINFO.read_text(encoding="utf-8").splitlines()
    except OSError:
        return ""
    return next((line.partition(":")[2].strip() for line in lines if line.startswith(name)), "")
