#include "server/manager/volume_directory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tests/server/manager/memory_store.h"

namespace mariner::manager {
namespace {

using namespace std::chrono_literals;
using replication::NodeId;

constexpr auto kCounter = "/mariner/last-volume";

// One node that creates volumes.
struct Creator {
  Creator(test::ManualExecutor& executor, MemoryCluster& cluster)
      : store(executor, cluster, {}),
        view(store, executor, std::string(kClusterPrefix), {}, [] {}) {}
  void create(const std::string& name) {
    meta::Volume volume;
    volume.set_name(name);
    volume.set_uuid("identity of " + name);
    volume.set_size_bytes(1 << 20);
    volume.mutable_cluster()->set_logger(3);
    volume.mutable_cluster()->add_storages(2);
    volume.mutable_cluster()->add_storages(1);
    create(std::move(volume));
  }
  void create(meta::Volume volume) {
    directory.create(std::move(volume),
                     [this](Result<meta::Volume> result) { results.push_back(std::move(result)); });
  }
  void lose(unsigned requests, unsigned answers) {
    auto faults = store.faults();
    faults.lose_requests = requests;
    faults.lose_answers = answers;
    store.set_faults(faults);
  }
  [[nodiscard]] std::optional<ErrorCode> failure() const {
    if (results.size() != 1 || results[0]) return std::nullopt;
    return results[0].error().code;
  }

  MemoryStore store;
  std::vector<Result<meta::Volume>> results;
  ClusterView view;
  VolumeDirectory directory{store, view};
};

class VolumeDirectoryTest : public ::testing::Test {
 protected:
  void put(const std::string& key, const std::string& value) {
    ASSERT_TRUE(cluster_.commit({.puts = {{key, value}}}).has_value());
  }
  [[nodiscard]] std::string value(const std::string& key) const {
    const Reading reading = cluster_.get(key);
    return reading.entry ? reading.entry->value : "none";
  }
  [[nodiscard]] std::vector<std::string> names() {
    std::vector<std::string> found;
    executor_.advance(100ms);
    left_out_.clear();
    for (const meta::Volume& volume : one_.directory.volumes(&left_out_)) {
      found.push_back(std::to_string(volume.id()) + " " + volume.name());
    }
    return found;
  }

