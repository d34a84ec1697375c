"""`mariner config apply`: another configuration for a daemon that runs."""

from mariner import Daemon


def edited(daemon, folder, *changes, more=""):
    """The daemon's configuration with other text, in a file beside it."""
    text = daemon.config_file.read_text()
    for before, after in changes:
        assert before in text, text
        text = text.replace(before, after)
    new = folder / "new.toml"
    new.write_text(text + more)
    return new


def by_key(answer):
    return {change["key"]: (change["from"], change["to"], change["takes_effect"]) for change in answer["changes"]}


def test_a_configuration_is_applied_to_a_daemon_that_runs(folder):
    log = {"disks": [str(folder / "log0")], "max_size": "512M", "track_size": "8M", "on_full": "shorten-window"}
    with Daemon(folder, log=log) as daemon:
        daemon.start()
        daemon.create("made", "8M")
        before = daemon.config_file.read_text()
        new = edited(daemon, folder, ('"shorten-window"', '"stop-writes"'), ('"512M"', '"768M"'),
                     more='[[volume]]\nname = "db1"\nsize = "16M"\n')
        said = daemon.ask("config", "apply", str(new), "--dry-run")
        assert said["dry_run"] and said["file"] == str(daemon.config_file)
        changes = by_key(said)
        assert changes["log.on_full"] == ('"shorten-window"', '"stop-writes"', "at once")
        assert changes["log.max_size"] == ('"512M"', '"768M"', "at the next start")
        assert changes["volume.db1.size"] == ("", '"16M"', "at once")
        assert daemon.config_file.read_text() == before
        assert [volume["name"] for volume in daemon.ask("volume", "list")["volumes"]] == ["made"]

        assert by_key(daemon.ask("config", "apply", str(new))) == changes
        assert daemon.config_file.read_text() == new.read_text()
        assert (folder / (daemon.config_file.name + ".old")).read_text() == before
        assert sorted(volume["name"] for volume in daemon.ask("volume", "list")["volumes"]) == ["db1", "made"]
        # Twice changes nothing; what waits for the next start waits.
        again = daemon.ask("config", "apply", str(new))
        assert list(by_key(again)) == ["log.max_size"] and again["former"] == ""

        # What is never taken keeps the rest from being taken, too.
        smaller = edited(daemon, folder, ('size = "16M"', 'size = "8M"'), ('"stop-writes"', '"shorten-window"'))
        refused = daemon.cli("config", "apply", str(smaller), check=False)
        assert refused.code == 1 and "never shrinks" in refused.out and "nothing was applied" in refused.err, refused
        assert '"stop-writes"' in daemon.config_file.read_text()

        # A restart takes the rest: then nothing differs.
        assert daemon.stop() == 0
        daemon.start(configure=False)
        assert daemon.ask("config", "apply", str(daemon.config_file), "--dry-run")["changes"] == []
