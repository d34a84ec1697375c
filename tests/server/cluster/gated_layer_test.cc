#include "server/cluster/gated_layer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "proto/bytes.h"
#include "tests/support/ram_layer.h"

namespace mariner::cluster {
namespace {

using volume::Layer;

constexpr ByteRange kRange{512, 1024};

PayloadSlice slice(const std::string& text) {
  return {Payload::copy_of(as_byte_span(text)), 0, text.size()};
}

class GatedLayerTest : public ::testing::Test {
 protected:
  // Asks everything that a layer can be asked; answered_ has what came of it.
  void ask_everything() {
    const auto answer = [this](const char* what) {
      return [this, what](const auto& result) {
        answered_.push_back(std::string(what) + " " +
                            (result ? "done" : std::string(error_code_name(result.error().code))));
      };
    };
    gate_.read(kRange, answer("read"));
    gate_.write(kRange, slice(std::string(1024, 'a')), answer("write"));
    gate_.write_same(kRange, slice(std::string(512, 'b')), answer("write same"));
    gate_.update(
        kRange,
        [](const PayloadSlice&) -> std::optional<PayloadSlice> {
          return slice(std::string(1024, 'c'));
        },
        answer("update"));
    gate_.trim(kRange, volume::TrimMode::kUnmap, answer("trim"));
    gate_.flush(answer("flush"));
    gate_.allocation(kRange, answer("allocation"));
    gate_.snapshot(answer("snapshot"));
    gate_.settle(answer("settle"));
  }
  std::vector<std::string> answered() { return std::exchange(answered_, {}); }

  test::RamLayer one_{{.size_bytes = 1 << 20}};
  test::RamLayer two_{{.size_bytes = 1 << 20}};
  Layer* serving_ = nullptr;
  int asked_ = 0;
  GatedLayer gate_{1 << 20, [this] {
                     ++asked_;
                     return serving_;
                   }};
  std::vector<std::string> answered_;
};

const std::vector<std::string> kUnavailable = {
    "read unavailable",       "write unavailable",    "write same unavailable",
    "update unavailable",     "trim unavailable",     "flush unavailable",
    "allocation unavailable", "snapshot unavailable", "settle done"};

TEST_F(GatedLayerTest, TellsWhatTheVolumeIsAlsoWhenNobodyServes) {
  EXPECT_EQ(gate_.size_bytes(), 1u << 20);
  EXPECT_FALSE(gate_.read_only());
}

TEST_F(GatedLayerTest, WhileNobodyServesEverythingIsUnavailableAtOnce) {
  ask_everything();
  EXPECT_EQ(answered(), kUnavailable) << "nothing is under way, so that it is settled";
}

TEST_F(GatedLayerTest, EachCommandGoesToWhoeverServesWhenItArrives) {
  serving_ = &one_;
  one_.record_calls();
  ask_everything();
  EXPECT_THAT(answered(), ::testing::Each(::testing::HasSubstr(" done")));
  EXPECT_EQ(asked_, 9) << "for each command anew";
  EXPECT_THAT(one_.calls(),
              ::testing::ElementsAre("read 512+1024", "write 512+1024", "write_same 512+1024",
                                     "update 512+1024", "unmap 512+1024", "flush 0+0",
                                     "allocation 512+1024", "snapshot 0+0"));
  serving_ = &two_;
  gate_.write({0, 512}, slice(std::string(512, 'x')),
              [](const Result<void>& r) { EXPECT_TRUE(r); });
  EXPECT_EQ(two_.text({0, 512}), std::string(512, 'x'));
  EXPECT_EQ(one_.text({0, 512}), std::string(512, '\0'));
  serving_ = nullptr;
  ask_everything();
  EXPECT_EQ(answered(), kUnavailable);
}

TEST_F(GatedLayerTest, WhatIsUnderWayIsAnsweredByWhoeverWasAsked) {
  serving_ = &one_;
  one_.hold();
  ask_everything();
  EXPECT_TRUE(answered().empty());
  serving_ = nullptr;
  gate_.close();
  one_.release();
  EXPECT_THAT(answered(), ::testing::Each(::testing::HasSubstr(" done")));
}

TEST_F(GatedLayerTest, NobodyIsAskedAfterTheEnd) {
  serving_ = &one_;
  gate_.close();
  ask_everything();
  EXPECT_EQ(answered(), kUnavailable);
  EXPECT_EQ(asked_, 0);
}

}  // namespace
}  // namespace mariner::cluster
