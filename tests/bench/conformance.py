#!/usr/bin/env python3
"""libiscsi's conformance suite against Mariner and tgt, test by test: what passes, what is skipped, what fails.

    conformance.py [--short] [--variant NAME]... [--family NAME]... [--folder FOLDER]

Each test is a process of its own on a fresh disk of 128 MiB that it may destroy; a second URL leads to the same
disk over another address. Variants: plain, chap (mutual), digests (of headers and data), 4kn (4,096-byte blocks). A
skip is counted apart, though libiscsi itself counts it as passed. tgt is as well configured as it can be: thin
provisioning, everything else as in the benchmarks. Tests of removable media have a disk with one, with both."""

import argparse
import collections
import pathlib
import sys
import tempfile
import time

import servers  # noqa: F401  first: it shows Python where the end-to-end drivers are
from conformance_tgt import TgtDisks
from ending import end_cleanly
from libiscsi_expectations import expected
from libiscsi_suite import (FAILED, OF_REMOVABLE_MEDIA, OF_THE_PAST, PASSED, SKIPPED, VARIANTS, MarinerDisks, Outcome,
                            Runner, Variant, family_of, listed_tests)
from results import OUT, Row, describe, header, line, machine, say, write_json

OURS, RIVAL = "Mariner", "tgt"
VERDICTS = (PASSED, SKIPPED, FAILED)
# In --short: quick families of all kinds, of two variants.
SHORT_FAMILIES = {"Inquiry", "ReadCapacity16", "Read10", "ModeSense6", "ProutRegister", "Unmap", "iSCSIResiduals",
                  "MultipathIO"}
SHORT_VARIANTS = ("plain", "digests")
UNEXPLAINED = "not expected"
NOTE = (f"Notes: with both, the disks of {', '.join(sorted(OF_REMOVABLE_MEDIA))} have a removable medium (Mariner: "
        f"removable = true; tgt: removable=1); with Mariner, the disks of {', '.join(sorted(OF_THE_PAST))} are views.")


class Comparison:
    """All tests of one variant against both."""

    def __init__(self, variant: Variant, names: list[str], folder: pathlib.Path):
        self.variant = variant
        self.names = names
        began = time.monotonic()
        self.outcomes = {OURS: self._run(MarinerDisks(folder / OURS, variant)),
                         RIVAL: self._run(TgtDisks(folder / RIVAL, variant))}
        self.measured_s = time.monotonic() - began

    def _run(self, disks) -> list[Outcome]:
        with disks, Runner(disks, self.names) as runner:
            return [runner.outcome(name) for name in self.names]

    def count(self, server: str, verdict: str, family: str = "") -> int:
        return sum(outcome.verdict == verdict and family in ("", family_of(outcome.name))
                   for outcome in self.outcomes[server])

    def unexplained(self) -> list[Outcome]:
        """Ours that the end-to-end tests would not accept."""
        return [outcome for outcome in self.outcomes[OURS] if expected(self.variant.name, outcome) is None]

    def row(self, whole: bool) -> Row:
        lacks = [] if whole else ["a part of the suite"]
        if self.unexplained():
            lacks.append("not expected: " + ", ".join(outcome.name for outcome in self.unexplained()))
        return Row(f"conformance_{self.variant.name}", f"libiscsi's tests passed, {self.variant.name}", "tests",
                   self.count(OURS, PASSED), self.count(RIVAL, PASSED), RIVAL, self.measured_s,
                   f"{len(self.names)} tests", goal=1, lacks="; ".join(lacks))

    def table(self) -> str:
        families = collections.Counter(family_of(name) for name in self.names)
        lines = header(f"{self.variant.name}", "tests",
                       *(f"{server}: {verdict}" for server in (OURS, RIVAL) for verdict in VERDICTS))
        for family, tests in (*families.items(), ("", len(self.names))):
            counts = [self.count(server, verdict, family) for server in (OURS, RIVAL) for verdict in VERDICTS]
            lines.append(line(family or "**all**", str(tests), *(str(count) if count else "" for count in counts)))
        return "\n".join(lines)

    def reasons(self) -> str:
        """Why, for each test of ours that did not pass; of tgt's the failures, in libiscsi's words."""
        lines = [f"Mariner, {self.variant.name}:"]
        for outcome in self.outcomes[OURS]:
            if outcome.verdict != PASSED:
                why = expected(self.variant.name, outcome) or UNEXPLAINED
                lines.append(f"- {outcome.name} {outcome.verdict}: {why} ({' '.join(outcome.why.split())})")
        lines.append(f"\ntgt, {self.variant.name}:")
        lines += [f"- {outcome.name} failed: {' '.join(outcome.why.split())}" for outcome in self.outcomes[RIVAL]
                  if outcome.verdict == FAILED]
        return "\n".join(lines)

    def record(self) -> dict:
        return {"variant": self.variant.name, "measured_s": self.measured_s,
                "outcomes": {server: {o.name: [o.verdict, o.why] for o in outcomes}
                             for server, outcomes in self.outcomes.items()}}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--short", action="store_true", help="a part, in under a minute; shows that it works")
    parser.add_argument("--variant", action="append", choices=list(VARIANTS), help="only this one")
    parser.add_argument("--family", action="append", help="only this one, such as ProutReserve")
    parser.add_argument("--folder", type=pathlib.Path, default=OUT,
                        help="for the disks and the log (default: %(default)s)")
    options = parser.parse_args()
    end_cleanly()
    OUT.mkdir(parents=True, exist_ok=True)
    families = set(options.family or (SHORT_FAMILIES if options.short else ()))
    everything = listed_tests()
    names = [name for name in everything if not families or family_of(name) in families]
    if not names:
        say("there is no such family; iscsi-test-cu --list shows them")
        return 2
    about = machine(options.folder.resolve())
    comparisons = []
    with tempfile.TemporaryDirectory(prefix="conformance-", dir=options.folder) as folder:
        for name in options.variant or (SHORT_VARIANTS if options.short else VARIANTS):
            say(f"{name}: {len(names)} tests against Mariner and tgt")
            comparisons.append(Comparison(VARIANTS[name], names, pathlib.Path(folder) / name))
    records = [comparison.row(names == everything).record(about) for comparison in comparisons]
    write_json(OUT / "conformance.json", records)
    write_json(OUT / "conformance-runs.json", [comparison.record() for comparison in comparisons])
    print(describe(about) + "\n")
    print("\n\n".join(comparison.table() for comparison in comparisons) + "\n")
    print(NOTE + "\n")
    print("\n\n".join(comparison.reasons() for comparison in comparisons))
    return 1 if any(comparison.unexplained() for comparison in comparisons) else 0


if __name__ == "__main__":
    sys.exit(main())
