"""Runs of pytest that share the tests: each takes file after file, until there is none that nobody has taken.

What is of a module stays in one run; what is of a session, each run has for itself."""

import pathlib
import re

import pytest


class TakingTurns:
    """One of them, as a plugin. `share` is "NUMBER/COUNT:FOLDER", NUMBER from 1 on; the folder, empty at first, is that of all of
    them, and has a file for each that is taken."""

    def __init__(self, share: str):
        words = re.fullmatch(r"(\d+)/(\d+):(.+)", share)
        self.number, self.count = (int(words[1]), int(words[2])) if words else (0, 0)
        if not 1 <= self.number <= self.count:
            raise pytest.UsageError(f"--share {share}: NUMBER/COUNT:FOLDER is expected, NUMBER from 1 to COUNT")
        self._taken = pathlib.Path(words[3])
        self._is_mine: dict[str, bool] = {}

    def takes(self, file: str) -> bool:
        """Whether it is this run's; asked once, the answer stays."""
        if file not in self._is_mine:
            try:
                (self._taken / file.replace("/", "+")).touch(exist_ok=False)
                self._is_mine[file] = True
            except FileExistsError:
                self._is_mine[file] = False
        return self._is_mine[file]

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item):
        """True: there is nothing to do, and no report."""
        return None if self.takes(item.location[0]) else True
