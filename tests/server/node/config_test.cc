#include "server/node/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <cstdio>

#include "tests/support/source_folder.h"

namespace mariner {
namespace {

using testing::HasSubstr;

constexpr std::string_view kHead = "version = 1\nroles = ['standalone']\n";

ConfigReading read(std::string_view rest) {
  return parse_config(std::string(kHead) + std::string(rest), "m.toml");
}

// The problems, one a line.
std::string problems(const ConfigReading& reading) {
  std::string text;
  for (const auto& problem : reading.problems) text += to_string(problem) + "\n";
  return text;
}

TEST(Config, TheLeastIsVersionAndRoles) {
  const auto reading = read("");
  ASSERT_TRUE(reading.config) << problems(reading);
  EXPECT_TRUE(reading.problems.empty());
  const auto& config = *reading.config;
  EXPECT_TRUE(config.standalone());
  EXPECT_EQ(config.server.iqn_base, "iqn.2026-11.org.mariner");
  EXPECT_EQ(config.server.portals,
            (std::vector<Endpoint>{{"0.0.0.0", 3260, false}, {"::", 3260, true}}));
  EXPECT_EQ(config.server.admin_socket, "/run/mariner/admin.sock");
  EXPECT_EQ(config.server.http, (Endpoint{"127.0.0.1", 9860, false}));
  EXPECT_EQ(config.server.state_dir, "/var/lib/mariner");
  EXPECT_EQ(config.log.disks, std::vector<std::string>{"/var/lib/mariner/log0"});
  EXPECT_EQ(config.log.on_full, OnFull::kShortenWindow);
  EXPECT_EQ(config.log.t_wait, std::chrono::microseconds(200));
  EXPECT_EQ(config.log.durability, LogDurability::kAuto);
  EXPECT_TRUE(config.log.polling);
  EXPECT_EQ(config.log.scrub_rate, std::nullopt);
  EXPECT_EQ(config.storage.pending_memory, ByteSize{256u << 20});
  EXPECT_EQ(config.views.overlay_max, std::nullopt);
  EXPECT_EQ(config.rollback.rate_max, ByteSize{0}) << "as fast as it goes";
  EXPECT_EQ(config.storage.lag_max, ByteSize{4ull << 30});
  EXPECT_EQ(config.index.file, "");
  EXPECT_EQ(config.index.memory, ByteSize{256u << 20});
  EXPECT_EQ(config.index.replay_max, 8'000'000);
  EXPECT_TRUE(config.volumes.empty());
}

TEST(Config, EveryKey) {
  const auto reading = read(R"(
[server]
iqn_base = "iqn.2020-01.com.example"
portals = ["127.0.0.1:13260"]
admin = "/tmp/a.sock"
http = "[::1]:9000"
state_dir = "/srv/mariner"
discovery_auth = ["host1", "host2"]
[log]
disks = ["/dev/vdb"]
max_size = "500G"
track_size = "128M"
on_full = "stop-writes"
t_wait = "1ms"
durability = "flush"
polling = "off"
scrub_rate = "4M"
compact = "on"
compact_after = "10m"
compact_cpu = "12.5%"
[storage]
pending_memory = "1G"
lag_max = "8G"
[views]
overlay_max = "10G"
[rollback]
rate_max = "200M"
[index]
file = "/srv/fast/index"
memory = "1G"
replay_max = 100
[auth.host1]
user = "host1"
secret_file = "/etc/mariner/host1.chap"
mutual_user = "mariner"
mutual_secret_file = "/etc/mariner/mutual.chap"
[auth.host2]
secret_file = "/etc/mariner/host2.chap"
[[volume]]
name = "db1"
size = "100G"
window = "7d"
block_size = 4096
acl = ["iqn.1991-05.com.microsoft:host1"]
auth = "host1"
[[volume]]
name = "db2"
size = "1GiB"
)");
  ASSERT_TRUE(reading.config) << problems(reading);
  const auto& config = *reading.config;
  EXPECT_EQ(config.rollback.rate_max, ByteSize{200u << 20});
  EXPECT_EQ(config.server.iqn_base, "iqn.2020-01.com.example");
  EXPECT_EQ(config.server.portals, (std::vector<Endpoint>{{"127.0.0.1", 13260, false}}));
  EXPECT_EQ(config.server.http, (Endpoint{"::1", 9000, true}));
  EXPECT_EQ(config.log.disks, std::vector<std::string>{"/dev/vdb"});
  EXPECT_EQ(config.log.max_size, ByteSize{500ull << 30});
  EXPECT_EQ(config.log.track_size, ByteSize{128ull << 20});
  EXPECT_EQ(config.log.on_full, OnFull::kStopWrites);
  EXPECT_EQ(config.log.t_wait, std::chrono::milliseconds(1));
  EXPECT_EQ(config.log.durability, LogDurability::kFlush);
  EXPECT_FALSE(config.log.polling);
  EXPECT_EQ(config.log.scrub_rate, ByteSize{4u << 20});
  EXPECT_TRUE(config.log.compact.enabled);
  EXPECT_EQ(config.log.compact.after, std::chrono::minutes(10));
  EXPECT_EQ(config.log.compact.cpu_share, 0.125);
  EXPECT_EQ(config.storage.lag_max, ByteSize{8ull << 30});
  EXPECT_EQ(config.views.overlay_max, ByteSize{10ull << 30});
  EXPECT_EQ(config.index.file, "/srv/fast/index");
  EXPECT_EQ(config.index.memory, ByteSize{1u << 30});
  EXPECT_EQ(config.index.replay_max, 100);
  EXPECT_EQ(config.server.discovery_auth, (std::vector<std::string>{"host1", "host2"}));
  ASSERT_EQ(config.auth.size(), 2u);
  EXPECT_EQ(config.auth[0], (AuthConfig{"host1", "host1", "/etc/mariner/host1.chap", "mariner",
                                        "/etc/mariner/mutual.chap"}));
  EXPECT_EQ(config.auth[1], (AuthConfig{"host2", "host2", "/etc/mariner/host2.chap", "", ""}));
  ASSERT_EQ(config.volumes.size(), 2u);
  EXPECT_EQ(config.volumes[0].auth, std::vector<std::string>{"host1"});
  EXPECT_TRUE(config.volumes[1].auth.empty());
  EXPECT_EQ(config.volumes[0].name, "db1");
  EXPECT_EQ(config.volumes[0].size, ByteSize{100ull << 30});
  EXPECT_EQ(config.volumes[0].window, std::chrono::hours(7 * 24));
  EXPECT_EQ(config.volumes[0].block_size, 4096u);
  EXPECT_EQ(config.volumes[0].acl, std::vector<std::string>{"iqn.1991-05.com.microsoft:host1"});
  EXPECT_EQ(config.volumes[1].window, std::chrono::hours(72));
  EXPECT_EQ(config.volumes[1].block_size, 512u);
}

TEST(Config, TheExampleIsValidAndItsCommentsAreTheDefaults) {
  const auto reading = load_config(test::source_path("deploy/marinerd.toml"));
  ASSERT_TRUE(reading.config) << problems(reading);
  EXPECT_TRUE(reading.problems.empty()) << problems(reading);
  // Without the comment signs before keys and tables, it says the same.
  std::FILE* file = std::fopen(test::source_path("deploy/marinerd.toml").c_str(), "r");
  ASSERT_NE(file, nullptr);
  std::string text;
  for (int c = std::fgetc(file); c != EOF; c = std::fgetc(file)) text += static_cast<char>(c);
  std::fclose(file);
  std::string open;
  for (std::size_t at = 0; at < text.size();) {
    const auto end = text.find('\n', at);
    auto line = text.substr(at, end - at);
    if (line.starts_with("# ") &&
        (line.find(" = ") != std::string::npos || line.starts_with("# [")))
      line.erase(0, 2);
    open += line + "\n";
    at = end + 1;
  }
  const auto opened = parse_config(open, "opened");
  ASSERT_TRUE(opened.config) << problems(opened);
  const auto& a = *reading.config;
  const auto& b = *opened.config;
  EXPECT_EQ(a.server.iqn_base, b.server.iqn_base);
  EXPECT_EQ(a.server.portals, b.server.portals);
  EXPECT_EQ(a.server.admin_socket, b.server.admin_socket);
  EXPECT_EQ(a.server.http, b.server.http);
  EXPECT_EQ(a.server.state_dir, b.server.state_dir);
  EXPECT_EQ(a.log.disks, b.log.disks);
  EXPECT_EQ(a.log.max_size, b.log.max_size);
  EXPECT_EQ(a.log.track_size, b.log.track_size);
  EXPECT_EQ(a.log.on_full, b.log.on_full);
  EXPECT_EQ(a.log.t_wait, b.log.t_wait);
  EXPECT_EQ(a.log.durability, b.log.durability);
  EXPECT_EQ(a.log.scrub_rate, b.log.scrub_rate);
  EXPECT_EQ(a.storage.pending_memory, b.storage.pending_memory);
  EXPECT_EQ(a.storage.lag_max, b.storage.lag_max);
  EXPECT_EQ(b.views.overlay_max, ByteSize{a.log.max_size.bytes / 4});  // which it is unsaid, too
  EXPECT_EQ(b.index.file, a.server.state_dir + "/index");  // which is where it is if it is not said
  EXPECT_EQ(a.index.memory, b.index.memory);
  EXPECT_EQ(a.index.replay_max, b.index.replay_max);
  EXPECT_EQ(b.volumes.size(), 1u);
}

struct WrongCase {
  const char* text;
  const char* problem;
};

TEST(Config, EachRuleHasItsMessage) {
  const WrongCase cases[] = {
      {"[server]\nportal = ['0.0.0.0:3260']",
       "m.toml:4: server.portal: unknown key; the nearest that exists is \"server.portals\""},
      {"[logs]", "m.toml:3: logs: unknown key; the nearest that exists is \"log\""},
      {"[log]\nmaxsize = '1G'",
       "m.toml:4: log.maxsize: unknown key; the nearest that exists is \"log.max_size\""},
      {"[[volume]]\nname='a'\nsize='1G'\nblocksize=512",
       "m.toml:6: volume.blocksize: unknown key; the nearest that exists is \"volume.block_size\""},
      {"[auth.h]\nsecretfile='/x'",
       "m.toml:4: auth.h.secretfile: unknown key; the nearest that exists is "
       "\"auth.h.secret_file\""},
      {"[server]\niqn_base = 'mariner'",
       "server.iqn_base: \"mariner\" is not a base for target names"},
      {"[server]\nportals = []", "server.portals: empty"},
      {"[server]\nportals = ['localhost:3260']",
       "server.portals: \"localhost:3260\" is not an address"},
      {"[server]\nportals = ['0.0.0.0:1', '0.0.0.0:1']", "stands there twice"},
      {"[server]\nportals = '0.0.0.0:3260'", "expected a list of strings, found a string"},
      {"[server]\nadmin = 'admin.sock'", "server.admin: \"admin.sock\" is not an absolute path"},
      {"[server]\nadmin = "
       "'/"
       "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
       "aaaaaaaaaaaaaaaaaaaa'",
       "at most 107 characters"},
      {"[server]\nhttp = '9860'", "server.http: \"9860\" is not an address"},
      {"[log]\ndisks = []", "log.disks: empty"},
      {"[log]\ndisks = ['/a', '/b', '/a']", "log.disks: /a stands there twice"},
      {"[log]\ndisks = ['/a']\nlost = ['/a']", "log.lost: /a is among the disks too"},
      {"[log]\ndisks = ['/a', '/b']\nmax_size = '256M'\ntrack_size = '64M'",
       "log.max_size: each disk must hold at least 4 tracks of log.track_size"},
      {"[log]\ndisks = ['a']", "log.disks: \"a\" is not an absolute path"},
      {"[log]\nmax_size = '1G '", "log.max_size: \"1G \" is not a size"},
      {"[log]\nmax_size = 500", "log.max_size: expected a string in quotes, found a whole number"},
      {"[log]\nmax_size = '16M'", "log.max_size: expected 32 MiB to 1024 PiB, found 16 MiB"},
      {"[log]\nmax_size = '64M'", "at least 4 tracks of log.track_size (64 MiB)"},
      {"[log]\ntrack_size = '1M'", "log.track_size: expected 8 MiB to 1 GiB, found 1 MiB"},
      {"[log]\ntrack_size = '9000001'", "log.track_size: expected a multiple of 4096"},
      {"[log]\non_full = 'panic'",
       "log.on_full: expected \"shorten-window\", \"stop-writes\" or \"throttle\", found "
       "\"panic\""},
      {"[log]\non_full = 'throttle'\nmax_size = '64M'\ntrack_size = '8M'",
       "log.on_full: \"throttle\" needs a log of at least 16 tracks: expected log.max_size of 128 "
       "MiB "
       "or more, or a smaller log.track_size"},
      {"[log]\npolling = 'on'", "log.polling: expected \"auto\" or \"off\", found \"on\""},
      {"[log]\ndurability = 'fsync'",
       "log.durability: expected \"auto\", \"fua\" or \"flush\", found \"fsync\""},
      {"[log]\nt_wait = '200'", "log.t_wait: \"200\" is not a duration: it has no unit"},
      {"[log]\nt_wait = '1s'", "log.t_wait: expected at most 100ms, found 1s"},
      {"[log]\nscrub_rate = 'slow'",
       "log.scrub_rate: expected \"auto\" or bytes per second, such as \"4M\""},
      {"[log]\ncompact = 'yes'", "log.compact: expected \"on\" or \"off\", found \"yes\""},
      {"[log]\ncompact_after = 'soon'", "log.compact_after: \"soon\" is not a duration"},
      {"[log]\ncompact_cpu = '0%'",
       "log.compact_cpu: expected a share from 1% to 100%, such as \"2.5%\"; found \"0%\""},
      {"[log]\nscrub_rate = '2T'", "log.scrub_rate: expected at most 1 TiB, found 2 TiB"},
      {"[rollback]\nrate_max = '1K'", "rollback.rate_max: expected 8 MiB"},
      {"[storage]\npending_memory = '1K'", "storage.pending_memory: expected 16 MiB"},
      {"[views]\noverlay_max = '1K'", "views.overlay_max: expected 1 MiB to 1 PiB, found 1 KiB"},
      {"[index]\nfile = 'index'", "index.file: \"index\" is not an absolute path"},
      {"[index]\nmemory = '1M'", "index.memory: expected 64 MiB to 1 TiB, found 1 MiB"},
      {"[index]\nreplay_max = 99", "index.replay_max: expected at least 100 records, found 99"},
      {"[replication]\nmode = 'anycast'",
       "m.toml:4: replication.mode: expected \"multicast\" or \"unicast\", found \"anycast\""},
      {"[[volume]]\nsize='1G'", "volume.name: missing"},
      {"[[volume]]\nname='a'", "volume.size: missing"},
      {"[[volume]]\nname='A'\nsize='1G'", "volume.name: \"A\" is not a volume's name"},
      {"[[volume]]\nname='a'\nsize='1K'", "volume.size: expected 1 MiB to 1 PiB, found 1 KiB"},
      {"[[volume]]\nname='a'\nsize='1048577'", "volume.size: expected a multiple of 4096"},
      {"[[volume]]\nname='a'\nsize='1G'\nwindow='0s'", "volume.window: expected whole seconds"},
      {"[[volume]]\nname='a'\nsize='1G'\nwindow='1500ms'", "volume.window: expected whole seconds"},
      {"[[volume]]\nname='a'\nsize='1G'\nblock_size=1024",
       "m.toml:6: volume.block_size: expected 512 or 4096, found 1024"},
      {"[[volume]]\nname='a'\nsize='1G'\nacl=['host1']",
       "volume.acl: \"host1\" is not an initiator's name"},
      {"[[volume]]\nname='a'\nsize='1G'\nauth='h'", "volume.auth: there is no [auth.h]"},
      {"[[volume]]\nname='a'\nsize='1G'\nauth=7", "volume.auth: expected a list of strings"},
      {"[server]\ndiscovery_auth='h'", "server.discovery_auth: there is no [auth.h]"},
      {"[auth.h]\nuser='h'", "auth.h.secret_file: missing: CHAP needs a secret"},
      {"[auth.h]\nsecret_file='x'", "auth.h.secret_file: \"x\" is not an absolute path"},
      {"[auth.h]\nsecret_file='/x'\nmutual_user='m'",
       "auth.h.mutual_user: mutual_user and mutual_secret_file need each other"},
      {"[[volume]]\nname='a'\nsize='1G'\n[[volume]]\nname='a'\nsize='1G'",
       "m.toml:6: volume.name: there are two volumes \"a\""},
      {"[volume]\nname='a'",
       "volume: expected tables with double brackets: [[volume]], found a table"},
      {"server = 1", "server: expected a table: [server], found a whole number"},
      {"x = ", "m.toml:3: "},
  };
  for (const auto& c : cases) {
    const auto reading = read(c.text);
    EXPECT_FALSE(reading.config) << c.text;
    EXPECT_THAT(problems(reading), HasSubstr(c.problem)) << c.text;
  }
}

TEST(Config, Version) {
  EXPECT_EQ(problems(parse_config("", "f")),
            "f:1: version: missing; write version = 1 at the top\n");
  EXPECT_THAT(problems(parse_config("version = 2\nroles = ['standalone']", "f")),
              HasSubstr("f:1: version: expected 1, found 2"));
}

TEST(Config, AllProblemsAreCollectedInTheOrderOfLines) {
  const auto reading =
      read("[log]\nt_wait = 'x'\nmaxsize = '1'\n[server]\nhttp = 'y'\nportals = []\n");
  ASSERT_EQ(reading.problems.size(), 4u);
  EXPECT_EQ(reading.problems[0].key, "log.t_wait");
  EXPECT_EQ(reading.problems[1].key, "log.maxsize");
  EXPECT_EQ(reading.problems[2].key, "server.http");
  EXPECT_EQ(reading.problems[3].key, "server.portals");
}

TEST(Config, AScrubRateOfZeroTurnsItOff) {
  EXPECT_EQ(read("[log]\nscrub_rate = '0'\n").config->log.scrub_rate, ByteSize{0});
}

TEST(Config, AnUnusedAuthSectionIsNoProblem) {
  EXPECT_TRUE(read("[auth.host1]\nuser = 'host1'\nsecret_file = '/etc/x'\n").config);
}

TEST(Config, HttpIsTurnedOffByAnEmptyAddress) {
  const auto reading = read("[server]\nhttp = ''");
  ASSERT_TRUE(reading.config);
  EXPECT_FALSE(reading.config->server.http);
}

TEST(Config, HttpBeyondLoopbackIsAWarningOnly) {
  const auto reading = read("[server]\nhttp = '0.0.0.0:9860'");
  ASSERT_TRUE(reading.config);
  ASSERT_EQ(reading.problems.size(), 1u);
  EXPECT_THAT(to_string(reading.problems[0]), HasSubstr("m.toml:4: warning: server.http: metrics"));
}

TEST(Config, TheLogIsInTheStateDirectoryUnlessItIsNamed) {
  const auto reading = read("[server]\nstate_dir = '/srv/m'");
  ASSERT_TRUE(reading.config);
  EXPECT_EQ(reading.config->log.disks, std::vector<std::string>{"/srv/m/log0"});
}

TEST(Config, AFileThatCannotBeReadIsAProblem) {
  EXPECT_THAT(problems(load_config("/nonexistent/m.toml")),
              HasSubstr("/nonexistent/m.toml: cannot be opened: No such file or directory"));
  EXPECT_THAT(problems(load_config("/")), HasSubstr("/: cannot be read"));
  EXPECT_THAT(problems(load_config("/dev/zero")), HasSubstr("longer than 1 MiB"));
}

TEST(Config, NoTextBreaksTheParser) {
  EXPECT_TRUE(rc::check([](const std::string& text) {
    const auto reading = parse_config(text, "f");
    RC_ASSERT(reading.config.has_value() || !reading.problems.empty());
  }));
}

}  // namespace
}  // namespace mariner
