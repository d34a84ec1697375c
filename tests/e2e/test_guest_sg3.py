"""What sg3-utils say of a LUN, against expected/*.txt. --write-expected writes these files anew: read the difference before committing it."""

import difflib
import pathlib
import re

import pytest

import guest as linux

pytestmark = pytest.mark.slow

EXPECTED = pathlib.Path(__file__).resolve().parent / "expected"

# What is another on every run.
VOLATILE = [
    (r"\b[0-9a-f]{32}\b", "<serial>"),
    (r"\b(0x)?3[0-9a-f]{15}\b", "<NAA>"),
    (r"0x00023d[0-9a-f]{6}", "<ISID>"),
    (r"time to transfer data.*", "time to transfer data: <some>"),
    (r"/dev/sg\d+", "<sg>"),
]

ONE = ("a",)
TWO_HOSTS = ("a", "b")   # one LUN, two initiators
TWO_LUNS = ("a", "c")

# Name: which disks, and what is run with them. A line that begins with "- " is not shown: it prepares, and must succeed.
CASES = {
    "inquiry": (ONE, """
        sg_inq $a
        sg_inq --export $a
        sg_luns $a
        sg_turs $a
        sg_requests $a
        sg_readcap $a
        sg_readcap --16 $a
        """),
    "vpd": (ONE, """
        sg_vpd --page=0 $a
        all_vpd_pages $a
        sg_raw --request=252 $a 12 01 c0 00 fc 00
        sg_raw --request=252 $a 12 00 80 00 fc 00
        """),
    "modes": (ONE, """
        sg_modes --all $a
        sg_modes --all --control=1 $a
        sg_modes --all --control=2 $a
        sg_raw --request=252 $a 5a 00 ff 00 00 00 00 00 fc 00
        sg_modes --six --page=0x3f $a
        sg_modes --page=0x3f,0xff $a
        sg_raw --request=252 $a 5a 00 2e 00 00 00 00 00 fc 00
        sg_raw --request=252 $a 5a 10 3f 00 00 00 00 00 fc 00
        """),
    "logs": (ONE, """
        sg_logs --list $a
        sg_logs --list --list $a
        sg_logs --page=0x3e $a
        """),
    "opcodes": (ONE, """
        sg_opcodes $a
        sg_opcodes --opcode=0x89 $a
        sg_opcodes --opcode=0x9e --sa=0x10 $a
        sg_opcodes --opcode=0x5f --sa=0 $a
        sg_opcodes --opcode=0x04 $a
        sg_opcodes --tmf $a
        """),
    "plain_commands": (ONE, """
        sg_start --start $a
        sg_sync $a
        sg_verify --lba=0 --count=8 $a
        sg_verify --lba=524288 --count=1 $a
        sg_prevent --prevent=1 $a
        sg_prevent --allow $a
        sg_rbuf --quick --size=4096 $a
        sg_rtpg $a
        sg_ident $a
        sg_timestamp $a
        sg_rep_zones $a
        sg_senddiag --test $a
        sg_read_long --16 --lba=0 $a
        sg_format --wait $a
        sg_raw --cmdset=1 --request=512 $a ff 00 00 00 00 00
        sg_raw --request=512 $a 28 00 00 08 00 00 00 00 01 00
        """),
    "format": (ONE, """
        - dd if=/dev/urandom of=$a bs=4096 count=32 oflag=direct conv=fsync
        sg_format --format --quick --wait $a
        - dd if=$a bs=4096 count=32 iflag=direct of=/tmp/read && cmp -n 131072 /tmp/read /dev/zero
        - dd if=/dev/urandom of=$a bs=4096 count=32 oflag=direct conv=fsync
        sg_format --format --quick --early --long --ip-def $a
        - until sg_turs $a; do sleep 0.1; done
        - dd if=$a bs=4096 count=32 iflag=direct of=/tmp/read && cmp -n 131072 /tmp/read /dev/zero
        sg_format --format --quick --wait --security $a
        sg_format --format --quick --wait --fmtpinfo=2 $a
        """),
    "lba_status": (ONE, """
        sg_get_lba_status --maxlen=1024 $a
        - dd if=/dev/urandom of=$a bs=4096 seek=16 count=32 oflag=direct conv=fsync
        sg_get_lba_status --maxlen=1024 $a
        sg_get_lba_status --maxlen=1024 --lba=200 $a
        sg_get_lba_status --maxlen=1024 --lba=300 --brief $a
        sg_unmap --force --lba=192 --num=64 $a
        sg_get_lba_status --maxlen=1024 $a
        sg_write_same --unmap --lba=256 --num=64 --16 $a
        sg_get_lba_status --maxlen=1024 $a
        sg_write_same --in=/dev/zero --lba=320 --num=8 --16 $a
        sg_get_lba_status --maxlen=1024 $a
        - dd if=$a bs=4096 skip=24 count=16 iflag=direct of=/tmp/read && cmp -n 65536 /tmp/read /dev/zero
        sg_get_lba_status --maxlen=1024 --lba=524288 $a
        sg_unmap --force --lba=524287 --num=2 $a
        sg_unmap --force --lba=0 --num=524288 $a
        sg_get_lba_status --maxlen=1024 $a
        """),
    "compare_and_write": (ONE, """
        - dd if=/dev/zero of=/tmp/zeros bs=512 count=1; dd if=/dev/zero bs=512 count=1 | tr '\\0' 'A' > /tmp/as
        - cat /tmp/zeros /tmp/as > /tmp/zeros_as; cat /tmp/as /tmp/zeros > /tmp/as_zeros
        sg_compare_and_write --in=/tmp/zeros_as --lba=7 --num=1 --xferlen=1024 $a
        sg_compare_and_write --in=/tmp/zeros_as --lba=7 --num=1 --xferlen=1024 $a
        sg_compare_and_write --in=/tmp/as_zeros --lba=7 --num=1 --xferlen=1024 $a
        sg_compare_and_write --in=/tmp/as --inw=/tmp/zeros --lba=524288 --num=1 --xferlen=1024 $a
        - dd if=/dev/zero of=/tmp/many bs=512 count=258
        sg_compare_and_write --in=/tmp/many --lba=0 --num=129 --xferlen=132096 $a
        """),
    "reservations": (TWO_HOSTS, """
        sg_persist --in --report-capabilities $a
        sg_persist --out --register --param-sark=0xa1 $a
        sg_persist --out --register --param-sark=0xb2 $b
        sg_persist --in --read-keys $a
        sg_persist --out --reserve --param-rk=0xa1 --prout-type=5 $a
        sg_persist --in --read-reservation $b
        sg_persist --out --reserve --param-rk=0xb2 --prout-type=1 $b
        sg_persist --out --release --param-rk=0xa1 --prout-type=1 $a
        sg_persist --in --read-full-status $b
        dd if=/dev/zero of=$b bs=4096 count=1 oflag=direct conv=fsync 2>/dev/null
        sg_persist --out --preempt --param-rk=0xb2 --param-sark=0xa1 --prout-type=1 $b
        sg_turs $a
        sg_turs $a
        sg_persist --in --read-keys $b
        sg_persist --in --read-reservation $a
        sg_raw --send=512 --infile=/dev/zero $a 2a 00 00 00 00 00 00 00 01 00
        sg_raw --request=512 --outfile=/dev/null $a 28 00 00 00 00 00 00 00 01 00
        sg_persist --out --register --param-rk=0xa1 --param-sark=0xa2 $a
        sg_persist --out --register-ignore --param-sark=0xa2 $a
        sg_persist --out --preempt-abort --param-rk=0xa2 --param-sark=0xb2 --prout-type=3 $a
        sg_persist --in --read-full-status $a
        sg_turs $b
        sg_raw --request=512 --outfile=/dev/null $b 28 00 00 00 00 00 00 00 01 00
        sg_persist --out --clear --param-rk=0xa2 $a
        sg_persist --in --read-keys $a
        sg_raw --request=512 --outfile=/dev/null $b 28 00 00 00 00 00 00 00 01 00
        sg_persist --out --register --param-sark=0xa1 --param-aptpl $a
        sg_persist --in --report-capabilities $a
        sg_persist --out --clear --param-rk=0xa1 $a
        """),
    "xcopy": (TWO_LUNS, """
        - dd if=/dev/urandom of=$a bs=4096 count=64 oflag=direct conv=fsync
        sg_copy_results --params $a
        sg_xcopy if=$a iflag=xcopy of=$c bs=512 count=512
        - dd if=$c of=/tmp/copy bs=4096 count=64 iflag=direct && dd if=$a of=/tmp/original bs=4096 count=64 iflag=direct && cmp /tmp/copy /tmp/original
        sg_xcopy if=$a of=$a bs=512 skip=0 seek=4096 count=256
        - dd if=$a of=/tmp/copy bs=4096 skip=512 count=32 iflag=direct && cmp -n 131072 /tmp/copy /tmp/original
        sg_xcopy if=$a of=$c bs=512 skip=524000 count=1000
        """),
    "reset": (TWO_HOSTS, """
        - sg_persist --out --register --param-sark=0xa1 $a && sg_raw $b 16 00 00 00 00 00; true
        sg_persist --out --clear --param-rk=0xa1 $a
        sg_raw $b 16 00 00 00 00 00
        sg_raw --request=512 --outfile=/dev/null $a 28 00 00 00 00 00 00 00 01 00
        sg_reset --device --no-escalate $a
        sg_raw --request=512 --outfile=/dev/null $a 28 00 00 00 00 00 00 00 01 00
        sg_raw --request=512 --outfile=/dev/null $a 28 00 00 00 00 00 00 00 01 00
        sg_turs $b
        sg_turs $b
        sg_reset --target --no-escalate $a
        sg_turs $b
        """),
}


