"""CHAP as Linux does it: iscsid proves itself and has the target prove itself; who does not know the secret stays outside."""

import pytest

import lab as linux_lab

pytestmark = pytest.mark.slow


def record(iqn: str, portal: str, keys: dict[str, str]) -> str:
    """Makes a new record with these keys and no others."""
    settings = " ".join(f"node.session.auth.{name} '{value}'" for name, value in keys.items())
    return f"iscsiadm -m node -T {iqn} -o delete > /dev/null 2>&1; node {iqn} {portal} {settings}"


ONE_WAY = {"authmethod": "CHAP", "username": linux_lab.USER, "password": linux_lab.SECRET}
MUTUAL = ONE_WAY | {"username_in": linux_lab.TARGET_USER, "password_in": linux_lab.TARGET_SECRET}
REFUSED = {
    "nobody": {"authmethod": "None"},
    "a wrong secret": MUTUAL | {"password": "what.nobody.knows"},
    "a wrong name": MUTUAL | {"username": "host2"},
    "a target that proves something else": MUTUAL | {"password_in": "what.another.knows"},
}


def test_the_secret_opens_the_door_and_nothing_else_does(lab):
    iqn = lab.daemon.ask("volume", "show", "secret")["iqn"]
    portal = lab.daemon.portal()
    for who, keys in REFUSED.items():
        out = lab.guest.run(f"{record(iqn, portal, keys)}; "
                            f"iscsiadm -m node -T {iqn} -p {portal} -l 2>&1 && echo in", timeout_s=60, check=False)
        assert not out.endswith("in"), who
        assert "login failed" in out.lower() or "login failure" in out.lower(), f"{who}: {out}"
        assert lab.guest.run("ls /sys/class/iscsi_session") == "", who
    for keys in (ONE_WAY, MUTUAL):
        lab.guest.run(f"{record(iqn, portal, keys)} && round_trip {iqn} {portal}", timeout_s=60)
    log = lab.daemon.tail(100)
    assert f'CHAP_R: wrong for the user \\"{linux_lab.USER}\\"' in log
    assert 'CHAP_N: there is no user \\"host2\\" here' in log
