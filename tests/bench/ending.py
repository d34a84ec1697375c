"""A benchmark that is told to end ends what it has started and removes its files."""

import signal
import sys

SIGNALS = (signal.SIGINT, signal.SIGTERM)


def end_cleanly() -> None:
    """From now on, ^C and SIGTERM end the program by SystemExit, once: what is cleaned up then is not to be disturbed
    by another one."""
    for each in SIGNALS:
        signal.signal(each, _end_once)


def _end_once(*_):
    for each in SIGNALS:
        signal.signal(each, signal.SIG_IGN)
    sys.exit(1)
