#include "server/node/repair_desk.h"

#include <gmock/gmock.h>

#include <cstdlib>
#include <filesystem>
#include <optional>

#include "tests/logging/temporary_directory.h"
#include "tests/server/volume/volume_rig.h"

namespace mariner::node {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A volume of 1024 blocks, with three writes.
class RepairDeskTest : public ::testing::Test {
 protected:
  static constexpr std::uint64_t kBlocks = 1024;

  void SetUp() override {
    rig_.start();
    Payload data = Payload::zeroed(kBlockBytes);
    for (int i = 0; i < 3; ++i) {
      rig_.volume().live().write({0, kBlockBytes}, {data, 0, kBlockBytes},
                                 [](const Result<void>& r) { EXPECT_TRUE(r); });
    }
    rig_.manual().run_ready();
    desk_.emplace(rig_.manual(), folder_,
                  [this](const std::string& volume) { return find(volume); });
  }
  void TearDown() override {
    EXPECT_TRUE(std::filesystem::is_empty(folder_)) << "files have no names";
  }
  static test::VolumeRig::Options options() {
    test::VolumeRig::Options out;
    out.blocks = kBlocks;
    return out;
  }
  Result<RepairDesk::Volume> find(const std::string& name) {
    if (name != "db1") return Error{ErrorCode::kNotFound, "no such volume"};
    volume::Volume& volume = rig_.volume();
    RepairDesk::Volume out{id_, volume.size_bytes(), {}};
    out.moments.volume = name;
    out.moments.history = &volume.history().history();
    out.moments.replicator = [&volume] { return &volume.replicator(); };
    return out;
  }
  template <typename Call>
  Result<api::Repairs> ask(Call call) {
    std::optional<Result<api::Repairs>> answer;
    call([&](Result<api::Repairs> result) { answer = std::move(result); });
    rig_.manual().run_ready();
    return *std::move(answer);
  }
  Result<api::Repairs> open(std::uint64_t sequence, const char* volume = "db1") {
    api::RepairsRequest request;
    request.set_volume(volume);
    request.set_sequence(sequence);
    return ask([&](auto done) { desk_->open(request, std::move(done)); });
  }
  // Each with the low byte of its number.
  Result<api::Repairs> add(const std::string& id, const std::vector<std::uint64_t>& numbers) {
    std::vector<std::vector<std::byte>> contents;
    std::vector<admin::RepairedBlock> blocks;
    for (const std::uint64_t number : numbers) {
      contents.emplace_back(kBlockBytes, static_cast<std::byte>(number));
      blocks.push_back({Lbn{number}, contents.back()});
    }
    return ask([&](auto done) { desk_->add(id, blocks, std::move(done)); });
  }
  auto take(const std::string& id, std::uint64_t sequence, bool only_ask = false) {
    return desk_->take(id, id_, SequenceNumber{sequence}, only_ask);
  }

  test::VolumeRig rig_{options()};
  logging::test::TemporaryDirectory made_;
  const std::string folder_ = made_.file("");
  VolumeId id_{7};
  std::optional<RepairDesk> desk_;
};

TEST_F(RepairDeskTest, HandedOverInPartsAndUsedOnce) {
  const auto opened = open(2);
  ASSERT_TRUE(opened) << to_string(opened.error());
  EXPECT_EQ(opened->at().sequence(), 2u);
  ASSERT_TRUE(add(opened->id(), {3, 4, 5}));
  EXPECT_EQ(add(opened->id(), {6, 1023})->blocks(), 5u);
  EXPECT_TRUE(take(opened->id(), 2, true));
  const auto taken = take(opened->id(), 2);
  ASSERT_TRUE(taken);
  EXPECT_EQ(take(opened->id(), 2).error().code, ErrorCode::kNotFound);
  EXPECT_EQ(add(opened->id(), {}).error().code, ErrorCode::kNotFound);
  const auto source = RepairFile::read(*taken);
  const auto runs = source->next();
  ASSERT_TRUE(runs);
  ASSERT_EQ(runs->size(), 2u) << "neighbours are one write";
  EXPECT_EQ((*runs)[0].extent, (BlockRange{Lbn{3}, BlockCount{4}}));
  EXPECT_EQ((*runs)[0].bytes.bytes()[3 * kBlockBytes], std::byte{6});
  EXPECT_EQ((*runs)[1].bytes.bytes().back(), std::byte{0xFF});
  EXPECT_TRUE(source->next()->empty());
}

TEST_F(RepairDeskTest, WhatMakesNoSenseIsRefused) {
  EXPECT_EQ(open(2, "db2").error().code, ErrorCode::kNotFound);
  EXPECT_EQ(open(4).error().code, ErrorCode::kOutsideWindow);
  const std::string id = open(2)->id();
  EXPECT_THAT(add(id, {5, 1024}).error().message,
              HasSubstr("expected numbers below 1024, the size of db1, found 1024"));
  ASSERT_TRUE(add(id, {5}));
  EXPECT_THAT(add(id, {5}).error().message,
              HasSubstr("expected ascending numbers, found 5 behind 5"));
  EXPECT_EQ(add(id, {})->blocks(), 1u);
  EXPECT_THAT(take(id, 3).error().message, HasSubstr("are of db1 at #2, and not of #3"));
  EXPECT_TRUE(take(id, 2));
}

TEST_F(RepairDeskTest, WhatIsNotUsedIsDropped) {
  const std::string dropped = open(1)->id();
  const std::string kept = open(1)->id();
  const std::string forgotten = open(1)->id();
  ASSERT_TRUE(ask([&](auto done) { desk_->drop(dropped, std::move(done)); }));
  EXPECT_EQ(take(dropped, 1, true).error().code, ErrorCode::kNotFound);
  rig_.manual().advance(RepairDesk::kIdle - std::chrono::seconds(10));
  EXPECT_TRUE(take(kept, 1, true));
  rig_.manual().advance(std::chrono::seconds(20));
  EXPECT_TRUE(take(kept, 1, true));
  EXPECT_EQ(take(forgotten, 1, true).error().code, ErrorCode::kNotFound);
}

TEST_F(RepairDeskTest, NoMoreThanItsBounds) {
  std::vector<std::string> ids;
  for (std::size_t i = 0; i < RepairDesk::kRepairsMax; ++i) ids.push_back(open(1)->id());
  EXPECT_EQ(open(1).error().code, ErrorCode::kLimit);
  ASSERT_TRUE(take(ids[0], 1));
  EXPECT_TRUE(open(1));
}

TEST_F(RepairDeskTest, ManyAreReadInBatches) {
  const std::string id = open(1)->id();
  std::vector<std::uint64_t> all(kBlocks);
  for (std::uint64_t i = 0; i < kBlocks; ++i) all[i] = i;
  for (std::size_t at = 0; at < kBlocks; at += 128) {
    ASSERT_TRUE(add(id, {all.begin() + at, all.begin() + at + 128}));
  }
  const auto source = RepairFile::read(*take(id, 1));
  std::vector<std::uint64_t> batches;
  for (;;) {
    const auto runs = source->next();
    ASSERT_TRUE(runs);
    if (runs->empty()) break;
    batches.push_back(runs->front().extent.count.value);
  }
  EXPECT_THAT(batches, ElementsAre(256, 256, 256, 256));
}

}  // namespace
}  // namespace mariner::node
