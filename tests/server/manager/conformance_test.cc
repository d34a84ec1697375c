// What every ClusterStore does: the same tests for the one in memory and for real etcd.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/server/manager/store_rig.h"

namespace mariner::manager {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;

constexpr Revision kAbsent{};

EtcdCluster& shared_etcd() {
  static EtcdCluster cluster(1);
  return cluster;
}

class Conformance : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (GetParam() == std::string("memory")) {
      rig_ = std::make_unique<MemoryRig>();
    } else {
      if (!EtcdCluster::installed()) GTEST_SKIP() << "Debian's etcd-server is not installed";
      auto rig = std::make_unique<EtcdRig>(EtcdStoreOptions{shared_etcd().endpoints()});
      ASSERT_TRUE(rig->ready());
      rig_ = std::move(rig);
    }
    // Tests share one etcd.
    prefix_ = std::string(testing::UnitTest::GetInstance()->current_test_info()->name()) + "/";
  }
  std::string key(const std::string& name) const { return prefix_ + name; }
  Revision put(const std::string& name, const std::string& value, LeaseId lease = {}) {
    const auto answer = rig_->put(key(name), value, lease);
    EXPECT_TRUE(answer) << to_string(answer.error());
    EXPECT_TRUE(answer && answer->outcome == CommitOutcome::kApplied)
        << (answer ? answer->why : "");
    return answer ? answer->revision : Revision{};
  }
  // "a=1" or "-a" with the prefix cut off.
  std::vector<std::string> told(const Recorder& recorder) const {
    std::vector<std::string> words;
    for (const Change& change : recorder.changes) {
      EXPECT_TRUE(change.entry.key.starts_with(prefix_));
      const std::string name = change.entry.key.substr(prefix_.size());
      words.push_back(change.deleted ? "-" + name : name + "=" + change.entry.value);
    }
    return words;
  }
  std::unique_ptr<Watch> watch(Revision from, Recorder& recorder) {
    auto watch = rig_->store().watch(prefix_, from, recorder);
    EXPECT_TRUE(watch);
    return std::move(*watch);
  }

  std::unique_ptr<StoreRig> rig_;
  std::string prefix_;
};

TEST_P(Conformance, WhatIsNotThereReadsAsNone) {
  const auto reading = rig_->get(key("a"));
  ASSERT_TRUE(reading);
  EXPECT_FALSE(reading->entry);
  EXPECT_GT(reading->revision.value, 0u);
}

TEST_P(Conformance, KeysAndValuesAreAnyBytes) {
  const std::string name("\0\xFF\"{}\n", 6);
  std::string value;
  for (int i = 0; i < 256; ++i) value.push_back(static_cast<char>(i));
  const Revision revision = put(name, value);
  put("empty", "");
  const auto reading = rig_->get(key(name));
  ASSERT_TRUE(reading) << to_string(reading.error());
  ASSERT_TRUE(reading->entry);
  EXPECT_EQ(*reading->entry, (Entry{key(name), value, revision, {}}));
  const auto empty = rig_->get(key("empty"));
  ASSERT_TRUE(empty && empty->entry);
  EXPECT_EQ(empty->entry->value, "");
}

TEST_P(Conformance, AListingIsOfItsPrefixAndInOrder) {
  put("b", "2");
  const Revision newest = put("a", "1");
  ASSERT_TRUE(rig_->put(prefix_.substr(0, prefix_.size() - 1) + "0", "another"));
  const auto listing = rig_->list(prefix_);
  ASSERT_TRUE(listing);
  ASSERT_EQ(listing->entries.size(), 2u);
  EXPECT_EQ(listing->entries[0].key, key("a"));
  EXPECT_EQ(listing->entries[0].revision, newest);
  EXPECT_EQ(listing->entries[1].value, "2");
  const auto all = rig_->list("");
  ASSERT_TRUE(all);
  EXPECT_GE(all->entries.size(), 3u);
  const std::string high("\xFF\xFF", 2);
  ASSERT_TRUE(rig_->put(high + "x", "end"));
  const auto end = rig_->list(high);
  ASSERT_TRUE(end) << to_string(end.error());
  EXPECT_EQ(end->entries.size(), 1u);
}

