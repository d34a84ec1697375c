#!/usr/bin/env python3
"""The linker's names of the functions that naive_rule.cc puts others in the place of.

    naive_names.py LIBRARY HEADER OPTIONS

Writes a header that defines them, and the linker's options."""

import pathlib
import re
import subprocess
import sys

# The macro, and the function with the beginning of its parameters.
WANTED = {
    "FROM_LOGGER": r"CoordinatorRole::received\(mariner::replication::NodeId, std::variant<mariner::replication::LogOpened",
    "FROM_STORAGE": r"CoordinatorRole::received\(mariner::replication::NodeId, std::variant<mariner::replication::StorageOpened",
    "TO_STORAGE": r"StorageRole::received\(",
}


def names(library: str, *options: str) -> list[str]:
    lines = subprocess.run(["nm", *options, library], capture_output=True, text=True, check=True).stdout.splitlines()
    return [line.split(" ", 2)[2] for line in lines if re.match("[0-9a-f]+ T ", line)]


def main() -> int:
    library, header, options = sys.argv[1:]
    pairs = list(zip(names(library), names(library, "-C")))
    found = {}
    for macro, function in WANTED.items():
        found[macro] = [name for name, said in pairs if re.search(function, said)]
        if len(found[macro]) != 1:
            print(f"{library}: expected one function {function}, found {found[macro]}", file=sys.stderr)
            return 1
    pathlib.Path(header).write_text("".join(f'#define {macro} "{name}"\n' for macro, (name,) in found.items()))
    pathlib.Path(options).write_text("".join(f"-Wl,--wrap={name}\n" for (name,) in found.values()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
