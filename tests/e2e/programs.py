"""Other programs, run to their end."""

import subprocess


def run(*words, timeout_s: float = 120, **options) -> subprocess.CompletedProcess:
    return subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=timeout_s, check=False, **options)


def done(*words, **options) -> str:
    """What it printed; it has to succeed."""
    ended = run(*words, **options)
    assert ended.returncode == 0, (words, ended.stdout, ended.stderr)
    return ended.stdout
