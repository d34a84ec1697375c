#!/usr/bin/env python3
"""The rules of the house that a compiler does not check.

- An include stays within its folder or crosses a wall that is drawn in ARCHITECTURE.md, downwards.
- Every source and header is listed in the CMakeLists.txt of its folder, so that it is built.
- Every source that is not a main program has its mirror under tests/, NAME_test.cc.
- A constant of a source file is used in it: one of the two compilers refuses those that are not.
- A class that is no file's own is defined once: two of one name in one program are one to the linker.
- Nothing names the machine it was written on, or a package registry.

    walls.py [ROOT]        prints each fault as FILE:LINE: text; exit code 1 if there is any
"""

import pathlib
import re
import sys

import verdict

# Who may include whom (besides itself).
ALLOWED = {
    "proto": set(),
    "logging": {"proto"},
    "index": {"logging", "proto"},
    "trm-multicast": {"proto"},
    "replication": {"trm-multicast", "proto"},
    "ifsck": {"proto"},
    "ifsck/program": {"ifsck", "proto", "server/client"},
    "uvfs": {"ifsck", "proto", "server/client"},
    "server": {"replication", "trm-multicast", "index", "logging", "proto"},
    "server/peer": {"proto"},
    # Under another licence than the rest: it uses nothing of it, and nothing uses it.
    "server/tgt": set(),
    "tests": {"proto", "logging", "index", "trm-multicast", "replication", "ifsck", "uvfs", "server"},
}
# A main program of ifsck talks to the daemon, and so does what only its programs have; its library does not.
PROGRAM_MAY_ALSO = {"ifsck": {"server/client"}}
# A folder within another that this one may not include, unlike those around it.
ABOVE = {"ifsck/program": "ifsck"}
OTHER_FOLDERS = {"deploy", "build"}
# Sources that do nothing without a tgtd around them and a marinerd before them: tests/e2e/test_tgt_module.py has both.
TESTED_IN_PLACE = {f"server/tgt/{name}.cc" for name in ("bs_mariner", "unit")}

INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"')
CONSTANT = re.compile(r"^(?:static )?constexpr [^()=;{]*?\b(\w+)(?:\[\w*\])? *(?:=|{)", re.MULTILINE)
NAMESPACE = re.compile(r"^namespace ?([\w:]*) ?{")
CLASS = re.compile(r"^(?:class|struct|union|enum(?: class)?) (?:\[\[\w+\]\] )?([\w:]+)(?![\w:<])[^;]*{")
MAIN = re.compile(r"^(int|auto) main\(", re.MULTILINE)
SOURCE_SUFFIXES = {".h", ".cc", ".cpp", ".c"}

# In pieces, so that this file does not name them either.
FORBIDDEN = ["/" + "work/", "py" + "pi.", "npm" + "js.", "crates" + ".io", "proxy.golang" + ".org",
             "deb.debian" + ".org", "docker" + ".io", "gh" + "cr.io", "conda" + ".anaconda"]
TEXT_SUFFIXES = SOURCE_SUFFIXES | {".py", ".sh", ".md", ".txt", ".toml", ".json", ".proto", ".service",
                                   ".cmake", ""}


def project_files(root: pathlib.Path):
    for path in sorted(root.rglob("*")):
        parts = path.relative_to(root).parts
        if path.is_file() and parts[0] not in {"build", ".git"} and "__pycache__" not in parts:
            yield path


def folder_of(relative: pathlib.PurePath) -> str:
    """The folder whose walls hold: one within another may have its own."""
    inner = "/".join(relative.parts[:2])
    if len(relative.parts) > 2 and inner in ALLOWED:
        return inner
    return relative.parts[0] if len(relative.parts) > 1 else ""


def may_include(owner: str, target: str, is_program: bool) -> bool:
    if folder_of(pathlib.PurePath(target)) == "server/tgt" and owner not in {"server/tgt", "tests"}:
        return False
    allowed = {owner} | ALLOWED[owner]
    if is_program:
        allowed |= PROGRAM_MAY_ALSO.get(owner, set())
    elif ABOVE.get(folder_of(pathlib.PurePath(target))) == owner:
        return False
    return any(target == a or target.startswith(a + "/") for a in allowed)


