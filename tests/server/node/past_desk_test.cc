#include "server/node/past_desk.h"

#include <gtest/gtest.h>

#include <array>
#include <optional>
#include <string>

#include "tests/server/volume/asked_history.h"
#include "tests/server/volume/volume_rig.h"

namespace mariner::node {
namespace {

using admin::BlockQuestion;
using admin::BlockVersion;
using test::VolumeRig;

// An imported volume of 1024 blocks, with the writes 1 to 3: to blocks 0, 0 and 1.
class PastDeskTest : public ::testing::Test {
 protected:
  static constexpr std::uint64_t kBlocks = 1024;
  static constexpr std::uint64_t kManyBlocks = 4 * admin::kChangedRangesMax + 4;

  void SetUp() override {
    rig_.start();
    for (const std::uint64_t block : {0, 0, 1}) write(block);
  }
  static VolumeRig::Options options() {
    VolumeRig::Options out;
    out.blocks = kBlocks;
    out.base_in_image = true;
    out.base.assign(kBlocks * kBlockBytes, std::byte{'b'});
    return out;
  }
  // Each write of its own letter, from 'a' on.
  void write(std::uint64_t block) {
    Payload data = Payload::allocate(kBlockBytes);
    std::fill_n(data.data(), kBlockBytes, std::byte{next_letter_++});
    rig_.volume().live().write({block * kBlockBytes, kBlockBytes}, {data, 0, kBlockBytes},
                               [](const Result<void>& r) { EXPECT_TRUE(r); });
    rig_.manual().run_ready();
  }
  void rollback(std::uint64_t to) {
    bool done = false;
    rig_.volume().live().rollback({{to}, {}}, [&](const auto& r) { done = r.has_value(); });
    rig_.manual().run_ready();
    ASSERT_TRUE(done);
  }
  Result<PastDesk::Volume> find(const std::string& name) {
    if (name != "db1") return Error{ErrorCode::kNotFound, "no such volume"};
    volume::Volume& volume = rig_.volume();
    PastDesk::Volume out{id_, volume.size_bytes(), {}, &volume.history(), {}};
    out.moments.volume = name;
    out.moments.history = &volume.history().history();
    if (history_ != nullptr) {
      out.moments.history = history_;
      out.size_bytes = kManyBlocks * kBlockBytes;
    }
    out.moments.replicator = [&volume] { return &volume.replicator(); };
    out.hold = [&volume](SequenceNumber at, PastDesk::HoldDone done) {
      const auto pin = volume.pin(at);
      if (!pin) return done(pin.error());
      done(PastDesk::Hold{*pin, [kept = *pin] { return kept->holds(); }});
    };
    return out;
  }