def plain(text: str, disks: dict[str, str]) -> str:
    for name, disk in disks.items():
        text = text.replace(disk, f"${name}")
    for pattern, instead in VOLATILE:
        text = re.sub(pattern, instead, text)
    return "\n".join(line.rstrip() for line in text.splitlines())


def transcript(guest: linux.Guest, script: str, disks: dict[str, str]) -> str:
    """Each command, what it printed, and its exit code if it is not 0."""
    guest.run("; ".join(f"{name}={disk}" for name, disk in disks.items()))
    pieces = []
    for line in filter(None, map(str.strip, script.splitlines())):
        if line.startswith("- "):
            guest.run(f"{{ {line[2:]}; }} 2>/dev/null")
            continue
        out = guest.run(f"{line}; code=$?; [ $code = 0 ] || echo \"exit $code\"", timeout_s=60)
        pieces.append(f"$ {line}\n{plain(out, disks)}".rstrip() + "\n")
    return "\n".join(pieces)


@pytest.mark.parametrize("name", CASES)
def test_sg3_utils_say(lab, name, request):
    wanted, script = CASES[name]
    _, iqn = lab.volume()
    disks = {"a": lab.guest.run(f"login_as alice {iqn} {lab.daemon.portal()}")}
    if "b" in wanted:
        disks["b"] = lab.guest.run(f"login_as bob {iqn} {lab.daemon.portal()}")
    if "c" in wanted:
        disks["c"] = lab.guest.run(f"login_as alice {lab.volume()[1]} {lab.daemon.portal()}")
    said = transcript(lab.guest, script, disks)
    file = EXPECTED / f"sg_{name}.txt"
    if request.config.getoption("--write-expected"):
        EXPECTED.mkdir(exist_ok=True)
        file.write_text(said)
        return
    expected = file.read_text()
    difference = "".join(difflib.unified_diff(expected.splitlines(True), said.splitlines(True),
                                              f"expected/{file.name}", "said"))
    assert said == expected, f"{difference}\nIf this is right: pytest --write-expected, and read the difference."