TEST_P(Conformance, AListingOfManyIsWhole) {
  Transaction many;
  for (int i = 100; i < 160; ++i) many.puts.push_back({key(std::to_string(i)), "x"});
  const auto put_all = rig_->commit(many);
  ASSERT_TRUE(put_all);
  for (int i = 160; i < 165; ++i) put(std::to_string(i), "x");
  const auto listing = rig_->list(prefix_);
  ASSERT_TRUE(listing) << to_string(listing.error());
  ASSERT_EQ(listing->entries.size(), 65u);
  for (int i = 0; i < 65; ++i) {
    EXPECT_EQ(listing->entries[static_cast<std::size_t>(i)].key, key(std::to_string(100 + i)));
  }
}

TEST_P(Conformance, OnlyOneCreates) {
  const Transaction create{.compares = {{key("a"), kAbsent}}, .puts = {{key("a"), "1"}}};
  const auto first = rig_->commit(create);
  ASSERT_TRUE(first);
  EXPECT_EQ(first->outcome, CommitOutcome::kApplied);
  const auto second = rig_->commit(create);
  ASSERT_TRUE(second);
  EXPECT_EQ(second->outcome, CommitOutcome::kNotApplied);
  EXPECT_THAT(second->present, ElementsAre(Entry{key("a"), "1", first->revision, {}}));
  EXPECT_EQ(second->revision, first->revision);
}

TEST_P(Conformance, AllComparesMustHold) {
  const Revision a = put("a", "1");
  const Revision b = put("b", "1");
  const auto refused = rig_->commit(
      {.compares = {{key("a"), a}, {key("b"), a}, {key("c"), kAbsent}}, .puts = {{key("a"), "2"}}});
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->outcome, CommitOutcome::kNotApplied);
  EXPECT_THAT(refused->present,
              ElementsAre(Entry{key("a"), "1", a, {}}, Entry{key("b"), "1", b, {}}));
  const auto applied =
      rig_->commit({.compares = {{key("a"), a}, {key("b"), b}, {key("c"), kAbsent}},
                    .puts = {{key("a"), "2"}, {key("c"), "2"}},
                    .deletes = {key("b"), key("d")}});
  ASSERT_TRUE(applied);
  EXPECT_EQ(applied->outcome, CommitOutcome::kApplied);
  const auto listing = rig_->list(prefix_);
  ASSERT_TRUE(listing);
  EXPECT_THAT(listing->entries, ElementsAre(Entry{key("a"), "2", applied->revision, {}},
                                            Entry{key("c"), "2", applied->revision, {}}));
}

TEST_P(Conformance, ADeletedKeyIsAbsentAgain) {
  put("a", "1");
  ASSERT_TRUE(rig_->commit({.deletes = {key("a")}}));
  const auto created = rig_->commit({.compares = {{key("a"), kAbsent}}, .puts = {{key("a"), "2"}}});
  ASSERT_TRUE(created);
  EXPECT_EQ(created->outcome, CommitOutcome::kApplied);
}

TEST_P(Conformance, TwoClientsCountWithoutLosingAny) {
  int running = 2;
  std::function<void(ClusterStore&, int)> count = [&](ClusterStore& store, int left) {
    if (left == 0) {
      --running;
      return;
    }
    store.get(key("n"), [&, left](Result<Reading> reading) {
      ASSERT_TRUE(reading);
      const bool there = reading->entry.has_value();
      const int n = there ? std::stoi(reading->entry->value) : 0;
      store.commit({.compares = {{key("n"), there ? reading->entry->revision : kAbsent}},
                    .puts = {{key("n"), std::to_string(n + 1)}}},
                   [&, left](Result<CommitAnswer> answer) {
                     ASSERT_TRUE(answer);
                     ASSERT_NE(answer->outcome, CommitOutcome::kUnknown);
                     const bool applied = answer->outcome == CommitOutcome::kApplied;
                     count(store, applied ? left - 1 : left);
                   });
    });
  };
  count(rig_->store(), 15);
  count(rig_->other(), 15);
  ASSERT_TRUE(rig_->wait([&] { return running == 0; }, 20s));
  const auto reading = rig_->get(key("n"));
  ASSERT_TRUE(reading && reading->entry);
  EXPECT_EQ(reading->entry->value, "30");
}

