"""What libiscsi's tests leave out with Mariner's disks, and where libiscsi 1.19 itself is wrong: one by one, with the reason.

A test that is named here may pass all the same. A skip or a failure that is not named here is one too many.
"""

import dataclasses

from libiscsi_suite import FAILED, PASSED, SKIPPED, Outcome

WSNZ = "zero blocks are refused, as the block limits page says (SBC-3 6.6.4, WSNZ)"
NOT_ENCRYPTED = "nothing is encrypted, so there is no key to forget"
ONE_TO_ONE = "a logical block is a physical one, so nothing is unaligned"

SKIPS = {
    "Sanitize.CryptoErase": NOT_ENCRYPTED,
    "Sanitize.Readonly": f"of CRYPTOGRAPHIC ERASE: {NOT_ENCRYPTED}",
    "Sanitize.Reservations": f"of CRYPTOGRAPHIC ERASE: {NOT_ENCRYPTED}",
    "WriteAtomic16.VPD": "atomic writes need no alignment: every write is atomic",
    "WriteSame10.ZeroBlocks": WSNZ,
    "WriteSame16.ZeroBlocks": WSNZ,
}
SKIPS_OF = {
    "4kn": {
        "CompareAndWrite.InvalidDataOutSize": ONE_TO_ONE,
        "WriteSame10.UnmapUnaligned": ONE_TO_ONE,
        "WriteSame10.InvalidDataOutSize": ONE_TO_ONE,
        "WriteSame16.UnmapUnaligned": ONE_TO_ONE,
        "WriteSame16.InvalidDataOutSize": ONE_TO_ONE,
    },
}


@dataclasses.dataclass(frozen=True)
class Fault:
    """libiscsi's: the assertion that fails, and what else the report says then."""
    why: str
    assertion: str
    says: str = ""


# They write 512 bytes to a block whose length they did not ask for: one block is 4,096 bytes, and the command is refused.
WRITES_512 = Fault("its WRITE(10) brings 512 bytes for one block of 4,096", "test_prout_reserve_access.c:77",
                   "ILLEGAL_REQUEST(5) ASCQ:(null)(0x0e03)")
FAULTS = {
    # test_a_lun_reset_is_answered stands in.
    "iSCSITMF.LUNResetSimpleAsync": Fault("it looks for the answer before it has sent the question",
                                          "test_async_lu_reset_simple.c:157", "reconnect_succeeded,1"),
    # UnitSanitizeTest.MeanwhileOnlyWhatTellsAboutItIsAnswered stands in.
    "Sanitize.Reset": Fault("it expects a sanitize operation to outlast the three seconds that it sleeps",
                            "test_sanitize_reset.c:97"),
    # RemovableUnit.StopsWithItsMediumIn stands in.
    "StartStopUnit.NoLoej": Fault("it expects a unit that it has stopped to be ready (against SBC-3 4.20 and 5.25)",
                                  "test_startstopunit_noloej.c:44", "NOT READY(0x02) / ASCQ (null)(0x0402)"),
}
FAULTS_OF = {
    # GetLbaStatusCommand.BeginsWithTheBlockThatWasAskedFor (disk_io_test) stands in; with 4,096-byte blocks it passes.
    variant: {"GetLBAStatus.UnmapSingle": Fault("where physical blocks are larger it asks for block i + 1 and wants "
                                                "the answer to begin with another one (against SBC-3 5.5.2)",
                                                "test_get_lba_status_unmap_single.c:135", "match request.")}
    for variant in ("plain", "chap", "digests")
} | {
    "4kn": {
        # test_copy stands in.
        "ExtendedCopy.Simple": Fault("it writes and reads 8 MiB with one command, whatever MAXIMUM TRANSFER LENGTH says "
                                     "(against SBC-3 6.6.4)", "test_extendedcopy_simple.c:55", "blocks:2048"),
        "ProutReserve.AccessEA": WRITES_512,
        "ProutReserve.AccessWE": WRITES_512,
        "ProutReserve.AccessEARO": WRITES_512,
        "ProutReserve.AccessWERO": WRITES_512,
        "ProutReserve.AccessEAAR": WRITES_512,
        "ProutReserve.AccessWEAR": WRITES_512,
    },
}


def expected(variant: str, outcome: Outcome) -> str | None:
    """Why this outcome is as it has to be ("" if it passed); None: it is not."""
    if outcome.verdict == PASSED:
        return ""
    if outcome.verdict == SKIPPED:
        return (SKIPS | SKIPS_OF.get(variant, {})).get(outcome.name)
    fault = (FAULTS | FAULTS_OF.get(variant, {})).get(outcome.name)
    if outcome.verdict == FAILED and fault and outcome.why.startswith(fault.assertion) and fault.says in outcome.report:
        return fault.why
    return None
