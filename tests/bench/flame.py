"""What `perf script` says of a process's stacks: folded, sorted by the kind of work, and drawn as a flame graph."""

import collections
import html
import re

Stack = tuple[str, ...]  # from the outermost function in

WIDTH, ROW, HEAD, LETTER = 1200, 16, 44, 6.6
LEAST = 0.0008  # of all samples: what is narrower is not drawn
KERNEL, OURS, OTHERS = "#e0a458", "#5b9a6b", "#8fb4c9"
FRAME = re.compile(r"^\s+[0-9a-f]+ (.+?)(?:\+0x[0-9a-f]+)? \((.*)\)$")
TEMPLATE_OR_ARGUMENTS = re.compile(r"<[^<>]*>|\([^()]*\)")


def short(name: str) -> str:
    """Without template arguments, parameters and what the compiler added."""
    for _ in range(12):
        shorter = TEMPLATE_OR_ARGUMENTS.sub("", name)
        if shorter == name:
            break
        name = shorter
    return re.sub(r"\.(isra|part|constprop|cold|lto_priv)\.?\d*", "", name).replace(" const", "").strip() or "?"


def named(name: str, place: str) -> str:
    """A frame's name as stacks have it; of the kernel, it ends in "_[k]"."""
    is_kernel = place.startswith("[kernel") or place.endswith(".ko")
    return (name if is_kernel else short(name)) + ("_[k]" if is_kernel else "")


def fold(script: str) -> collections.Counter:
    """Counts of stacks, in samples."""
    folded: collections.Counter = collections.Counter()
    frames: list[str] = []
    for line in script.splitlines() + [""]:
        frame = FRAME.match(line)
        if frame:
            frames.append(named(*frame.groups()))
        elif not line.strip() and frames:
            folded[tuple(reversed(frames))] += 1
            frames = []
    return folded


def shares(folded: collections.Counter, kinds: list[tuple[str, str]]) -> dict[str, float]:
    """The share of all samples that each kind has: (name, pattern); a stack is of the first kind whose pattern is found in it."""
    patterns = [(name, re.compile(pattern)) for name, pattern in kinds]
    counts: collections.Counter = collections.Counter()
    for stack, samples in folded.items():
        text = ";".join(stack)
        counts[next((name for name, pattern in patterns if pattern.search(text)), "other")] += samples
    whole = max(sum(counts.values()), 1)
    return {name: counts[name] / whole for name in [*dict(kinds), "other"]}


def svg(title: str, folded: collections.Counter) -> str:
    """The outermost function below, the widths by samples; the name and the share of each when it is pointed at."""
    whole = sum(folded.values())
    root: dict = {}
    for stack, samples in folded.items():
        node = root
        for name in stack:
            entry = node.setdefault(name, [0, {}])
            entry[0] += samples
            node = entry[1]
    boxes: list[tuple[int, float, float, str]] = []  # depth, begin, width, name

    def lay(node: dict, depth: int, begin: float):
        for name, (samples, inner) in sorted(node.items()):
            share = samples / whole
            if share >= LEAST:
                boxes.append((depth, begin, share, name))
                lay(inner, depth + 1, begin)
            begin += share

    lay(root, 0, 0.0)
    rows = max((depth for depth, *_ in boxes), default=0) + 1
    height = HEAD + rows * ROW + 10
    body = []
    for depth, begin, share, name in boxes:
        x, width, y = 10 + begin * (WIDTH - 20), share * (WIDTH - 20), height - 10 - (depth + 1) * ROW
        is_kernel = name.endswith("_[k]")
        colour = KERNEL if is_kernel else OURS if "mariner::" in name else OTHERS
        words = html.escape(name.removesuffix("_[k]"))
        letters = int(width / LETTER) - 1
        text = html.escape(name.removesuffix("_[k]").removeprefix("mariner::")[:letters]) if letters > 2 else ""
        body.append(f'<g><title>{words}: {share:.2%}</title><rect x="{x:.1f}" y="{y}" width="{width:.1f}" height="{ROW - 1}" '
                    f'fill="{colour}"/><text x="{x + 3:.1f}" y="{y + 11}">{text}</text></g>')
    style = "text{font:10.5px monospace;fill:#222}.title{font:bold 15px sans-serif}.key{font:12px sans-serif}"
    key = "".join(f'<rect x="{x}" y="8" width="12" height="12" fill="{colour}"/><text x="{x + 17}" y="18" class="key">{name}</text>'
                  for x, colour, name in ((WIDTH - 300, OURS, "Mariner"), (WIDTH - 210, OTHERS, "libraries"), (WIDTH - 110, KERNEL, "kernel")))
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}"><style>{style}</style>'
            f'<rect width="100%" height="100%" fill="white"/><text x="10" y="20" class="title">{html.escape(title)}</text>{key}'
            f'{"".join(body)}</svg>\n')
