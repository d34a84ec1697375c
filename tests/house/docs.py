#!/usr/bin/env python3
"""What the documents for administrators name exists in the program.

- A command `mariner NOUN VERB --option` in code is one that the noun's manual page and the client's sources have.
  (That each of the program's stands in its manual page command_test.cc sees to.)
- A key of the configuration, in a toml block or as `[section] key`, is one that marinerd.toml(5) and the sources that
  read it have.
- A metric is one that metrics.cc lists, and so is a label that selects one.
- A disk's name in double quotes is one that INQUIRY answers, with its spaces.
- A link within the tree leads to a file, and to a heading of it.

    docs.py [ROOT]        prints each fault as FILE:LINE: text; exit code 1 if there is any
"""

import pathlib
import re
import shlex
import sys
import tomllib

import verdict

FENCE = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
SPAN = re.compile(r"`([^`\n]+)`")
COMMAND = re.compile(r"(?:^|(?<=[\s(\"'#$]))mariner +(?=[a-z]|--)", re.MULTILINE)
ENDS_COMMAND = re.compile(r"\s[|;&<>]|[;)]|\s#\s|$", re.MULTILINE)
KEY = re.compile(r"^\[\[?([a-z_]+(?:\.[A-Za-z_]+)?)\]\]?(?: ([a-z_]+))?")
METRIC = re.compile(r"\bmariner_[a-z0-9_]+")
SELECTOR = re.compile(r"(mariner_[a-z0-9_]+)\{([^}]*)\}")
LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")
HISTOGRAM_SUFFIXES = ("_bucket", "_sum", "_count")
GLOBAL_PAGE = "mariner.1"
TAKES_A_WORD = {"--socket"}  # of the options that may stand before the noun
BY_THE_LIBRARY = {"--help"}  # not named in our sources


def unescape(roff: str) -> str:
    return roff.replace("\\-", "-").replace("\\&", "").replace("\\(bu", "*")


def line_of(text: str, at: int) -> int:
    return text.count("\n", 0, at) + 1


def sources_text(root: pathlib.Path, folder: str, pattern: str) -> str:
    return "".join(path.read_text() for path in sorted((root / folder).glob(pattern)))


class Commands:
    """What the client understands: by its manual pages, and by the strings in its sources."""

    def __init__(self, root: pathlib.Path):
        self._pages = {path.name: unescape(path.read_text()) for path in (root / "deploy/man").glob("mariner*.1")}
        self._strings = set(re.findall(r'"([a-z-]+)"', sources_text(root, "server/client", "*.cc")))
        # Of each synopsis the words before the first that stands for something: ["view", "expose"].
        self._synopses = [list(self._verbs_of(line)) for page in self._pages.values()
                          for line in re.findall(r"^\.B mariner (.+)$", page, re.MULTILINE)]

    def _verbs_of(self, synopsis: str):
        for word in synopsis.split():
            verbs = set(word.split("|"))
            if not verbs <= self._strings | {"bash", "zsh", "fish"}:
                return
            yield verbs

    def faults(self, words: list[str]):
        while words and words[0].startswith("--"):
            words = words[2 if words[0] in TAKES_A_WORD else 1:]
        if not words:
            return
        if not any(all(word in verbs for word, verbs in zip(words, synopsis)) for synopsis in self._synopses if synopsis):
            yield f"there is no command mariner {' '.join(words[:2])}"
            return
        for word in words[1:]:
            option = word.split("=")[0]
            if re.fullmatch(r"--[a-z-]+", option) and not self._has_option(words[0], option):
                yield f"mariner {words[0]} has no option {option}"

    def _has_option(self, noun: str, option: str) -> bool:
        named = re.compile(re.escape(option) + r"(?![\w-])")
        pages = (self._pages.get(f"mariner-{noun}.1", ""), self._pages[GLOBAL_PAGE])
        return any(named.search(page) for page in pages) and (option in self._strings or option in BY_THE_LIBRARY)


class Configuration:
    """The keys of each section: those of the manual page that the reading sources have, too."""

    def __init__(self, root: pathlib.Path):
        page = unescape((root / "deploy/man/marinerd.toml.5").read_text())
        read = set(re.findall(r'"([a-z_]+)"', sources_text(root, "server/node", "config*.cc")))
        self._keys: dict[str, set[str]] = {}
        for title, body in re.findall(r"^\.SH (.+?)\n(.*?)(?=^\.SH |\Z)", page, re.MULTILINE | re.DOTALL):
            named = {key for line in re.findall(r"^\.B (.+)$", body, re.MULTILINE)
                     for key in re.findall(r"[a-z_]+", line.split("=")[0])}
            section = "" if title == "TOP LEVEL" else title
            if section == "" or title.islower():
                self._keys[section] = named & read

    def faults(self, section: str, key: str | None):
        section = re.sub(r"^auth\..*", "auth", section)
        if section not in self._keys:
            yield f"the configuration has no section [{section}]"
        elif key is not None and key not in self._keys[section]:
            yield f"the configuration has no key {key} in [{section}]" if section else f"there is no key {key} at the top"

    def faults_of_file(self, text: str):
        try:
            table = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            yield f"no TOML: {error}"
            return
        yield from self._faults_of_table("", table)

    def _faults_of_table(self, section: str, table: dict):
        for key, value in table.items():
            tables = value if isinstance(value, list) else [value]
            inner = f"{section}.{key}".lstrip(".")
            if not all(isinstance(each, dict) for each in tables):
                yield from self.faults(section, key)
            elif section == "" and key == "auth":
                for account in value.values():
                    yield from self._faults_of_table("auth", account)
            else:
                yield from self.faults(inner, None)
                for each in tables:
                    yield from self._faults_of_table(inner, each)


