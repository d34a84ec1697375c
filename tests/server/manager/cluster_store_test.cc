#include "server/manager/cluster_store.h"

#include <gtest/gtest.h>

namespace mariner::manager {
namespace {

using namespace std::chrono_literals;

TEST(ClusterStore, KeysHaveBounds) {
  EXPECT_TRUE(check_key(std::string(kKeyBytesMax, 'k')));
  EXPECT_FALSE(check_key(std::string(kKeyBytesMax + 1, 'k')));
  EXPECT_FALSE(check_key(""));
  EXPECT_TRUE(check_prefix(""));
  EXPECT_FALSE(check_prefix(std::string(kKeyBytesMax + 1, 'k')));
}

TEST(ClusterStore, LeasesHaveBounds) {
  EXPECT_TRUE(check_ttl(1s));
  EXPECT_TRUE(check_ttl(kLeaseTtlMax));
  EXPECT_FALSE(check_ttl(0s));
  EXPECT_FALSE(check_ttl(kLeaseTtlMax + 1s));
}

TEST(ClusterStore, ALeaseEndsByTheHoldersClock) {
  const Lease lease{LeaseId{1}, 5s, 100ms};
  EXPECT_EQ(lease.end(), 5100ms);
}

TEST(ClusterStore, TransactionsHaveBounds) {
  Transaction transaction{.puts = {{"a", std::string(kValueBytesMax, 'v')}}, .deletes = {"b"}};
  EXPECT_TRUE(check_transaction(transaction));
  transaction.puts[0].value += 'v';
  EXPECT_FALSE(check_transaction(transaction));

  EXPECT_FALSE(check_transaction({}));
  EXPECT_FALSE(check_transaction({.puts = {{"a", "1"}, {"a", "2"}}}));
  EXPECT_FALSE(check_transaction({.puts = {{"a", "1"}}, .deletes = {"a"}}));
  EXPECT_FALSE(check_transaction({.puts = {{"", "1"}}}));
  EXPECT_FALSE(check_transaction({.deletes = {""}}));
  EXPECT_FALSE(check_transaction({.compares = {{"", Revision{1}}}, .deletes = {"a"}}));
  EXPECT_FALSE(check_transaction({.compares = {{"a", LeaseId{0}}}, .deletes = {"a"}}));
  EXPECT_TRUE(check_transaction({.compares = {{"a", Revision{0}}}, .deletes = {"a"}}));
}

TEST(ClusterStore, ATransactionsPartsAreCounted) {
  Transaction changes;
  for (std::size_t i = 0; i < kChangesMax; ++i) changes.deletes.push_back(std::to_string(i));
  EXPECT_TRUE(check_transaction(changes));
  changes.puts.push_back({"one more", ""});
  EXPECT_FALSE(check_transaction(changes));

  Transaction compares{.compares = {kComparesMax, {"a", Revision{1}}}, .deletes = {"a"}};
  EXPECT_TRUE(check_transaction(compares));
  compares.compares.push_back({"a", Revision{1}});
  EXPECT_FALSE(check_transaction(compares));

  Transaction bytes;
  for (int i = 0; i < 4; ++i) bytes.puts.push_back({std::to_string(i), std::string(262143, 'v')});
  EXPECT_TRUE(check_transaction(bytes));
  bytes.deletes.push_back("x");
  EXPECT_FALSE(check_transaction(bytes));
}

}  // namespace
}  // namespace mariner::manager
