#include "server/manager/cluster_view.h"

#include <gtest/gtest.h>

#include "tests/server/manager/memory_store.h"

namespace mariner::manager {
namespace {

using namespace std::chrono_literals;

class ClusterViewTest : public ::testing::Test {
 protected:
  void put(const std::string& key, const std::string& value) {
    ASSERT_TRUE(cluster_.commit({.puts = {{key, value}}}).has_value());
  }
  [[nodiscard]] std::string value(const std::string& key) const {
    const Entry* entry = view_->find(key);
    return entry == nullptr ? "none" : entry->value;
  }
  void begin() {
    view_ = std::make_unique<ClusterView>(store_, executor_, "/m/", BackoffTimes{},
                                          [this] { ++changes_; });
  }

  test::ManualExecutor executor_;
  MemoryCluster cluster_{executor_};
  MemoryStore store_{executor_, cluster_, {}};
  int changes_ = 0;
  std::unique_ptr<ClusterView> view_;
};

TEST_F(ClusterViewTest, ShowsWhatIsThereAndWhatChanges) {
  put("/m/a", "1");
  put("/other", "x");
  begin();
  EXPECT_FALSE(view_->known());
  executor_.advance(10ms);
  EXPECT_TRUE(view_->known());
  EXPECT_EQ(changes_, 1);
  EXPECT_EQ(value("/m/a"), "1");
  EXPECT_EQ(value("/other"), "none");
  put("/m/b", "2");
  ASSERT_TRUE(cluster_.commit({.deletes = {"/m/a"}}).has_value());
  executor_.advance(10ms);
  EXPECT_EQ(value("/m/a"), "none");
  EXPECT_EQ(value("/m/b"), "2");
}

TEST_F(ClusterViewTest, ThoseBehindAPrefixAreVisitedInTheOrderOfKeys) {
  for (const char* const key : {"/m/b/2", "/m/b/10", "/m/a", "/m/b", "/m/c", "/other/b/3"}) {
    put(key, key);
  }
  begin();
  const auto visited = [this](const std::string& prefix) {
    std::string keys;
    view_->visit(prefix, [&](const Entry& entry) { keys += entry.value + " "; });
    return keys;
  };
  EXPECT_EQ(visited("/m/"), "") << "nothing is known yet";
  executor_.advance(10ms);
  EXPECT_EQ(visited("/m/b/"), "/m/b/10 /m/b/2 ");
  EXPECT_EQ(visited("/m/b"), "/m/b /m/b/10 /m/b/2 ");
  EXPECT_EQ(visited("/m/"), "/m/a /m/b /m/b/10 /m/b/2 /m/c ");
  EXPECT_EQ(visited("/m/d"), "");
}

TEST_F(ClusterViewTest, ListsAgainWhenItHasMissedSomething) {
  put("/m/a", "1");
  begin();
  executor_.advance(10ms);
  auto faults = store_.faults();
  faults.partitioned = true;
  store_.set_faults(faults);
  ASSERT_TRUE(cluster_.commit({.puts = {{"/m/b", "2"}}, .deletes = {"/m/a"}}).has_value());
  put("/m/c", "3");
  cluster_.compact(cluster_.revision());
  faults.partitioned = false;
  store_.set_faults(faults);
  int unknown = 0;
  for (int i = 0; i < 1000; ++i) {
    executor_.advance(1ms);
    if (view_->known()) continue;
    ++unknown;
    EXPECT_EQ(value("/m/a"), "1") << "what it knew stays until then";
  }
  EXPECT_GT(unknown, 0);
  EXPECT_TRUE(view_->known());
  EXPECT_EQ(value("/m/a"), "none");
  EXPECT_EQ(value("/m/b"), "2");
  EXPECT_EQ(value("/m/c"), "3");
}

TEST_F(ClusterViewTest, WaitsForAStoreThatCannotBeReached) {
  auto faults = store_.faults();
  faults.partitioned = true;
  store_.set_faults(faults);
  put("/m/a", "1");
  begin();
  executor_.advance(30s);
  EXPECT_FALSE(view_->known());
  faults.partitioned = false;
  store_.set_faults(faults);
  executor_.advance(10s);
  EXPECT_EQ(value("/m/a"), "1");
}

}  // namespace
}  // namespace mariner::manager
