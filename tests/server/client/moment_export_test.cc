#include "server/client/moment_export.h"

#include <gmock/gmock.h>

#include <map>

#include "server/client/raw_stream.h"
#include "tests/server/client/daemon.h"

namespace mariner::client {
namespace {

using testing::ElementsAre;

// A volume of 4096 blocks. The fake fills each block with the low byte of its number plus that of
// the moment, which is 3: block 253 is zeros.
class MomentExport : public DaemonTest {
 protected:
  static constexpr std::uint64_t kBlocks = 4096;

  MomentExport() {
    fake().past.set_id("17");
    fake().past.set_volume_id(4);
    fake().past.set_size_bytes(kBlocks * kBlockBytes);
    fake().past.mutable_from()->set_sequence(3);
  }
  admin::FakePast& fake() { return control.of_the_past; }

  struct Pieces final : ExportSink {
    Result<void> write(std::uint64_t offset, std::span<const std::byte> bytes) override {
      EXPECT_GE(offset, end);
      EXPECT_EQ((offset | bytes.size()) % kBlockBytes, 0u);
      for (std::size_t at = 0; at < bytes.size(); at += kBlockBytes) {
        blocks[(offset + at) / kBlockBytes] = static_cast<int>(bytes[at]);
      }
      end = offset + bytes.size();
      if (error) return *error;
      return {};
    }
    Result<void> finish() override {
      finished = true;
      return {};
    }
    std::map<std::uint64_t, int> blocks;
    std::uint64_t end = 0;
    bool finished = false;
    std::optional<Error> error;
  };

  Result<std::uint64_t> run_export() {
    Result<PastClient> past = PastClient::open({.socket = socket, .volume = "db1"});
    if (!past) return past.error();
    return export_moment(*past, {3}, sink, [this](std::uint64_t done, std::uint64_t all) {
      EXPECT_EQ(all, kBlocks * kBlockBytes);
      EXPECT_GE(done, progress);
      progress = done;
    });
  }

  Pieces sink;
  std::uint64_t progress = 0;
};

TEST_F(MomentExport, PassesOnWhatIsStoredAndNotZeros) {
  fake().stored_answers = {{{{{1}, {2}}, {{252}, {3}}}, {300}}, {{{{300}, {1}}}, {}}};
  const auto bytes = run_export();
  ASSERT_TRUE(bytes) << to_string(bytes.error());
  EXPECT_EQ(sink.blocks,
            (std::map<std::uint64_t, int>{{1, 4}, {2, 5}, {252, 255}, {254, 1}, {300, 47}}));
  EXPECT_EQ(*bytes, 5u * kBlockBytes);
  EXPECT_TRUE(sink.finished);
  EXPECT_EQ(progress, kBlocks * kBlockBytes);
}

TEST_F(MomentExport, GoesOnFromBatchToBatch) {
  fake().stored_answers = {{{{{0}, {kBlocks}}}, {}}};
  ASSERT_TRUE(run_export());
  EXPECT_EQ(sink.blocks.size(), kBlocks - kBlocks / 256);
  for (const auto& [block, byte] : sink.blocks) {
    ASSERT_EQ(byte, static_cast<int>((block + 3) % 256)) << block;
  }
}

TEST_F(MomentExport, OfNothingAsksForNothing) {
  fake().stored_answers = {{{}, {2000}}, {{}, {}}};
  EXPECT_EQ(run_export().value(), 0u);
  EXPECT_TRUE(sink.finished);
  EXPECT_THAT(fake().asked, ElementsAre("open volume: \"db1\" from { }", "stored id: \"17\" at: 3",
                                        "stored id: \"17\" at: 3 first_block: 2000", "close 17"));
}

TEST_F(MomentExport, WhatTheVolumeGrewByMeanwhileIsNotItsPart) {
  fake().stored_answers = {{{{{kBlocks - 1}, {100}}, {{kBlocks + 500}, {1}}}, {kBlocks + 600}}};
  ASSERT_TRUE(run_export());
  EXPECT_EQ(sink.blocks.size(), 1u);
}

TEST_F(MomentExport, TheSinksErrorsEndIt) {
  fake().stored_answers = {{{{{0}, {kBlocks}}}, {}}};
  sink.error = Error{ErrorCode::kNoSpace, "full"};
  EXPECT_EQ(run_export().error().code, ErrorCode::kNoSpace);
  EXPECT_FALSE(sink.finished);
}

TEST_F(MomentExport, TheReadingsErrorsEndIt) {
  fake().stored_answers = {{{{{0}, {kBlocks}}}, {}}};
  fake().gone_to = 9;
  fake().lost = {"17"};
  EXPECT_EQ(run_export().error().code, ErrorCode::kOutsideWindow);
  EXPECT_FALSE(sink.finished);
}

}  // namespace
}  // namespace mariner::client