  test::ManualExecutor executor_;
  MemoryCluster cluster_{executor_};
  Creator one_{executor_, cluster_};
  Creator two_{executor_, cluster_};
  std::vector<Error> left_out_;
};

TEST_F(VolumeDirectoryTest, AVolumeHasANumberADefinitionAndARecord) {
  one_.create("one");
  EXPECT_TRUE(one_.results.empty());
  executor_.advance(1s);
  ASSERT_EQ(one_.results.size(), 1u);
  ASSERT_TRUE(one_.results[0].has_value());
  EXPECT_EQ(one_.results[0]->id(), 1u);
  EXPECT_EQ(one_.results[0]->name(), "one");
  EXPECT_EQ(value(name_key("one")), "1");
  const auto record = two_.directory.record(VolumeId{1});
  ASSERT_TRUE(record.has_value());
  EXPECT_EQ(*record, (VolumeRecord{{1}, {}, NodeId{2}, NodeId{3}, {{2}, {1}}}))
      << "the first of its storage nodes coordinates it, if it can";
  EXPECT_EQ(names(), std::vector<std::string>{"1 one"});
  EXPECT_EQ(one_.directory.volumes()[0].SerializeAsString(), one_.results[0]->SerializeAsString());
}

TEST_F(VolumeDirectoryTest, WhoMayServeItIsNamedOrStoresIt) {
  meta::Volume volume;
  volume.set_name("one");
  volume.set_uuid("identity of one");
  volume.set_size_bytes(1 << 20);
  volume.mutable_cluster()->set_logger(3);
  volume.mutable_cluster()->add_storages(2);
  volume.mutable_cluster()->add_storages(1);
  EXPECT_EQ(targets_of(volume), (std::vector<std::uint32_t>{2, 1}));
  volume.mutable_cluster()->add_targets(4);
  volume.mutable_cluster()->add_targets(1);
  EXPECT_EQ(targets_of(volume), (std::vector<std::uint32_t>{4, 1}));
  one_.create(volume);
  executor_.advance(1s);
  const auto record = two_.directory.record(VolumeId{1});
  ASSERT_TRUE(record.has_value());
  EXPECT_EQ(record->coordinator, NodeId{4}) << "the first of them coordinates it, if it can";
  EXPECT_EQ(record->storages, (std::vector<NodeId>{{2}, {1}}));
}

TEST_F(VolumeDirectoryTest, NumbersAreNeverGivenTwice) {
  one_.create("a");
  executor_.advance(1s);
  ASSERT_TRUE(cluster_
                  .commit({.deletes = {definition_key(VolumeId{1}), volume_key(VolumeId{1}),
                                       name_key("a")}})
                  .has_value());
  two_.create("a");
  executor_.advance(1s);
  EXPECT_EQ(two_.results.at(0)->id(), 2u) << "although there is no volume 1 any more";
  EXPECT_EQ(names(), std::vector<std::string>{"2 a"});
}

TEST_F(VolumeDirectoryTest, ANameIsTakenOnce) {
  one_.create("a");
  executor_.advance(1s);
  two_.create("a");
  executor_.advance(1s);
  EXPECT_EQ(two_.failure(), ErrorCode::kAlreadyExists);
  EXPECT_EQ(names(), std::vector<std::string>{"1 a"});
  EXPECT_EQ(value(kCounter), "1") << "no number was used";
}

TEST_F(VolumeDirectoryTest, SeveralThatCreateAtOnceAllSucceed) {
  for (const char* const name : {"a", "b", "c"}) one_.create(name);
  for (const char* const name : {"d", "e", "f"}) two_.create(name);
  executor_.advance(5s);
  std::set<std::uint32_t> numbers;
  for (const Creator* creator : {&one_, &two_}) {
    ASSERT_EQ(creator->results.size(), 3u);
    for (const auto& result : creator->results) {
      ASSERT_TRUE(result.has_value());
      numbers.insert(result->id());
    }
  }
  EXPECT_EQ(numbers, (std::set<std::uint32_t>{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(names().size(), 6u);
}

TEST_F(VolumeDirectoryTest, OfTwoThatCreateTheSameNameOneIsTold) {
  one_.create("a");
  two_.create("a");
  executor_.advance(5s);
  EXPECT_NE(one_.failure().has_value(), two_.failure().has_value());
  EXPECT_EQ(one_.failure().value_or(ErrorCode::kAlreadyExists), ErrorCode::kAlreadyExists);
  EXPECT_EQ(two_.failure().value_or(ErrorCode::kAlreadyExists), ErrorCode::kAlreadyExists);
  EXPECT_EQ(names(), std::vector<std::string>{"1 a"});
}

// Others create a volume whenever this one has read the counter.
TEST_F(VolumeDirectoryTest, WhoAlwaysComesTooLateGivesUp) {
  one_.create("a");
  int others = 0;
  while (one_.results.empty() && others < 1000) {
    put(kCounter, std::to_string(++others));
    executor_.advance(1ms);
  }
  EXPECT_EQ(one_.failure(), ErrorCode::kUnavailable);
  EXPECT_TRUE(names().empty());
}

TEST_F(VolumeDirectoryTest, WhatWasAppliedAndNotToldIsFoundOut) {
  one_.create("a");
  executor_.advance(2ms);  // the counter is read
  one_.lose(0, 1);
  executor_.advance(10s);
  EXPECT_EQ(one_.store.faults().lose_answers, 0u);
  ASSERT_EQ(one_.results.size(), 1u);
  ASSERT_TRUE(one_.results[0].has_value());
  EXPECT_EQ(one_.results[0]->id(), 1u);
  EXPECT_EQ(names(), std::vector<std::string>{"1 a"});
}

TEST_F(VolumeDirectoryTest, WhatNeverArrivedIsNotSaidToBeCreated) {
  one_.create("a");
  executor_.advance(2ms);
  one_.lose(1, 0);
  executor_.advance(10s);
  EXPECT_EQ(one_.failure(), ErrorCode::kUnavailable);
  EXPECT_NE(one_.results[0].error().message.find("mariner volume list"), std::string::npos);
  EXPECT_TRUE(names().empty());
}

// The number that it would have had is another volume's by then.
TEST_F(VolumeDirectoryTest, AnothersVolumeIsNotTakenForWhatWasLost) {
  one_.create("a");
  executor_.advance(2ms);
  one_.lose(1, 0);
  executor_.advance(10ms);
  two_.create("b");
  executor_.advance(10s);
  EXPECT_EQ(one_.failure(), ErrorCode::kUnavailable);
  EXPECT_EQ(two_.results.at(0)->id(), 1u);
  EXPECT_EQ(names(), std::vector<std::string>{"1 b"});
}

TEST_F(VolumeDirectoryTest, AStoreThatIsAwayIsSaid) {
  auto faults = one_.store.faults();
  faults.partitioned = true;
  one_.store.set_faults(faults);
  one_.create("a");
  executor_.advance(30s);
  EXPECT_EQ(one_.failure(), ErrorCode::kUnavailable);
}

TEST_F(VolumeDirectoryTest, ACounterThatIsNoNumberIsNotUsed) {
  for (const std::string counter :
       {"", "seven", "7 ", " 7", "-1", "7\n", "99999999999999999999", "4294967295", "2147483647"}) {
    put(kCounter, counter);
    one_.results.clear();
    one_.create("a");
    executor_.advance(1s);
    EXPECT_EQ(one_.failure(), ErrorCode::kCorrupt) << "'" << counter << "'";
    EXPECT_EQ(value(kCounter), counter);
  }
  put(kCounter, "2147483646");
  one_.results.clear();
  one_.create("a");
  executor_.advance(1s);
  ASSERT_TRUE(one_.results.at(0).has_value());
  EXPECT_EQ(one_.results[0]->id(), 2147483647u) << "the last one";
}

TEST_F(VolumeDirectoryTest, WhatCannotBeReadIsLeftOut) {
  one_.create("a");
  one_.create("b");
  executor_.advance(1s);
  const std::string good = value(definition_key(VolumeId{1}));
  meta::Volume volume;
  ASSERT_TRUE(volume.ParseFromString(good));
  volume.set_id(5);
  volume.clear_cluster();
  put(definition_key(VolumeId{3}), "\xff\xff");
  put(definition_key(VolumeId{4}), good);
  put(definition_key(VolumeId{5}), volume.SerializeAsString());
  volume.mutable_cluster()->set_logger(3);
  volume.set_id(6);
  put(definition_key(VolumeId{6}), volume.SerializeAsString());
  volume.mutable_cluster()->add_storages(1);
  volume.set_id(0);
  put(definition_key(VolumeId{0}), volume.SerializeAsString());
  EXPECT_EQ(names(), (std::vector<std::string>{"1 a", "2 b"}));
  std::vector<std::string> named;
  for (const Error& error : left_out_) {
    EXPECT_EQ(error.code, ErrorCode::kCorrupt);
    named.push_back(error.message);
  }
  using ::testing::HasSubstr;
  EXPECT_THAT(named,
              ::testing::ElementsAre(HasSubstr("definitions/0 "), HasSubstr("definitions/3 "),
                                     HasSubstr("definitions/4 "), HasSubstr("definitions/5 "),
                                     HasSubstr("definitions/6 ")));
  EXPECT_EQ(one_.directory.volumes().size(), 2u) << "also where nobody wants to hear why";
}

TEST_F(VolumeDirectoryTest, ARecordThatCannotBeReadIsNone) {
  EXPECT_EQ(one_.directory.record(VolumeId{1}), std::nullopt);
  put(volume_key(VolumeId{1}), "\xff\xff");
  executor_.advance(1s);
  EXPECT_EQ(one_.directory.record(VolumeId{1}), std::nullopt);
}

}  // namespace
}  // namespace mariner::manager
