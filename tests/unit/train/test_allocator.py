"""glibc takes the settings."""

import platform
import subprocess
import sys

import torch  # noqa: F401


def test_memory_is_kept_where_the_c_library_can():
    script = "from headwise.train.allocator import keep_memory; print(keep_memory())"
    done = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == str(platform.libc_ver()[0] == "glibc")
