"""How a house test ends: its faults, a line each, or what is well."""

import pathlib
import sys


def end(faults_of, well: str) -> int:
    """Of the tree that the first argument names, or of the one that this file is in. The exit code."""
    root = pathlib.Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parents[2]
    faults = faults_of(root)
    print("\n".join(faults) if faults else well)
    return 1 if faults else 0