def include_faults(root, path, text):
    relative = path.relative_to(root)
    owner = folder_of(relative)
    is_program = MAIN.search(text) is not None
    for number, line in enumerate(text.splitlines(), 1):
        found = INCLUDE.match(line)
        if not found:
            continue
        target = found.group(1)
        first = target.split("/")[0]
        if first not in ALLOWED:
            yield number, f'"{target}" does not start at the root of the project'
        elif not may_include(owner, target, is_program):
            yield number, f"{owner} may not include {target}: that wall has no door"
        elif not (root / target).exists() and not target.endswith(".pb.h"):
            yield number, f"{target} does not exist"


def is_listed(root, path) -> bool:
    """Whether the nearest CMakeLists.txt upwards names the file."""
    folder = path.parent
    while folder != root and not (folder / "CMakeLists.txt").exists():
        folder = folder.parent
    name = re.escape(str(path.relative_to(folder)))
    text = (folder / "CMakeLists.txt").read_text()
    return re.search(rf"(?<![\w./-]){name}(?![\w.-])", text) is not None


def mirror_of(root, path) -> pathlib.Path:
    relative = path.relative_to(root)
    return root / "tests" / relative.with_name(relative.stem + "_test.cc")


def has_code(text) -> bool:
    """Whether there is more than comments and preprocessor lines: a source of a library that is used
    as a header has none, and nothing to test."""
    return any(line.strip() and not line.lstrip().startswith(("//", "#"))
               for line in text.splitlines())


def unused_constants(text):
    for found in CONSTANT.finditer(text):
        if len(re.findall(rf"\b{found.group(1)}\b", text)) == 1:
            yield text.count("\n", 0, found.start()) + 1, f"{found.group(1)} is not used"


def defined_classes(text):
    """Each class at the outermost level of a namespace that has a name, with its line."""
    within = []
    for number, line in enumerate(text.splitlines(), 1):
        if namespace := NAMESPACE.match(line):
            within.append(namespace.group(1))
        elif line.startswith("}  // namespace") and within:
            within.pop()
        elif all(within) and (found := CLASS.match(line)):
            yield number, "::".join([*within, found.group(1)])


def source_faults(root, path, text):
    yield from include_faults(root, path, text)
    owner = folder_of(path.relative_to(root))
    if not is_listed(root, path):
        yield 1, "is not listed in the CMakeLists.txt of its folder"
    is_source = path.suffix in {".cc", ".cpp", ".c"}
    if is_source and owner != "tests" and str(path.relative_to(root)) not in TESTED_IN_PLACE and not MAIN.search(text) and has_code(text):
        mirror = mirror_of(root, path)
        if not mirror.exists():
            yield 1, f"has no mirror {mirror.relative_to(root)}"
    if is_source:
        yield from unused_constants(text)
    if path.suffix == ".h" and "#pragma once" not in text:
        yield 1, "has no #pragma once"


def text_faults(text):
    for number, line in enumerate(text.splitlines(), 1):
        for word in FORBIDDEN:
            if word in line:
                yield number, f'names "{word}"'


def faults_of(root: pathlib.Path) -> list[str]:
    faults = []
    classes = {}
    for path in project_files(root):
        relative = path.relative_to(root)
        if path.suffix not in TEXT_SUFFIXES:
            continue
        try:
            text = path.read_text()
        except UnicodeDecodeError:
            continue
        found = list(text_faults(text))
        if path.suffix in SOURCE_SUFFIXES and len(relative.parts) > 1:
            if folder_of(relative) in ALLOWED:
                found += source_faults(root, path, text)
                for number, name in defined_classes(text):
                    if first := classes.get(name):
                        found.append((number, f"{name} is another one in {first}"))
                    classes[name] = relative
            elif folder_of(relative) not in OTHER_FOLDERS:
                found.append((1, f"{folder_of(relative)} is not a folder of the project"))
        faults += [f"{relative}:{number}: {what}" for number, what in found]
    return faults


if __name__ == "__main__":
    sys.exit(verdict.end(faults_of, "the house is in order"))