  // What `call` answers, which is given the way to answer.
  template <typename T, typename Call>
  Result<T> ask(Call call) {
    std::optional<Result<T>> answer;
    call([&](Result<T> result) { answer = std::move(result); });
    rig_.manual().run_ready();
    EXPECT_TRUE(answer.has_value());
    return *std::move(answer);
  }
  Result<api::Past> open(std::optional<std::uint64_t> from = {}, const char* volume = "db1") {
    api::OpenPastRequest request;
    request.set_volume(volume);
    if (from) request.mutable_from()->set_sequence(*from);
    return ask<api::Past>([&](auto done) { desk_.open(request, std::move(done)); });
  }
  Result<api::Past> show(const std::string& id) {
    api::PastRequest request;
    request.set_id(id);
    return ask<api::Past>([&](auto done) { desk_.show(request, std::move(done)); });
  }
  Result<api::Past> close(const std::string& id) {
    api::PastRequest request;
    request.set_id(id);
    return ask<api::Past>([&](auto done) { desk_.close(request, std::move(done)); });
  }
  Result<PastDesk::Blocks> blocks(const std::string& id, std::vector<BlockQuestion> questions) {
    return ask<PastDesk::Blocks>(
        [&](auto done) { desk_.blocks(id, std::move(questions), std::move(done)); });
  }
  // A letter for each block, or the name of an error.
  template <typename... Args>
  std::string text(Args&&... args) {
    const Result<PastDesk::Blocks> found = blocks(std::forward<Args>(args)...);
    if (!found) return std::string(error_code_name(found.error().code));
    std::string out;
    for (const PayloadSlice& each : found->slices) {
      for (std::size_t at = 0; at < each.length; at += kBlockBytes) {
        out += static_cast<char>(each.bytes()[at]);
      }
    }
    return out;
  }
  Result<admin::ChangedPart> changed(const std::string& id, std::uint64_t from, std::uint64_t to,
                                     std::uint64_t first = 0) {
    api::PastChangedRequest request;
    request.set_id(id);
    request.set_from(from);
    request.set_to(to);
    request.set_first_block(first);
    return ask<admin::ChangedPart>([&](auto done) { desk_.changed(request, std::move(done)); });
  }
  Result<admin::StoredPart> stored(const std::string& id, std::uint64_t at,
                                   std::uint64_t first = 0) {
    api::PastStoredRequest request;
    request.set_id(id);
    request.set_at(at);
    request.set_first_block(first);
    return ask<admin::StoredPart>([&](auto done) { desk_.stored(request, std::move(done)); });
  }
  Result<admin::VersionsPart> versions(const std::string& id, admin::VersionsRequest request) {
    return ask<admin::VersionsPart>(
        [&](auto done) { desk_.versions(id, std::move(request), std::move(done)); });
  }
  Result<api::Moment> moment(const std::string& id, const api::MomentSpec& at) {
    api::PastMomentRequest request;
    request.set_id(id);
    *request.mutable_at() = at;
    return ask<api::Moment>([&](auto done) { desk_.moment(request, std::move(done)); });
  }
  std::uint64_t time_of(std::uint64_t sequence) {
    return rig_.answers().moment_of(SequenceNumber{sequence}).time.ns;
  }

