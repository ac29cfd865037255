"""Tell glibc to keep the memory that a training step frees: the next step wants it again."""

import ctypes

M_TRIM_THRESHOLD, M_TOP_PAD, M_MMAP_MAX, M_ARENA_MAX = -1, -2, -4, -8  # malloc.h
KEEP = 2**31 - 1  # bytes at the top of the heap that are not given back


def keep_memory() -> bool:
    """For this process, from now on; False where the C library has no such settings."""
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):
        return False
    settings = ((M_MMAP_MAX, 0), (M_TRIM_THRESHOLD, KEEP), (M_TOP_PAD, 64 * 2**20), (M_ARENA_MAX, 1))
    return all([mallopt(name, value) == 1 for name, value in settings])
