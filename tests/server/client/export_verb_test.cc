// mariner volume export: server/client/export_verb.cc.
#include <gmock/gmock.h>

#include "tests/server/client/daemon.h"
#include "tests/server/client/image_folder.h"

namespace mariner::client {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

// A volume of 16 blocks, of which 1 and 2 are stored, full of 4 and 5.
class ExportVerb : public DaemonTest {
 protected:
  ExportVerb() {
    fake().past.set_id("17");
    fake().past.set_volume("db1");
    fake().past.set_size_bytes(16 * kBlockBytes);
    *fake().past.mutable_from() = moment(3, kNow.ns);
  }
  admin::FakePast& fake() { return control.of_the_past; }
  void export_to(const std::string& file, std::vector<std::string> flags = {}) {
    fake().asked.clear();
    fake().stored_answers = {{{{{1}, {2}}}, {}}};
    std::vector<std::string> words{"volume", "export", "db1@-10m", file};
    words.insert(words.end(), flags.begin(), flags.end());
    run(words);
  }
  static std::string contents() {
    std::string out(16 * kBlockBytes, '\0');
    std::fill_n(out.begin() + kBlockBytes, kBlockBytes, '\4');
    std::fill_n(out.begin() + 2 * kBlockBytes, kBlockBytes, '\5');
    return out;
  }
  ImageFolder folder;
};

TEST_F(ExportVerb, WritesTheMomentAndSaysWhich) {
  export_to(folder.path("disk.raw"));
  EXPECT_EQ(code, 0) << err;
  EXPECT_THAT(fake().asked, Contains("open volume: \"db1\" from { time_ns: 1795180925123456789 }"));
  EXPECT_EQ(folder.text("disk.raw"), contents());
  EXPECT_THAT(out, StartsWith("db1 as of #3  2026-11-20T14:32:05.123456789+01:00  "
                              "(2026-11-20T13:32:05.123456789Z)\n"));
  EXPECT_THAT(out,
              HasSubstr("{\"schema\":1,\"done_bytes\":\"65536\",\"total_bytes\":\"65536\"}\n"));
  EXPECT_THAT(out, HasSubstr("exported: 64 KiB, of which 8 KiB are not zeros, to " +
                             folder.path("disk.raw") + ", raw\n"));
  terminal = true;
  export_to(folder.path("bar.raw"));
  EXPECT_THAT(out, HasSubstr("\rexporting db1 ███"));
  export_to(folder.path("quiet.raw"), {"--quiet"});
  EXPECT_EQ(out, "");
  EXPECT_EQ(folder.text("quiet.raw"), contents());
}

TEST_F(ExportVerb, TheFormatIsNamedOrThatOfTheName) {
  export_to(folder.path("disk.qcow2"));
  EXPECT_EQ(code, 0) << err;
  EXPECT_THAT(folder.text("disk.qcow2"), StartsWith("QFI\xFB"));
  EXPECT_THAT(out, HasSubstr("disk.qcow2, qcow2\n"));
  export_to(folder.path("raw.qcow2"), {"--format", "raw"});
  EXPECT_EQ(folder.text("raw.qcow2"), contents());
  export_to(folder.path("disk.img"), {"--format", "qcow2"});
  EXPECT_THAT(folder.text("disk.img"), StartsWith("QFI\xFB"));
  export_to(folder.path("other"), {"--format", "vmdk"});
  EXPECT_EQ(code, 2);
}

TEST_F(ExportVerb, IsReadByPrograms) {
  export_to(folder.path("disk.raw"), {"--json"});
  EXPECT_EQ(out.substr(out.rfind('{', out.rfind("volume"))).substr(0, 29),
            "{\"schema\":1,\"volume\":\"db1\",\"a");
  EXPECT_THAT(out, HasSubstr("\"size_bytes\":\"65536\",\"data_bytes\":\"8192\""));
  EXPECT_THAT(out, Not(HasSubstr("exported")));
}

TEST_F(ExportVerb, TheStandardOutputHasTheImageAndNothingElse) {
  export_to("-");
  EXPECT_EQ(code, 0) << err;
  EXPECT_EQ(out, contents());
  EXPECT_THAT(err, StartsWith("db1 as of #3  "));
  EXPECT_THAT(err, HasSubstr("to the standard output, raw\n"));
  export_to("-", {"--json"});
  EXPECT_EQ(out, contents());
  EXPECT_THAT(err, StartsWith("{\"schema\":1,\"volume\":\"db1\""));
  export_to("-", {"--format", "qcow2"});
  EXPECT_EQ(code, 2);
  terminal = true;
  export_to("-");
  EXPECT_EQ(code, 2);
  EXPECT_EQ(out, "");
  EXPECT_THAT(err, HasSubstr("is a terminal"));
}

TEST_F(ExportVerb, WhatIsThereIsReplacedByForceOnly) {
  folder.put("disk.raw", "old");
  export_to(folder.path("disk.raw"));
  EXPECT_EQ(code, 1);
  EXPECT_THAT(err, HasSubstr("disk.raw exists: name another place, or overwrite it with --force"));
  EXPECT_THAT(fake().asked, IsEmpty());
  EXPECT_EQ(folder.text("disk.raw"), "old");
  export_to(folder.path("disk.raw"), {"--force"});
  EXPECT_EQ(code, 0) << err;
  EXPECT_EQ(folder.text("disk.raw"), contents());
  export_to("/dev/null", {"--force"});
  EXPECT_EQ(code, 2);
}

TEST_F(ExportVerb, ADryRunSaysWhatWouldBeDone) {
  export_to(folder.path("disk.qcow2"), {"--dry-run"});
  EXPECT_EQ(code, 0) << err;
  EXPECT_THAT(out, StartsWith("db1 as of #3  "));
  EXPECT_THAT(out,
              HasSubstr("would be exported: 64 KiB to " + folder.path("disk.qcow2") + ", qcow2\n"));
  EXPECT_THAT(out, HasSubstr("Dry run: nothing was changed.\n"));
  EXPECT_THAT(folder.names(), IsEmpty());
  export_to(folder.path("disk.qcow2"), {"--dry-run", "--json"});
  EXPECT_THAT(out, HasSubstr("\"dry_run\":true"));
  folder.put("disk.raw", "old");
  export_to(folder.path("disk.raw"), {"--dry-run"});
  EXPECT_EQ(code, 1);
}

TEST_F(ExportVerb, AMomentThatIsNotThereLeavesNothing) {
  fake().error = Error{ErrorCode::kOutsideWindow, "too old"};
  export_to(folder.path("disk.raw"));
  EXPECT_EQ(code, 3);
  EXPECT_THAT(folder.names(), IsEmpty());
}

TEST_F(ExportVerb, AnErrorInTheMiddleLeavesNothing) {
  fake().lost = {"17"};
  export_to(folder.path("disk.raw"));
  EXPECT_EQ(code, 1);
  EXPECT_THAT(folder.names(), IsEmpty());
}

}  // namespace
}  // namespace mariner::client
