#include "tests/bench/tpcc_trace.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <unordered_set>
#include <vector>

namespace mariner::bench {
namespace {

using index::IndexKey;
using Kind = TpccTrace::Kind;
using Table = TpccTrace::Table;
using Transaction = TpccTrace::Transaction;

struct HashOfKey {
  std::size_t operator()(IndexKey key) const { return key.high * 0x9e3779b97f4a7c15 ^ key.low; }
};

TEST(TpccTraceTest, IsMadeFromItsSeed) {
  TpccTrace one({.warehouses = 4, .seed = 1});
  TpccTrace same({.warehouses = 4, .seed = 1});
  TpccTrace other({.warehouses = 4, .seed = 2});
  std::size_t different = 0;
  for (int i = 0; i < 10'000; ++i) {
    const TpccTrace::Access access = one.next();
    ASSERT_EQ(access, same.next());
    different += access == other.next() ? 0 : 1;
  }
  EXPECT_GT(different, 5'000u);
}

TEST(TpccTraceTest, BeginsWithTheRowsOfTheSpecificationInTheOrderOfTheirKeys) {
  const TpccTrace trace({.warehouses = 2});
  std::map<Table, double> rows;
  IndexKey last;
  trace.initial_rows([&](IndexKey key) {
    ASSERT_LT(last, key);
    last = key;
    rows[TpccTrace::table_of(key)] += 1;
  });
  EXPECT_EQ(rows[Table::kWarehouse], 2);
  EXPECT_EQ(rows[Table::kDistrict], 20);
  EXPECT_EQ(rows[Table::kCustomer], 60'000);
  EXPECT_EQ(rows[Table::kHistory], 60'000);
  EXPECT_EQ(rows[Table::kNewOrder], 18'000);
  EXPECT_EQ(rows[Table::kOrder], 60'000);
  EXPECT_NEAR(rows[Table::kOrderLine], 600'000, 6'000);
  EXPECT_EQ(rows[Table::kItem], 100'000);
  EXPECT_EQ(rows[Table::kStock], 200'000);
}

// What is read, updated or deleted is there, what is inserted is not.
TEST(TpccTraceTest, FitsTheRowsThatAreThere) {
  TpccTrace trace({.warehouses = 2});
  std::unordered_set<IndexKey, HashOfKey> rows;
  trace.initial_rows([&](IndexKey key) { rows.insert(key); });
  std::map<Kind, int> kinds;
  for (int i = 0; i < 500'000; ++i) {
    const TpccTrace::Access access = trace.next();
    ++kinds[access.kind];
    switch (access.kind) {
      case Kind::kRead:
      case Kind::kUpdate: ASSERT_TRUE(rows.contains(access.key)) << i; break;
      case Kind::kInsert: ASSERT_TRUE(rows.insert(access.key).second) << i; break;
      case Kind::kDelete: ASSERT_EQ(rows.erase(access.key), 1u) << i; break;
    }
  }
  for (const Kind kind : {Kind::kRead, Kind::kUpdate, Kind::kInsert, Kind::kDelete}) {
    EXPECT_GT(kinds[kind], 1'000);
  }
}

TEST(TpccTraceTest, MixesTransactionsAsDemanded) {
  TpccTrace trace({.warehouses = 10});
  constexpr std::uint64_t kTransactions = 20'000;
  std::map<Transaction, double> shares;
  std::uint64_t seen = 0;
  while (trace.transactions() < kTransactions) {
    static_cast<void>(trace.next());
    if (trace.transactions() == seen) continue;
    seen = trace.transactions();
    shares[trace.transaction()] += 1.0 / kTransactions;
  }
  EXPECT_NEAR(shares[Transaction::kNewOrder], 0.45, 0.015);
  EXPECT_NEAR(shares[Transaction::kPayment], 0.43, 0.015);
  EXPECT_NEAR(shares[Transaction::kOrderStatus], 0.04, 0.006);
  EXPECT_NEAR(shares[Transaction::kDelivery], 0.04, 0.006);
  EXPECT_NEAR(shares[Transaction::kStockLevel], 0.04, 0.006);
}

// An order line takes 1 % of its stock from another warehouse and its item as NURand says: of 8,192
// numbers that are or-ed, those with many bits are more likely.
TEST(TpccTraceTest, OrdersAreAsTheSpecificationSays) {
  TpccTrace trace({.warehouses = 10});
  std::map<std::uint64_t, double> items;
  double lines = 0;
  double orders = 0;
  double remote = 0;
  std::uint64_t home = 0;
  for (int i = 0; i < 2'000'000; ++i) {
    const TpccTrace::Access access = trace.next();
    const Table table = TpccTrace::table_of(access.key);
    if (table == Table::kWarehouse) home = access.key.high & 0xffffffff;
    if (access.kind == Kind::kInsert && table == Table::kOrder) orders += 1;
    if (access.kind == Kind::kInsert && table == Table::kOrderLine) lines += 1;
    if (access.kind != Kind::kUpdate || table != Table::kStock) continue;
    remote += (access.key.high & 0xffffffff) == home ? 0 : 1;
    items[access.key.low >> 16] += 1;
  }
  ASSERT_GT(orders, 5'000);
  EXPECT_NEAR(lines / orders, 10, 0.2);
  EXPECT_NEAR(remote / lines, 0.01, 0.002);
  std::vector<double> counts;
  for (const auto& [item, count] : items) counts.push_back(count);
  std::ranges::sort(counts, std::greater());
  double hot = 0;
  for (std::size_t i = 0; i < counts.size() && i < TpccTrace::kItems / 10; ++i) hot += counts[i];
  // About half of all accesses go to a tenth of the items, far from an even share.
  EXPECT_GT(hot / lines, 0.35);
  EXPECT_LE(std::prev(items.end())->first, TpccTrace::kItems);
  EXPECT_GE(items.begin()->first, 1u);
}

}  // namespace
}  // namespace mariner::bench