class Metrics:
    def __init__(self, root: pathlib.Path):
        source = (root / "server/web/metrics.cc").read_text()
        self._types = dict(re.findall(r'\{"(mariner_\w+)", MetricType::(\w+)', source))
        self._labels = set(re.findall(r'\{"([a-z]+)", ', source)) | {"le"}

    def faults(self, name: str):
        for suffix in HISTOGRAM_SUFFIXES:
            if self._types.get(name.removesuffix(suffix)) == "Histogram":
                return
        if name not in self._types:
            yield f"there is no metric {name}"

    def label_faults(self, selector: str):
        for label in re.findall(r"(\w+)\s*(?:=~|!~|!=|=)", selector):
            if label not in self._labels:
                yield f"no metric has a label {label}"


def disk_names(root: pathlib.Path) -> set[str]:
    """As INQUIRY pads them: eight characters of vendor and sixteen of product, and the vendor alone."""
    vendor = re.search(r' vendor = "(\w+)"', (root / "server/scsi/identity.h").read_text()).group(1)
    products = re.findall(r'"(VOLUME|VIEW)"', (root / "server/scsi/identity.h").read_text())
    return {vendor} | {vendor.ljust(8) + product.ljust(16) for product in products}


def commands_in(code: str):
    """Each command of ours in a piece of code: where it is, and its words."""
    joined = re.sub(r"\\\n", "  ", code)  # of the same length
    for found in COMMAND.finditer(joined):
        rest = joined[found.end():].split("\n")[0]
        rest = rest[:ENDS_COMMAND.search(without_strings(rest)).start()]
        try:
            words = shlex.split(rest)
        except ValueError:
            words = rest.split()
        yield found.start(), [word for word in words if word not in ("...", "…")]


def without_strings(text: str) -> str:
    return re.sub(r"\"[^\"]*\"|'[^']*'", lambda m: "x" * len(m.group()), text)


def code_of(text: str):
    """(where, language or None for a span, code) of each piece."""
    for found in FENCE.finditer(text):
        yield found.start(2), found.group(1), found.group(2)
    blanked = FENCE.sub(lambda m: re.sub(r"[^\n]", " ", m.group()), text)
    for found in SPAN.finditer(blanked):
        yield found.start(1), None, found.group(1)


def slug(heading: str) -> str:
    return re.sub(r"[^\w\- ]", "", heading.replace("`", "").lower()).strip().replace(" ", "-")


def link_faults(root: pathlib.Path, path: pathlib.Path, text: str):
    prose = FENCE.sub(lambda m: re.sub(r"[^\n]", " ", m.group()), text)
    for found in LINK.finditer(prose):
        target, _, anchor = found.group(1).partition("#")
        if "://" in target or target.startswith("mailto:"):
            continue
        leads_to = path if target == "" else (path.parent / target).resolve()
        line = line_of(text, found.start())
        if not leads_to.exists():
            yield line, f"the link {found.group(1)} leads nowhere"
        elif anchor and leads_to.suffix == ".md":
            headings = re.findall(r"^#+ (.+)$", FENCE.sub("", leads_to.read_text()), re.MULTILINE)
            if anchor not in map(slug, headings):
                yield line, f"{leads_to.relative_to(root)} has no heading #{anchor}"


class Checker:
    def __init__(self, root: pathlib.Path):
        self._root = root
        self._commands = Commands(root)
        self._configuration = Configuration(root)
        self._metrics = Metrics(root)
        self._disk_names = disk_names(root)

    def document_faults(self, path: pathlib.Path, text: str):
        yield from link_faults(self._root, path, text)
        for at, language, code in code_of(text):
            for where, words in commands_in(code):
                for fault in self._commands.faults(words):
                    yield line_of(text, at + where), fault
            if language == "toml":
                for fault in self._configuration.faults_of_file(code):
                    yield line_of(text, at), fault
            if language is None and (key := KEY.match(code)):
                for fault in self._configuration.faults(*key.groups()):
                    yield line_of(text, at), fault
        for found in re.finditer(r'"(MARINER[^"\n]*)"', text):
            if found.group(1) not in self._disk_names:
                yield line_of(text, found.start()), f"no disk is called {found.group()}"
        yield from self.metric_faults(text)

    def metric_faults(self, text: str):
        for found in METRIC.finditer(text):
            for fault in self._metrics.faults(found.group()):
                yield line_of(text, found.start()), fault
        for found in SELECTOR.finditer(text):
            for fault in self._metrics.label_faults(found.group(2)):
                yield line_of(text, found.start()), fault


def faults_of(root: pathlib.Path) -> list[str]:
    checker = Checker(root)
    faults = []

    def note(path: pathlib.Path, found):
        faults.extend(f"{path.relative_to(root)}:{line}: {what}" for line, what in found)

    for path in sorted((root / "docs").glob("*.md")):
        note(path, checker.document_faults(path, path.read_text()))
    readme = root / "README.md"
    note(readme, link_faults(root, readme, readme.read_text()))
    alerts = root / "deploy/prometheus-alerts.yml"
    note(alerts, checker.metric_faults(alerts.read_text()))
    return faults


if __name__ == "__main__":
    sys.exit(verdict.end(faults_of, "what the documents name exists"))