  std::uint8_t next_letter_ = 'a';
  VolumeRig rig_{options()};
  VolumeId id_{7};
  volume::History* history_ = nullptr;  // of a volume of kManyBlocks instead; null: the rig's
  PastDesk desk_{rig_.executor(), [this](const std::string& name) { return find(name); }};
};

TEST_F(PastDeskTest, AReadingSaysWhatThereIs) {
  const Result<api::Past> past = open();
  ASSERT_TRUE(past) << to_string(past.error());
  EXPECT_EQ(past->volume(), "db1");
  EXPECT_EQ(past->volume_id(), 7u);
  EXPECT_EQ(past->size_bytes(), kBlocks * kBlockBytes);
  EXPECT_EQ(past->from().sequence(), 0u);
  EXPECT_EQ(past->newest().sequence(), 3u);
  EXPECT_EQ(past->newest().time_ns(), time_of(3));
  write(2);
  EXPECT_EQ(show(past->id())->newest().sequence(), 4u);
  EXPECT_EQ(open(2)->from().sequence(), 2u);
  EXPECT_EQ(open(5).error().code, ErrorCode::kOutsideWindow);
  EXPECT_EQ(open({}, "db2").error().code, ErrorCode::kNotFound);
}

TEST_F(PastDeskTest, BlocksOfAnyMomentComeFromLogAndBase) {
  const std::string id = open()->id();
  EXPECT_EQ(text(id,
                 std::vector<BlockQuestion>{
                     {{0}, {0}}, {{0}, {1}}, {{0}, {2}}, {{1}, {2}}, {{1}, {3}}, {{9}, {3}}}),
            "babbcb");
  rollback(1);
  EXPECT_EQ(text(id, std::vector<BlockQuestion>{{{0}, {3}}, {{0}, {4}}, {{1}, {4}}}), "bab");
}

TEST_F(PastDeskTest, SaysWhatChangedAndWhen) {
  const std::string id = open()->id();
  EXPECT_EQ(changed(id, 0, 3).value(), (admin::ChangedPart{{{{0}, {2}}}, {}}));
  EXPECT_EQ(changed(id, 2, 3).value(), (admin::ChangedPart{{{{1}, {1}}}, {}}));
  EXPECT_EQ(changed(id, 0, 3, 1).value(), (admin::ChangedPart{{{{1}, {1}}}, {}}));
  EXPECT_EQ(changed(id, 3, 3).value(), admin::ChangedPart{});
  rollback(1);
  EXPECT_EQ(versions(id, {{4}, {{{0}, {0}}, {{1}, {0}}, {{2}, {0}}}})->list,
            (std::vector<BlockVersion>{{{0}, {1}, {time_of(1)}},
                                       {{0}, {2}, {time_of(2)}},
                                       {{0}, {4}, {time_of(4)}},
                                       {{1}, {3}, {time_of(3)}},
                                       {{1}, {4}, {time_of(4)}}}))
      << "the rollback gave both other contents";
  EXPECT_EQ(versions(id, {{3}, {{{0}, {1}}}})->list,
            (std::vector<BlockVersion>{{{0}, {2}, {time_of(2)}}}));
}

// With more changes than one answer has; found in any order, and some twice.
TEST_F(PastDeskTest, WhatChangedComesInParts) {
  const std::string id = open()->id();
  test::AskedHistory history;
  history_ = &history;
  const auto part_from = [&](std::uint64_t first) {
    api::PastChangedRequest request;
    request.set_id(id);
    request.set_to(3);
    request.set_first_block(first);
    std::optional<Result<admin::ChangedPart>> part;
    desk_.changed(request, [&](Result<admin::ChangedPart> found) { part = std::move(found); });
    auto asked = test::AskedHistory::next(history.changes);
    const std::uint64_t count = kManyBlocks / 2;
    for (std::uint64_t i = 0; i < count; ++i) {
      const BlockRange one{{2 * (i * 7919 % count)}, {1}};  // (a prime)
      asked.portion(std::array{one, one});
    }
    asked.done({});
    return part->value();
  };
  std::uint64_t next = 0;
  for (const std::uint64_t part : {0, 1}) {
    const admin::ChangedPart found = part_from(next);
    ASSERT_EQ(found.ranges.size(), admin::kChangedRangesMax);
    for (std::uint64_t i = 0; i < found.ranges.size(); ++i) {
      ASSERT_EQ(found.ranges[i], (BlockRange{{2 * (part * admin::kChangedRangesMax + i)}, {1}}));
    }
    EXPECT_EQ(found.next, found.ranges.back().end());
    next = found.next.value;
  }
  const admin::ChangedPart last = part_from(next);
  EXPECT_EQ(last.ranges.size(), 2u);
  EXPECT_EQ(last.next, Lbn{});
}

TEST_F(PastDeskTest, SaysWhatIsStored) {
  const std::string id = open()->id();
  EXPECT_EQ(stored(id, 3).value(), (admin::StoredPart{{{{0}, {kBlocks}}}, {}}))
      << "an imported one";
  rig_.volume().live().trim({4 * kBlockBytes, 6 * kBlockBytes}, volume::TrimMode::kZero,
                            [](const Result<void>& r) { EXPECT_TRUE(r); });
  rig_.manual().run_ready();
  EXPECT_EQ(stored(id, 4).value(), (admin::StoredPart{{{{0}, {4}}, {{10}, {kBlocks - 10}}}, {}}));
  EXPECT_EQ(stored(id, 4, 7).value(), (admin::StoredPart{{{{10}, {kBlocks - 10}}}, {}}));
  EXPECT_EQ(stored(id, 3, 7).value(), (admin::StoredPart{{{{7}, {kBlocks - 7}}}, {}}));
  EXPECT_EQ(stored(id, 5).error().code, ErrorCode::kOutsideWindow);
  EXPECT_EQ(stored(id, 4, kBlocks).error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(stored("17", 4).error().code, ErrorCode::kNotFound);
  rig_.volume().logged().snapshots()->drop_all();
  EXPECT_EQ(stored(id, 4).error().code, ErrorCode::kOutsideWindow);
}

// Every other block: more ranges than one answer has, found some at a time.
TEST_F(PastDeskTest, WhatIsStoredComesInParts) {
  const std::string id = open()->id();
  test::AskedHistory history;
  history_ = &history;
  const auto part_from = [&](std::uint64_t first) {
    api::PastStoredRequest request;
    request.set_id(id);
    request.set_at(3);
    request.set_first_block(first);
    std::optional<Result<admin::StoredPart>> part;
    desk_.stored(request, [&](Result<admin::StoredPart> found) { part = std::move(found); });
    while (!part) {
      auto asked = test::AskedHistory::next(history.locates);
      const BlockRange range = asked.lookups.at(0).range;
      EXPECT_LE(range.count.value, PastDesk::kStoredBlocksAtATime);
      volume::History::Located located;
      for (std::uint64_t i = 0; i < range.count.value; ++i) {
        const Lbn block = range.first + BlockCount{i};
        using Source = volume::PastRun::Source;
        located.runs.push_back({{block, {1}}, block.value % 2 == 0 ? Source::kLog : Source::kZero});
      }
      asked.done(std::move(located));
      rig_.manual().run_ready();
    }
    return part->value();
  };
  std::uint64_t next = 0;
  std::uint64_t blocks = 0;
  int parts = 0;
  do {
    const admin::StoredPart found = part_from(next);
    ASSERT_LE(found.ranges.size(), admin::kChangedRangesMax);
    for (const BlockRange& each : found.ranges) {
      ASSERT_EQ(each, (BlockRange{{2 * blocks++}, {1}}));
    }
    next = found.next.value;
    ++parts;
  } while (next != 0);
  EXPECT_EQ(blocks, kManyBlocks / 2);
  EXPECT_EQ(parts, 3);
}

TEST_F(PastDeskTest, FindsMoments) {
  const std::string id = open()->id();
  api::MomentSpec spec;
  spec.set_time_ns(time_of(2));
  EXPECT_EQ(moment(id, spec)->sequence(), 2u);
  spec.set_time_ns(time_of(2) - 1);
  EXPECT_EQ(moment(id, spec)->sequence(), 1u);
  spec.set_sequence(3);
  EXPECT_EQ(moment(id, spec)->time_ns(), time_of(3));
  spec.set_sequence(4);
  EXPECT_EQ(moment(id, spec).error().code, ErrorCode::kOutsideWindow);
  spec.Clear();
  EXPECT_EQ(moment(id, spec).error().code, ErrorCode::kInvalidArgument);
}

TEST_F(PastDeskTest, QuestionsWithoutSenseAreRefused) {
  const std::string id = open(2)->id();
  using Questions = std::vector<BlockQuestion>;
  EXPECT_EQ(text(id, Questions{{{0}, {2}}, {{kBlocks}, {2}}}), "invalid-argument");
  EXPECT_EQ(text(id, Questions{{{UINT64_MAX}, {2}}}), "invalid-argument");
  EXPECT_EQ(text(id, Questions{{{0}, {1}}}), "outside-window") << "not kept by this reading";
  EXPECT_EQ(text(id, Questions{{{0}, {2}}, {{0}, {4}}}), "outside-window") << "not yet";
  EXPECT_EQ(text(id, Questions{{{0}, {UINT64_MAX}}}), "outside-window");
  EXPECT_EQ(text(std::string("17"), Questions{{{0}, {2}}}), "not-found");
  EXPECT_EQ(changed(id, 1, 3).error().code, ErrorCode::kOutsideWindow);
  EXPECT_EQ(changed(id, 2, 4).error().code, ErrorCode::kOutsideWindow);
  EXPECT_EQ(changed(id, 3, 2).error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(changed("17", 2, 3).error().code, ErrorCode::kNotFound);
  EXPECT_EQ(versions(id, {{4}, {{{0}, {2}}}}).error().code, ErrorCode::kOutsideWindow);
  EXPECT_EQ(versions(id, {{3}, {{{0}, {1}}}}).error().code, ErrorCode::kOutsideWindow);
  EXPECT_EQ(versions(id, {{3}, {{{kBlocks}, {2}}}}).error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(text(id, Questions{{{0}, {2}}}), "b") << "nothing is lost";
}

TEST_F(PastDeskTest, AReadingKeepsItsPastUntilItEnds) {
  const auto pinned = [this] { return rig_.volume().oldest_pinned(); };
  const std::string id = open(2)->id();
  EXPECT_EQ(pinned(), SequenceNumber{2});
  EXPECT_EQ(close(id)->id(), id);
  EXPECT_FALSE(pinned().has_value());
  EXPECT_EQ(close(id).error().code, ErrorCode::kNotFound);

  const std::string used = open(1)->id();
  open(3);
  rig_.manual().advance(PastDesk::kIdle - std::chrono::seconds(1));
  EXPECT_EQ(text(used, std::vector<BlockQuestion>{{{0}, {1}}}), "a");
  rig_.manual().advance(PastDesk::kIdle / 2);
  EXPECT_EQ(desk_.readings(), 1u) << "what is used stays";
  EXPECT_EQ(pinned(), SequenceNumber{1});
  rig_.manual().advance(PastDesk::kIdle);
  EXPECT_EQ(desk_.readings(), 0u);
  EXPECT_FALSE(pinned().has_value());

  const std::string lasting = open()->id();
  for (auto left = PastDesk::kLife; left > PastDesk::kIdle / 2; left -= PastDesk::kIdle / 2) {
    ASSERT_TRUE(show(lasting));
    rig_.manual().advance(PastDesk::kIdle / 2);
  }
  rig_.manual().advance(PastDesk::kIdle / 2);
  EXPECT_EQ(show(lasting).error().code, ErrorCode::kNotFound) << "used or not";
}

TEST_F(PastDeskTest, WhatIsDroppedWhileItIsReadDoesNotCount) {
  const std::string id = open()->id();
  rig_.log_disk().hold();
  std::optional<ErrorCode> code;
  desk_.blocks(id, {{{0}, {1}}}, [&](const auto& found) { code = found.error().code; });
  rig_.manual().run_ready();
  ASSERT_FALSE(code);
  rig_.volume().logged().snapshots()->drop_all();
  rig_.log_disk().release();
  rig_.manual().run_ready();
  EXPECT_EQ(code, ErrorCode::kOutsideWindow);
  EXPECT_EQ(show(id).error().code, ErrorCode::kOutsideWindow);
}

TEST_F(PastDeskTest, AVolumeOfTheSameNameIsAnotherOne) {
  const std::string id = open()->id();
  id_ = {8};
  EXPECT_EQ(show(id).error().code, ErrorCode::kNotFound);
}

TEST_F(PastDeskTest, ThereAreSoManyReadings) {
  for (std::size_t i = 0; i < PastDesk::kReadingsMax; ++i) ASSERT_TRUE(open());
  EXPECT_EQ(open().error().code, ErrorCode::kLimit);
}

TEST_F(PastDeskTest, BytesOnTheirWayOutAreBounded) {
  const std::string id = open()->id();
  const std::vector<BlockQuestion> most(admin::kBlockQuestionsMax, {{0}, {1}});
  std::vector<PastDesk::Blocks> out;
  std::vector<ErrorCode> failed;
  const auto begin = [&] {
    desk_.blocks(id, most, [&](Result<PastDesk::Blocks> found) {
      if (found) {
        out.push_back(*std::move(found));
      } else {
        failed.push_back(found.error().code);
      }
    });
  };
  constexpr std::size_t kAtOnce =
      PastDesk::kBytesMax / (admin::kBlockQuestionsMax * std::uint64_t{kBlockBytes});
  for (std::size_t i = 0; i < kAtOnce + PastDesk::kWaitingMax; ++i) begin();
  rig_.manual().run_ready();
  EXPECT_EQ(out.size(), kAtOnce);
  begin();
  EXPECT_EQ(failed, std::vector{ErrorCode::kLimit});
  out.pop_back();
  rig_.manual().run_ready();
  EXPECT_EQ(out.size(), kAtOnce) << "another one has taken its place";
  ASSERT_TRUE(close(id));
  out.clear();
  rig_.manual().run_ready();
  EXPECT_TRUE(out.empty());
  EXPECT_EQ(failed.size(), PastDesk::kWaitingMax) << "those that waited: their reading has ended";
}

}  // namespace
}  // namespace mariner::node
