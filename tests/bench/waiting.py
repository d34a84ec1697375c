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


VARIANTS = (
    Variant("mariner_polling", "busy_poll = 100us", ("read_4k_qd1", "write_4k_qd1"),
            lambda ours: ours.daemon.configure_server(busy_poll="100us"), lambda ours: ours.daemon.configure_server(busy_poll="0s")),
    Variant("mariner_looking", "polling = auto", ("write_4k_qd1",),
            lambda ours: ours.restart(polling="auto"), lambda ours: ours.restart(polling="off")),
)