TEST_P(Conformance, WhatIsBoundToALeaseEndsWithIt) {
  const auto asked = rig_->executor().monotonic_time();
  const auto lease = rig_->grant(1s);
  ASSERT_TRUE(lease);
  EXPECT_GE(lease->ttl, 1s);
  EXPECT_GE(lease->counted_from, asked);
  EXPECT_LE(lease->counted_from, rig_->executor().monotonic_time());
  const Revision from = put("a", "1", lease->id);
  put("b", "2", lease->id);
  put("c", "stays");
  Recorder recorder;
  const auto watching = watch(from.next(), recorder);
  // Up to the moment that the holder counts with, it is there.
  while (rig_->executor().monotonic_time() < lease->end() - 300ms) {
    const auto reading = rig_->get(key("a"));
    ASSERT_TRUE(reading && reading->entry);
    EXPECT_EQ(reading->entry->lease, lease->id);
    rig_->pass(50ms);
  }
  ASSERT_TRUE(rig_->wait([&] { return recorder.changes.size() >= 4; }, 6s));
  EXPECT_GE(rig_->executor().monotonic_time(), lease->end());
  EXPECT_THAT(told(recorder), ElementsAre("b=2", "c=stays", "-a", "-b"));
  EXPECT_EQ(recorder.changes[2].entry.revision, recorder.changes[3].entry.revision);
  const auto late = rig_->keep_alive(lease->id);
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code, ErrorCode::kNotFound);
}

TEST_P(Conformance, ALeaseThatIsKeptAliveGoesOn) {
  const auto lease = rig_->grant(1s);
  ASSERT_TRUE(lease);
  put("a", "1", lease->id);
  auto last = lease->counted_from;
  for (int i = 0; i < 5; ++i) {
    rig_->pass(500ms);
    const auto before = rig_->executor().monotonic_time();
    const auto kept = rig_->keep_alive(lease->id);
    ASSERT_TRUE(kept) << to_string(kept.error());
    EXPECT_EQ(kept->id, lease->id);
    EXPECT_EQ(kept->ttl, lease->ttl);
    EXPECT_GT(kept->counted_from, last);
    EXPECT_GE(kept->counted_from, before);
    last = kept->counted_from;
  }
  const auto reading = rig_->get(key("a"));
  ASSERT_TRUE(reading);
  EXPECT_TRUE(reading->entry);
}

TEST_P(Conformance, ComparesKnowLeases) {
  const auto lease = rig_->grant(20s);
  const auto another = rig_->grant(20s);
  ASSERT_TRUE(lease && another);
  put("a", "1", lease->id);
  const auto held = rig_->commit({.compares = {{key("a"), lease->id}}, .puts = {{key("b"), "1"}}});
  ASSERT_TRUE(held);
  EXPECT_EQ(held->outcome, CommitOutcome::kApplied);
  for (const auto& [name, id] : {std::pair{"a", another->id}, {"b", lease->id}, {"c", lease->id}}) {
    const auto refused = rig_->commit({.compares = {{key(name), id}}, .puts = {{key("d"), "1"}}});
    ASSERT_TRUE(refused);
    EXPECT_EQ(refused->outcome, CommitOutcome::kNotApplied) << name;
  }
}

TEST_P(Conformance, ARevokedLeaseIsGone) {
  const auto lease = rig_->grant(20s);
  ASSERT_TRUE(lease);
  put("a", "1", lease->id);
  EXPECT_TRUE(rig_->revoke(lease->id));
  const auto reading = rig_->get(key("a"));
  ASSERT_TRUE(reading);
  EXPECT_FALSE(reading->entry);
  const auto again = rig_->revoke(lease->id);
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code, ErrorCode::kNotFound);
  const auto bound = rig_->commit({.puts = {{key("a"), "2", lease->id}, {key("b"), "not either"}}});
  ASSERT_FALSE(bound);
  EXPECT_EQ(bound.error().code, ErrorCode::kNotFound);
  const auto listing = rig_->list(prefix_);
  ASSERT_TRUE(listing);
  EXPECT_TRUE(listing->entries.empty());
}

TEST_P(Conformance, AWatchTellsEveryChangeFromItsRevisionOn) {
  put("before", "0");
  const Revision from = put("a", "1");
  put("b", "1");
  Recorder recorder;
  const auto watching = watch(from, recorder);
  ASSERT_TRUE(rig_->put("elsewhere/" + prefix_, "not told"));
  ASSERT_TRUE(rig_->commit({.puts = {{key("a"), "2"}}, .deletes = {key("b")}}));
  put("c", "1");
  ASSERT_TRUE(rig_->wait([&] { return recorder.changes.size() >= 5; }, 5s));
  EXPECT_THAT(told(recorder), ElementsAre("a=1", "b=1", "a=2", "-b", "c=1"));
  EXPECT_EQ(recorder.changes[0].entry.revision, from);
  rig_->pass(100ms);
  EXPECT_EQ(recorder.changes.size(), 5u);
  EXPECT_FALSE(recorder.why);
}

