"""What a guest's trace (guest/version_workload.cc) says that there was: by path, its incarnations and their versions."""

import bisect
import dataclasses
import pathlib


@dataclasses.dataclass(frozen=True)
class Version:
    mode: int
    size: int
    modified_ns: int
    changed_ns: int
    checksum: str
    # When it was so, where the disk's writes tell that.
    begun_ns: int = dataclasses.field(default=0, compare=False)
    ended_ns: int = dataclasses.field(default=1 << 63, compare=False)

    @classmethod
    def of(cls, mode: str, size: str, modified: str, changed: str, checksum: str) -> "Version":
        return cls(int(mode, 8), int(size), int(modified), int(changed), checksum)

    def looks_like(self, other: "Version") -> bool:
        return dataclasses.replace(self, changed_ns=0) == dataclasses.replace(other, changed_ns=0)


@dataclasses.dataclass
class Incarnation:
    inode: int
    versions: list[Version]
    ended: bool = False


Histories = dict[str, list[Incarnation]]


def of_trace(file: pathlib.Path) -> Histories:
    found: Histories = {}
    for line in file.read_text(encoding="utf8").splitlines():
        kind, path, *rest = line.split(" ")
        if kind == "T":
            continue
        lives = found.setdefault(path, [])
        if kind == "D":
            lives[-1].ended = True
            continue
        inode, version = int(rest[0]), Version.of(*rest[1:])
        if not lives or lives[-1].ended or lives[-1].inode != inode:
            lives.append(Incarnation(inode, []))
        lives[-1].versions.append(version)
    for lives in found.values():
        for life in lives:
            life.versions = distinct(life.versions)
    return found


def distinct(versions: list[Version]) -> list[Version]:
    """Without those that look like the one before, and without those whose time of change the next one has, too: within one tick of
    the guest's clock nothing in the file system tells them apart."""
    last_of_tick = [each for i, each in enumerate(versions)
                    if i + 1 == len(versions) or versions[i + 1].changed_ns != each.changed_ns]
    kept: list[Version] = []
    for each in last_of_tick:
        if not kept or not each.looks_like(kept[-1]):
            kept.append(each)
    return kept


def of_search(text: str) -> Histories:
    """From what mariner_uvfs_versions prints."""
    found: Histories = {}
    for line in text.splitlines():
        path, number, inode, _, begun, ended, *rest = line.split("\t")
        lives = found.setdefault(path, [])
        while len(lives) < int(number):
            lives.append(Incarnation(int(inode), []))
        lives[-1].versions.append(dataclasses.replace(
            Version.of(*rest), begun_ns=int(begun), ended_ns=1 << 63 if ended == "-" else int(ended)))
    return found


def ends_of(file: pathlib.Path) -> list[int]:
    """When the operations of a trace that says so were over; ascending."""
    return [int(line.split(" ")[1]) for line in file.read_text(encoding="utf8").splitlines() if line.startswith("T ")]


def between_operations(found: Histories, ends: list[int]) -> Histories:
    """Without what was there while an operation was under way, and at the end of none: a trace knows nothing of it."""
    def seen(begun: int, ended: int) -> bool:
        return bisect.bisect_left(ends, begun) < bisect.bisect_left(ends, ended)

    kept: Histories = {}
    for path, lives in found.items():
        for life in lives:
            versions = [each for each in life.versions if seen(each.begun_ns, each.ended_ns)]
            if not versions:
                continue
            before = kept.setdefault(path, [])
            if before and before[-1].inode == life.inode and not seen(before[-1].versions[-1].ended_ns, versions[0].begun_ns):
                before[-1] = Incarnation(life.inode, before[-1].versions + versions, life.ended)
            else:
                before.append(Incarnation(life.inode, versions, life.ended))
    return kept


def differences(ours: Histories, wanted: Histories) -> list[str]:
    said = []
    for path in sorted(set(ours) | set(wanted)):
        mine, theirs = ours.get(path, []), wanted.get(path, [])
        if len(mine) == len(theirs) and all(are_alike(*pair) for pair in zip(mine, theirs)):
            continue
        said.append(f"{path}:\n  found {text_of(mine)}\n  trace {text_of(theirs)}")
    return said


def are_alike(one: Incarnation, other: Incarnation) -> bool:
    return one.inode == other.inode and len(one.versions) == len(other.versions) and all(
        mine.looks_like(theirs) for mine, theirs in zip(one.versions, other.versions))


def text_of(lives: list[Incarnation]) -> str:
    return "; ".join(f"inode {each.inode}: " + ", ".join(
        f"{version.mode:o} {version.size} {version.modified_ns} {version.changed_ns} {version.checksum}" for version in each.versions)
        for each in lives)


def count(histories: Histories) -> tuple[int, int, int]:
    """Paths, incarnations, versions."""
    lives = [each for all_of_path in histories.values() for each in all_of_path]
    return len(histories), len(lives), sum(len(each.versions) for each in lives)
