"""Reads a JUnit file of ctest or pytest: prints "PASSED FAILED SKIPPED" and tells of each failure on standard error."""

import sys
import xml.etree.ElementTree as xml

SHOWN_LINES = 120


def has(case: xml.Element, *names: str) -> bool:
    return any(case.find(name) is not None for name in names) or case.get("status") in names


def story(case: xml.Element) -> str:
    texts = [part.text or part.get("message") or "" for tag in ("failure", "error", "system-out", "system-err")
             for part in case.findall(tag)]
    return "\n".join("\n".join(text.splitlines()[-SHOWN_LINES:]) for text in texts)


def main() -> None:
    try:
        cases = list(xml.parse(sys.argv[1]).iter("testcase"))
    except (OSError, xml.ParseError) as error:
        sys.exit(f"{sys.argv[1]}: no results to read: {error}")
    failures = [case for case in cases if has(case, "failure", "error", "fail")]
    skipped = sum(has(case, "skipped", "notrun", "disabled") for case in cases if case not in failures)
    for case in failures:
        print(f"--- failed: {case.get('classname')} {case.get('name')}\n{story(case)}\n---", file=sys.stderr)
    print(len(cases) - len(failures) - skipped, len(failures), skipped)


if __name__ == "__main__":
    main()
