#!/usr/bin/env python3
"""The checker of the documents checked: wrong names of each kind, beside right ones, in a copy of what it reads."""

import pathlib
import shutil
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import docs  # noqa: E402  (the path comes first)

ROOT = pathlib.Path(__file__).resolve().parents[2]
READ = ("deploy/man", "server/client", "server/node", "server/web", "server/scsi")


class Docs(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls._folder = tempfile.TemporaryDirectory()
        cls.root = pathlib.Path(cls._folder.name)
        for folder in READ:
            shutil.copytree(ROOT / folder, cls.root / folder)
        (cls.root / "docs").mkdir()

    @classmethod
    def tearDownClass(cls):
        cls._folder.cleanup()

    def setUp(self):
        (self.root / "README.md").write_text("")
        self.alerts("")

    def alerts(self, text: str):
        (self.root / "deploy/prometheus-alerts.yml").write_text(text)

    def expect(self, text: str, *pieces: str):
        (self.root / "docs/page.md").write_text(text)
        faults = docs.faults_of(self.root)
        self.assertEqual(len(faults), len(pieces), faults)
        for fault, piece in zip(faults, pieces):
            self.assertIn(piece, fault)

    def test_commands_that_there_are(self):
        self.expect("`mariner view expose db1@-10m --writable --ttl 2h`, `mariner --json --socket PATH status`\n"
                    "```\nssh x mariner volume create db1 \\\n  --size 1G   # --no-option\n"
                    "v=$(mariner --json volume show db1) | other --option\n"
                    "mariner rollback group:db1@\"2026-11-20 14:32:05\" --yes; other --option\n"
                    "mariner target acl add db1 iqn.1991-05.com.microsoft:host1\n```\n")

    def test_a_wrong_verb(self):
        self.expect("one\n\n`mariner view expos db1`", "docs/page.md:3: there is no command mariner view expos")
        self.expect("```\nmariner target acl permit db1 any\n```", ":2: there is no command mariner target acl")

    def test_a_wrong_noun(self):
        self.expect("`mariner snapshot create db1`", "there is no command mariner snapshot create")

    def test_a_wrong_option(self):
        self.expect("```\nmariner volume create db1 \\\n  --seize 1G\n```", ":2: mariner volume has no option --seize")

    def test_an_option_of_another_noun(self):
        self.expect("`mariner mark add db1 x --writable`", "mariner mark has no option --writable")

    def test_keys(self):
        self.expect("`[log] max_size` `[server.portal_group]` `[auth.host1]`\n"
                    '```toml\nversion = 1\n[auth.host1]\nuser = "x"\n[[volume]]\nname = "x"\n'
                    "[[server.portal_group]]\ntag = 2\n```\n")

    def test_a_wrong_key(self):
        self.expect("`[log] max_sizes`", "no key max_sizes in [log]")
        self.expect("`[logs] max_size`", "no section [logs]")
        self.expect('```toml\n[[volume]]\nname = "x"\nsise = "1G"\n```', "no key sise in [volume]")
        self.expect('```toml\n[log\n```', "no TOML")

    def test_metrics(self):
        self.expect("`mariner_log_used_bytes` `rate(mariner_scsi_command_duration_seconds_bucket[5m])`")
        self.alerts('expr: mariner_scsi_commands_total{op="write", status!="good"} > 0\n')
        self.expect("")

    def test_a_wrong_metric(self):
        self.expect("`mariner_log_used_byte`", "no metric mariner_log_used_byte")
        self.expect("`mariner_log_used_bytes_bucket`", "no metric mariner_log_used_bytes_bucket")
        self.alerts('\nexpr: mariner_scsi_commands_totals{op="write"}\n')
        self.expect("", "prometheus-alerts.yml:2: there is no metric mariner_scsi_commands_totals")
        self.alerts('expr: mariner_scsi_commands_total{verb="write"}\n')
        self.expect("", "no metric has a label verb")

    def test_disks(self):
        self.expect('"MARINER" "MARINER VOLUME          " "MARINER VIEW            "')
        self.expect('"MARINER VOLUME"', "no disk is called")

    def test_links(self):
        self.expect("# A `b` c\n[x](#a-b-c) [y](page.md#a-b-c) [z](https://example.org/x)\n```\n[no](link.md)\n```\n")
        self.expect("[x](other.md)", "the link other.md leads nowhere")
        self.expect("# a\n[x](page.md#b)", "docs/page.md has no heading #b")
        (self.root / "README.md").write_text("[x](docs/other.md)")
        self.expect("", "README.md:1: the link docs/other.md leads nowhere")


if __name__ == "__main__":
    unittest.main()
