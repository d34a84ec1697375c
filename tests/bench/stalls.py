"""What both processors did while commands were slow, beside what they do all the time: by samples of `perf script`."""

import bisect
import collections
import dataclasses
import re

import flame

HEAD = re.compile(r"^\s*(.+?)\s+(\d+)\s+\[(\d+)\]\s+(\d+)\.(\d{9}):")
PLUMBING = re.compile(r"EventLoop|Function|Executor|IoRing::(reap|answered)|FileDisk::(\w+_answered|finish)|std::|boost::|operator|lambda|^main$|_start|__libc|^\?$")
CHAIN = 4  # functions of ours that a label names, from the outermost in


@dataclasses.dataclass(frozen=True)
class Sample:
    time_ns: int
    cpu: int
    thread: str
    stack: flame.Stack

    @property
    def label(self) -> str:
        """The thread, and the outermost functions of ours that say what it does; without any, the kernel's."""
        if self.thread.startswith("swapper"):
            return "idle"
        ours = [name for name in self.stack if "mariner::" in name and not PLUMBING.search(name)]
        kernel = [name for name in self.stack if name.endswith("_[k]")]
        chain = [name.replace("mariner::", "") for name in ours[:CHAIN]] or kernel[:CHAIN] or list(self.stack[-1:])
        return f"{self.thread}: " + " > ".join(chain)


def samples(script: str) -> list[Sample]:
    """Of `perf script --ns -F comm,tid,cpu,time,ip,sym,dso`; by time."""
    found, head, frames = [], None, []
    for line in script.splitlines() + [""]:
        if not line.strip():
            if head:
                thread, _, cpu, seconds, ns = head.groups()
                found.append(Sample(int(seconds) * 10**9 + int(ns), int(cpu), thread, tuple(reversed(frames))))
            head, frames = None, []
        elif head is None:
            head = HEAD.match(line)
        elif frame := flame.FRAME.match(line):
            frames.append(flame.named(*frame.groups()))
    return sorted(found, key=lambda each: each.time_ns)


def merged(slow: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Stretches of time in which at least one command was slow; ascending."""
    stretches: list[list[int]] = []
    for begun, ended in sorted(map(tuple, slow)):
        if stretches and begun <= stretches[-1][1]:
            stretches[-1][1] = max(stretches[-1][1], ended)
        else:
            stretches.append([begun, ended])
    return [tuple(each) for each in stretches]


def within(found: list[Sample], stretch: tuple[int, int]) -> list[Sample]:
    def key(each):
        return each.time_ns
    return found[bisect.bisect_left(found, stretch[0], key=key):bisect.bisect_right(found, stretch[1], key=key)]


@dataclasses.dataclass(frozen=True)
class Share:
    label: str
    slow: float    # of the processors' time while commands were slow
    always: float  # of all of it


def shares(found: list[Sample], stretches: list[tuple[int, int]]) -> list[Share]:
    """The most of what is done more while commands are slow than else, first."""
    always = collections.Counter(each.label for each in found)
    slow = collections.Counter(each.label for stretch in stretches for each in within(found, stretch))
    whole, part = max(len(found), 1), max(sum(slow.values()), 1)
    all_of_them = [Share(label, slow[label] / part, always[label] / whole) for label in always]
    return sorted(all_of_them, key=lambda each: each.always - each.slow)
