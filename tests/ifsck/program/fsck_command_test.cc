#include "ifsck/program/fsck_command.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <vector>

#include "ifsck/write_trace.h"
#include "proto/bytes.h"
#include "proto/fsck.pb.h"
#include "server/admin/json.h"
#include "tests/ifsck/made_history.h"
#include "tests/ifsck/made_verdict.h"
#include "tests/ifsck/made_volume.h"
#include "tests/ifsck/program/made_console.h"

namespace mariner::ifsck {
namespace {

constexpr const char* kKind = "-t ext4 -b 4096 -O ^has_journal";

// A history as files, and what the program says of it.
class FsckCommandTest : public ::testing::Test {
 protected:
  FsckCommandTest() {
    image_ = history_.files().first;
    trace_ = history_.files().second;
  }

  int run(std::vector<std::string> words) {
    const Utc zone;
    return run_fsck_command(
        words, made_.console(), zone, [] { return VersionTime{1'000'000}; }, confine_);
  }
  int run_at(const std::string& verb, const std::string& at, std::vector<std::string> more = {}) {
    std::vector<std::string> words{
        verb, "--image", image_, "--trace", trace_, "--at", at, "--states", folder_.file("states")};
    words.insert(words.end(), more.begin(), more.end());
    return run(words);
  }
  static api::FsckReport report(const std::string& json) {
    api::FsckReport report;
    EXPECT_TRUE(admin::from_answer_json(json, report).has_value()) << json;
    return report;
  }
  // In the middle of a round of changes.
  [[nodiscard]] std::string middle() const {
    return "#" + std::to_string(history_.ends.front().value / 2);
  }

