"""Other ways for the daemon to wait: settings that cost processor time and save latency, or the other way round."""

import contextlib
import dataclasses
from collections.abc import Callable, Iterator

from servers import Mariner


@dataclasses.dataclass(frozen=True)
class Variant:
    """The same daemon, with the same data, under another setting."""
    id: str
    setting: str
    loads: tuple[str, ...]  # ids of those that it makes a difference for
    begin: Callable[[Mariner], None]
    end: Callable[[Mariner], None]  # as it was

    @contextlib.contextmanager
    def of(self, ours: Mariner) -> Iterator[None]:
        self.begin(ours)
        try:
            yield
        finally:
            self.end(ours)



def _sleeping(ours: Mariner):
    ours.daemon.configure_server(busy_poll="0s")
    ours.daemon.configure_log(polling="off")


def _as_by_itself(ours: Mariner):
    ours.daemon.configure_server(busy_poll="auto")
    ours.daemon.configure_log(polling="auto")


ONE_BY_ONE = ("read_4k_qd1", "write_4k_qd1")

VARIANTS = (
    Variant("mariner_polling", "busy_poll = 100us", ONE_BY_ONE,
            lambda ours: ours.daemon.configure_server(busy_poll="100us"), lambda ours: ours.daemon.configure_server(busy_poll="auto")),
    Variant("mariner_sleeping", "busy_poll = 0s, polling = off", ONE_BY_ONE, _sleeping, _as_by_itself),
)
