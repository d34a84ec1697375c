// What the index engine of a database under TPC-C is asked for: accesses to the primary keys of the
// nine tables, as the BOSC paper (dissertation 3.4.2) recorded them from MySQL.
//
// Made from a seed after the specification (revision 5.11), not recorded:
// - A transaction is New-Order (45 %), Payment (43), Order-Status (4), Delivery (4) or Stock-Level
//   (4; clause 5.2.3 gives the last four as minima), by a terminal of a random warehouse.
// - Customers, items and last names come from NURand (2.1.6) with A = 1023, 8191 and 255. 60 % of
//   Payments and Order-Statuses know the customer by name: the three of one name are read
//   and the middle one is used. 15 % of Payments are for a customer of another warehouse, 1 % of
//   order lines are supplied by one (2.4.1.5, 2.5.1.2), an order has 5 to 15 lines, 1 % of
//   New-Orders are rolled back: of those only the reads appear.
// - To change a row is to read it and to update it. Rows of a range are read one by one: the lines
//   of an order, and for Stock-Level those of the district's last 20 orders and then the stock of
//   their distinct items. Delivery takes the oldest new order of each district of its warehouse.
// - Initially there are the rows of clause 1.2.1 / 4.3.3: per warehouse 10 districts with 3,000
//   customers and as many orders, of which the last 900 are new, and 100,000 rows of stock.
// Deviations: which customer, lines and items an order has follows from its number by a hash, so
// that nothing need be remembered; there are no secondary indexes: a customer's last order is a
// random one of the district's last 3,000; history, which has no primary key, is numbered; think
// times are left out.
//
// A key: the table and the warehouse in `high`; in `low` the district in the top 8 bits, then 40
// bits for the order, customer or item, then 16 bits for the line.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <random>
#include <vector>

#include "index/leaf.h"

namespace mariner::bench {

class TpccTrace {
 public:
  enum class Table : std::uint8_t {
    kWarehouse,
    kDistrict,
    kCustomer,
    kHistory,
    kNewOrder,
    kOrder,
    kOrderLine,
    kItem,
    kStock,
  };
  enum class Transaction : std::uint8_t {
    kNewOrder,
    kPayment,
    kOrderStatus,
    kDelivery,
    kStockLevel
  };
  enum class Kind : std::uint8_t { kRead, kInsert, kUpdate, kDelete };
  struct Access {
    Kind kind = Kind::kRead;
    index::IndexKey key;
    friend bool operator==(const Access&, const Access&) = default;
  };

  static constexpr std::uint64_t kDistricts = 10;     // of a warehouse
  static constexpr std::uint64_t kCustomers = 3'000;  // of a district
  static constexpr std::uint64_t kItems = 100'000;
  static constexpr std::uint64_t kFirstNewOrder = 2'101;

  struct Options {
    std::uint64_t warehouses = 1;
    std::uint64_t seed = 1;
  };
  explicit TpccTrace(const Options& options);

  [[nodiscard]] static index::IndexKey key_of(Table table, std::uint64_t warehouse,
                                              std::uint64_t district, std::uint64_t row,
                                              std::uint64_t line);
  [[nodiscard]] static Table table_of(index::IndexKey key) {
    return static_cast<Table>(key.high >> 56);
  }

  // The rows that are there before the first access, in the order of their keys.
  void initial_rows(const std::function<void(index::IndexKey)>& visit) const;
  [[nodiscard]] Access next();

  // Of the transaction that the last access belongs to.
  [[nodiscard]] Transaction transaction() const { return transaction_; }
  [[nodiscard]] std::uint64_t transactions() const { return transactions_; }

 private:
  struct District {
    std::uint64_t next_order = kCustomers + 1;
    std::uint64_t oldest_new = kFirstNewOrder;
    std::uint64_t number = 0;  // of the district in its warehouse, from 1
    std::uint64_t warehouse = 0;
  };
  // An order's number that says all of it.
  struct Order {
    std::uint64_t warehouse = 0;
    std::uint64_t district = 0;
    std::uint64_t number = 0;
  };

  void new_order();
  void payment();
  void order_status();
  void delivery();
  void stock_level();

  [[nodiscard]] std::uint64_t below(std::uint64_t end);
  [[nodiscard]] std::uint64_t random_customer();
  [[nodiscard]] std::uint64_t other_warehouse(std::uint64_t warehouse);
  // Reads the customer, or those of a random name; returns the one that is meant.
  std::uint64_t look_for_customer(std::uint64_t warehouse, std::uint64_t district);
  [[nodiscard]] District& random_district();
  [[nodiscard]] std::uint64_t hash_of(const Order& order, std::uint64_t what) const;
  [[nodiscard]] std::uint64_t lines_of(const Order& order) const;
  [[nodiscard]] std::uint64_t customer_of(const Order& order) const;
  [[nodiscard]] std::uint64_t item_of(const Order& order, std::uint64_t line) const;

  void read(index::IndexKey key) { accesses_.push_back({Kind::kRead, key}); }
  void insert(index::IndexKey key) { accesses_.push_back({Kind::kInsert, key}); }
  void change(index::IndexKey key) {
    read(key);
    accesses_.push_back({Kind::kUpdate, key});
  }

  const Options options_;
  std::mt19937_64 random_;
  std::vector<District> districts_;
  std::uint64_t next_history_;
  std::deque<Access> accesses_;  // of the transaction, still to come
  Transaction transaction_ = Transaction::kNewOrder;
  std::uint64_t transactions_ = 0;
};

}  // namespace mariner::bench