TEST_P(Conformance, AWatchTellsWhatComesAfterAListing) {
  put("a", "1");
  const auto listing = rig_->list(prefix_);
  ASSERT_TRUE(listing);
  put("a", "2");
  Recorder recorder;
  const auto watching = watch(listing->revision.next(), recorder);
  ASSERT_TRUE(rig_->wait([&] { return !recorder.changes.empty(); }, 5s));
  EXPECT_THAT(told(recorder), ElementsAre("a=2"));
}

TEST_P(Conformance, AnEndedWatchIsSilent) {
  const Revision from = put("a", "1");
  Recorder recorder;
  auto watching = watch(from, recorder);
  recorder.on_change = [&] { watching.reset(); };  // from within
  ASSERT_TRUE(rig_->wait([&] { return watching == nullptr; }, 5s));
  put("a", "2");
  rig_->pass(50ms);
  EXPECT_THAT(told(recorder), ElementsAre("a=1"));
}

TEST_P(Conformance, ACompactedWatchSaysSo) {
  const Revision from = put("a", "1");
  put("a", "2");
  ASSERT_TRUE(rig_->commit({.deletes = {key("a")}}));
  const auto listing = rig_->list(prefix_);
  ASSERT_TRUE(listing);
  rig_->compact(listing->revision);
  // The second begins just where a deletion was compacted: it must not be silent either.
  for (const Revision begin : {from, listing->revision}) {
    Recorder recorder;
    const auto watching = watch(begin, recorder);
    ASSERT_TRUE(rig_->wait([&] { return recorder.why.has_value(); }, 5s));
    EXPECT_EQ(recorder.why->code, ErrorCode::kOutsideWindow);
    EXPECT_TRUE(recorder.changes.empty());
  }
  Recorder recorder;
  const auto watching = watch(listing->revision.next(), recorder);
  put("b", "1");
  ASSERT_TRUE(rig_->wait([&] { return !recorder.changes.empty(); }, 5s));
  EXPECT_THAT(told(recorder), ElementsAre("b=1"));
}

TEST_P(Conformance, WhatIsOutOfBoundsIsRefused) {
  const auto code = [](const auto& result) {
    return result ? ErrorCode::kIo : result.error().code;
  };
  EXPECT_EQ(code(rig_->get("")), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code(rig_->list(std::string(kKeyBytesMax + 1, 'k'))), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code(rig_->commit({})), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code(rig_->grant(0s)), ErrorCode::kInvalidArgument);
  Recorder recorder;
  EXPECT_EQ(code(rig_->store().watch(prefix_, Revision{}, recorder)), ErrorCode::kInvalidArgument);
}

TEST_P(Conformance, TheLargestTransactionFits) {
  Transaction largest;
  for (std::size_t i = 0; i < kComparesMax; ++i) {
    largest.compares.push_back({key(std::to_string(i)), kAbsent});
  }
  constexpr std::size_t kKeysMax = 2 * 64 * 64;
  const std::size_t bytes = (kTransactionBytesMax - kKeysMax) / kChangesMax;
  for (std::size_t i = 0; i < kChangesMax; ++i) {
    largest.puts.push_back({key(std::to_string(i)), std::string(bytes, 'v')});
  }
  Recorder recorder;
  const auto listing = rig_->list(prefix_);
  ASSERT_TRUE(listing);
  const auto watching = watch(listing->revision.next(), recorder);
  const auto applied = rig_->commit(largest);
  ASSERT_TRUE(applied) << to_string(applied.error());
  EXPECT_EQ(applied->outcome, CommitOutcome::kApplied) << applied->why;
  const auto refused = rig_->commit(largest);
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->outcome, CommitOutcome::kNotApplied) << refused->why;
  EXPECT_EQ(refused->present.size(), kComparesMax);
  ASSERT_TRUE(rig_->wait([&] { return recorder.changes.size() == kChangesMax; }, 5s));
}

INSTANTIATE_TEST_SUITE_P(Stores, Conformance, testing::Values("memory", "etcd"),
                         [](const auto& tested) { return std::string(tested.param); });

}  // namespace
}  // namespace mariner::manager
