#!/usr/bin/env python3
"""Whether every C++ file is laid out as clang-format lays it out.

    format.py [--fix]
"""

import pathlib
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDERS = ["proto", "logging", "index", "trm-multicast", "replication", "ifsck", "uvfs", "server", "tests"]


def main() -> int:
    program = shutil.which("clang-format-16")
    if program is None:
        print("clang-format-16 is missing: deploy/install-packages.sh installs it")
        return 1
    files = [str(path) for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*"))
             if path.suffix in {".h", ".cc"}]
    action = ["-i"] if "--fix" in sys.argv[1:] else ["--dry-run", "-Werror"]
    return subprocess.run([program, *action, *files], check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