  logging::test::TemporaryDirectory folder_;
  MadeHistory history_{kKind, 4711};
  std::string image_;
  std::string trace_;
  MadeConsole made_;
  client::Confine confine_;  // none: this process may go on as it is
};

TEST_F(FsckCommandTest, SaysWhatIsCleanAndWhatIsMended) {
  EXPECT_EQ(run_at("check", "#0"), 0) << made_.take_errors();
  EXPECT_NE(made_.take().find("clean: 0 findings"), std::string::npos);
  EXPECT_EQ(run_at("check", middle()), 10) << made_.take_errors();
  const std::string text = made_.take();
  EXPECT_NE(text.find("repairable: "), std::string::npos) << text;
  EXPECT_NE(text.find("what changed from #0 on"), std::string::npos) << text;

  EXPECT_EQ(run_at("check", middle(), {"--json"}), 10);
  const api::FsckReport of = report(made_.take());
  EXPECT_EQ(of.verdict(), "repairable");
  EXPECT_EQ(of.schema(), 1u);
  EXPECT_GT(of.findings_all(), 0u);
  EXPECT_EQ(of.findings_size() >= static_cast<int>(of.findings_all()), true);
  EXPECT_GT(of.blocks_mended(), 0u);
  EXPECT_FALSE(of.full());
  EXPECT_FALSE(of.findings(0).meaning().empty());
  EXPECT_EQ(of.left_size(), 0);

  // Without what is known everything is looked at, with the same result.
  EXPECT_EQ(run_at("check", middle(), {"--json", "--no-save"}), 10);
  const api::FsckReport full = report(made_.take());
  EXPECT_TRUE(full.full());
  EXPECT_EQ(full.findings_all(), of.findings_all());
}

// An image that is checked as it is, and is another one the next time.
TEST_F(FsckCommandTest, OfAnImageWithoutATraceNothingIsKnown) {
  const std::string copy = folder_.file("copy");
  MadeImage::run("cp --sparse=always " + image_ + " " + copy);
  const auto check = [&] {
    return run({"check", "--image", copy, "--states", folder_.file("states")});
  };
  EXPECT_EQ(check(), 0) << made_.take_errors();
  MadeImage::run("debugfs -w -R 'clri <11>' " + copy);
  EXPECT_EQ(check(), 10) << made_.take_errors();
  EXPECT_EQ(made_.take().find("what changed from"), std::string::npos);
}

TEST_F(FsckCommandTest, TheRepairsMakeItSound) {
  const std::string output = folder_.file("repairs");
  EXPECT_EQ(run_at("repairs", middle(), {"--output", output}), 0) << made_.take_errors();
  std::ifstream in(output, std::ios::binary);
  Overlay blocks;
  std::vector<char> record(8 + kBlockBytes);
  while (in.read(record.data(), static_cast<std::streamsize>(record.size()))) {
    const auto bytes = std::as_bytes(std::span(record));
    blocks.put(Lbn{load_le<std::uint64_t>(bytes.data())}, bytes.subspan(8));
  }
  EXPECT_GT(blocks.size(), 0u);
  EXPECT_EQ(std::filesystem::file_size(output), blocks.size() * record.size());
  View view(*history_.past, SequenceNumber{history_.ends.front().value / 2}, blocks);
  EXPECT_EQ(MadeVerdict(image_).of(history_.since_the_first(view)), "");
  EXPECT_EQ(run_at("repairs", middle(), {"--output", folder_.file("none/here")}), 1);
}

TEST_F(FsckCommandTest, FindsTheNewestThatIsClean) {
  const SequenceNumber end = history_.ends[1];
  const auto find = [&](SequenceNumber before) {
    const int code = run({"find-clean", "--image", image_, "--trace", trace_, "--before",
                          "#" + std::to_string(before.value), "--json"});
    EXPECT_EQ(code, 0) << made_.take_errors();
    api::FsckFound found;
    EXPECT_TRUE(admin::from_answer_json(made_.take(), found).has_value());
    return found.at().sequence();
  };
  EXPECT_EQ(find(end), end.value);
  const std::uint64_t found = find(SequenceNumber{end.value - 1});
  EXPECT_LT(found, end.value);
  EXPECT_GE(found, history_.ends[0].value);
  // No moment in between is clean.
  for (std::uint64_t at = found + 1; at < end.value; ++at) {
    EXPECT_NE(MadeMoment(*history_.past, SequenceNumber{at}).census().findings_all, 0u) << at;
  }
}

TEST_F(FsckCommandTest, AnImageAloneWillDo) {
  EXPECT_EQ(run({"check", "--image", image_}), 0) << made_.take_errors();
  const std::string none = folder_.file("none");
  std::ofstream(none) << std::string(100'000, 'n');
  EXPECT_EQ(run({"check", "--image", none}), 1);
  EXPECT_NE(made_.take_errors().find("superblock"), std::string::npos);
  EXPECT_EQ(run({"check", "--image", folder_.file("nowhere")}), 1);
}

TEST_F(FsckCommandTest, SaysWhatIsWrongWithTheWords) {
  EXPECT_EQ(run({}), 2);
  EXPECT_EQ(run({"check"}), 2);
  EXPECT_NE(made_.take_errors().find("expected VOLUME@TIME, or --image"), std::string::npos);
  EXPECT_EQ(run({"check", "db1@-1m", "--image", image_}), 2);
  EXPECT_EQ(run({"check", "db1@-1m", "--at", "#3"}), 2);
  EXPECT_EQ(run_at("check", "#1", {"--level", "4"}), 2);
  EXPECT_EQ(run_at("check", "#1", {"--level", "3"}), 2);
  EXPECT_EQ(run_at("check", "#1", {"--path", "/a"}), 2);
  EXPECT_EQ(run_at("check", "#1", {"--level", "3", "--path", "/no/such"}), 1);
  EXPECT_EQ(run_at("check", "#1", {"--level", "3", "--path", "no/such"}), 2);
  EXPECT_EQ(run_at("check", "#0", {"--level", "3", "--path", "/a/large"}), 0);
  EXPECT_EQ(run_at("check", "#999999999"), 3);
  EXPECT_EQ(run_at("check", "mark:one"), 2);
  EXPECT_EQ(run_at("check", "tomorrow-ish"), 2);
  EXPECT_EQ(run({"check", "db1@#1", "--socket", folder_.file("nobody")}), 1);
}

TEST_F(FsckCommandTest, GivesUpWhatItDoesNotNeedBeforeItReads) {
  std::vector<client::SandboxRules> given_up;
  confine_ = [&](const client::SandboxRules& rules) -> Result<void> {
    given_up.push_back(rules);
    return Error{ErrorCode::kIo, "no sandbox"};
  };
  using Files = client::SandboxRules::Files;
  EXPECT_EQ(run_at("check", middle()), 1);
  EXPECT_NE(made_.take_errors().find("ifsck: no sandbox"), std::string::npos);
  ASSERT_EQ(given_up.size(), 1u);
  EXPECT_EQ(given_up.back().files, Files::kKept);
  EXPECT_GE(given_up.back().folder, 0);
  EXPECT_TRUE(std::filesystem::exists(folder_.file("states")));
  EXPECT_EQ(run_at("check", middle(), {"--no-save"}), 1);
  EXPECT_EQ(given_up.back().files, Files::kNone);
  const std::string output = folder_.file("repairs");
  std::ofstream(output) << "of before";
  EXPECT_EQ(run_at("repairs", middle(), {"--output", output}), 1);
  EXPECT_EQ(std::filesystem::file_size(output), 9u) << "it is opened, and as it was";
  EXPECT_EQ(run({"find-clean", "--image", image_, "--trace", trace_}), 1);
  EXPECT_EQ(given_up.size(), 4u);
}

}  // namespace
}  // namespace mariner::ifsck
