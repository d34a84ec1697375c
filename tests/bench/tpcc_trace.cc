#include "tests/bench/tpcc_trace.h"

#include <algorithm>
#include <set>

#include "proto/check.h"
#include "tests/bench/index_workload.h"

namespace mariner::bench {

using index::IndexKey;

namespace {

constexpr std::uint64_t kLinesMin = 5;
constexpr std::uint64_t kLinesMax = 15;
constexpr std::uint64_t kNames = 1'000;
constexpr std::uint64_t kStockLevelOrders = 20;
// The run's constants C of NURand (2.1.6.1).
constexpr std::uint64_t kCustomerC = 259;
constexpr std::uint64_t kItemC = 7'911;
constexpr std::uint64_t kNameC = 223;

struct NuRand {
  std::uint64_t a = 0;
  std::uint64_t c = 0;
  std::uint64_t first = 0;
  std::uint64_t count = 0;

  [[nodiscard]] std::uint64_t operator()(std::uint64_t random, std::uint64_t other) const {
    return ((scaled(random, a + 1) | (first + scaled(other, count))) + c) % count + first;
  }
};
constexpr NuRand kRandomCustomer{1023, kCustomerC, 1, TpccTrace::kCustomers};
constexpr NuRand kRandomItem{8191, kItemC, 1, TpccTrace::kItems};
constexpr NuRand kRandomName{255, kNameC, 0, kNames};

}  // namespace

TpccTrace::TpccTrace(const Options& options)
    : options_(options),
      random_(options.seed),
      next_history_(options.warehouses * kDistricts * kCustomers + 1) {
  CHECK(options.warehouses > 0 && options.warehouses < std::uint64_t{1} << 32);
  for (std::uint64_t warehouse = 1; warehouse <= options.warehouses; ++warehouse) {
    for (std::uint64_t number = 1; number <= kDistricts; ++number) {
      districts_.push_back({.number = number, .warehouse = warehouse});
    }
  }
}

IndexKey TpccTrace::key_of(Table table, std::uint64_t warehouse, std::uint64_t district,
                           std::uint64_t row, std::uint64_t line) {
  return {static_cast<std::uint64_t>(table) << 56 | warehouse, district << 56 | row << 16 | line};
}

void TpccTrace::initial_rows(const std::function<void(IndexKey)>& visit) const {
  const auto each_warehouse = [&](auto rows_of) {
    for (std::uint64_t warehouse = 1; warehouse <= options_.warehouses; ++warehouse) {
      rows_of(warehouse);
    }
  };
  const auto each_district = [&](auto rows_of) {
    each_warehouse([&](std::uint64_t warehouse) {
      for (std::uint64_t district = 1; district <= kDistricts; ++district) {
        rows_of(warehouse, district);
      }
    });
  };
  const auto numbered = [&](Table table, std::uint64_t first, std::uint64_t last) {
    each_district([&](std::uint64_t warehouse, std::uint64_t district) {
      for (std::uint64_t row = first; row <= last; ++row) {
        visit(key_of(table, warehouse, district, row, 0));
      }
    });
  };
  each_warehouse([&](std::uint64_t w) { visit(key_of(Table::kWarehouse, w, 0, 0, 0)); });
  each_district(
      [&](std::uint64_t w, std::uint64_t d) { visit(key_of(Table::kDistrict, w, d, 0, 0)); });
  numbered(Table::kCustomer, 1, kCustomers);
  for (std::uint64_t row = 1; row <= options_.warehouses * kDistricts * kCustomers; ++row) {
    visit(key_of(Table::kHistory, 0, 0, row, 0));
  }
  numbered(Table::kNewOrder, kFirstNewOrder, kCustomers);
  numbered(Table::kOrder, 1, kCustomers);
  each_district([&](std::uint64_t w, std::uint64_t d) {
    for (std::uint64_t order = 1; order <= kCustomers; ++order) {
      for (std::uint64_t line = 1; line <= lines_of({w, d, order}); ++line) {
        visit(key_of(Table::kOrderLine, w, d, order, line));
      }
    }
  });
  for (std::uint64_t item = 1; item <= kItems; ++item) visit(key_of(Table::kItem, 0, 0, item, 0));
  each_warehouse([&](std::uint64_t w) {
    for (std::uint64_t item = 1; item <= kItems; ++item) {
      visit(key_of(Table::kStock, w, 0, item, 0));
    }
  });
}

TpccTrace::Access TpccTrace::next() {
  while (accesses_.empty()) {  // a Delivery may find nothing to deliver
    const std::uint64_t percent = below(100);
    ++transactions_;
    if (percent < 45) {
      transaction_ = Transaction::kNewOrder;
      new_order();
    } else if (percent < 88) {
      transaction_ = Transaction::kPayment;
      payment();
    } else if (percent < 92) {
      transaction_ = Transaction::kOrderStatus;
      order_status();
    } else if (percent < 96) {
      transaction_ = Transaction::kDelivery;
      delivery();
    } else {
      transaction_ = Transaction::kStockLevel;
      stock_level();
    }
  }
  const Access access = accesses_.front();
  accesses_.pop_front();
  return access;
}

void TpccTrace::new_order() {
  District& home = random_district();
  const Order order{home.warehouse, home.number, home.next_order};
  const bool rolled_back = below(100) == 0;
  const auto changes = [&](IndexKey key) { rolled_back ? read(key) : change(key); };
  const auto inserts = [&](IndexKey key) {
    if (!rolled_back) insert(key);
  };
  read(key_of(Table::kWarehouse, home.warehouse, 0, 0, 0));
  changes(key_of(Table::kDistrict, home.warehouse, home.number, 0, 0));
  read(key_of(Table::kCustomer, home.warehouse, home.number, customer_of(order), 0));
  inserts(key_of(Table::kOrder, home.warehouse, home.number, order.number, 0));
  inserts(key_of(Table::kNewOrder, home.warehouse, home.number, order.number, 0));
  for (std::uint64_t line = 1; line <= lines_of(order); ++line) {
    const std::uint64_t item = item_of(order, line);
    const bool remote = below(100) == 0;
    const std::uint64_t supplier = remote ? other_warehouse(home.warehouse) : home.warehouse;
    read(key_of(Table::kItem, 0, 0, item, 0));
    changes(key_of(Table::kStock, supplier, 0, item, 0));
    inserts(key_of(Table::kOrderLine, home.warehouse, home.number, order.number, line));
  }
  if (!rolled_back) ++home.next_order;
}

void TpccTrace::payment() {
  const District& home = random_district();
  change(key_of(Table::kWarehouse, home.warehouse, 0, 0, 0));
  change(key_of(Table::kDistrict, home.warehouse, home.number, 0, 0));
  const bool remote = below(100) < 15;
  const std::uint64_t warehouse = remote ? other_warehouse(home.warehouse) : home.warehouse;
  const std::uint64_t district = remote ? below(kDistricts) + 1 : home.number;
  const std::uint64_t customer = look_for_customer(warehouse, district);
  accesses_.push_back({Kind::kUpdate, key_of(Table::kCustomer, warehouse, district, customer, 0)});
  insert(key_of(Table::kHistory, 0, 0, next_history_++, 0));
}

void TpccTrace::order_status() {
  const District& home = random_district();
  look_for_customer(home.warehouse, home.number);
  const std::uint64_t number = home.next_order - 1 - below(kCustomers);
  const Order order{home.warehouse, home.number, number};
  read(key_of(Table::kOrder, home.warehouse, home.number, number, 0));
  for (std::uint64_t line = 1; line <= lines_of(order); ++line) {
    read(key_of(Table::kOrderLine, home.warehouse, home.number, number, line));
  }
}

void TpccTrace::delivery() {
  const std::uint64_t first = below(options_.warehouses) * kDistricts;
  for (std::uint64_t i = first; i < first + kDistricts; ++i) {
    District& home = districts_[i];
    if (home.oldest_new == home.next_order) continue;
    const Order order{home.warehouse, home.number, home.oldest_new++};
    const auto key = [&](Table table, std::uint64_t row, std::uint64_t line) {
      return key_of(table, home.warehouse, home.number, row, line);
    };
    read(key(Table::kNewOrder, order.number, 0));
    accesses_.push_back({Kind::kDelete, key(Table::kNewOrder, order.number, 0)});
    change(key(Table::kOrder, order.number, 0));
    for (std::uint64_t line = 1; line <= lines_of(order); ++line) {
      change(key(Table::kOrderLine, order.number, line));
    }
    change(key(Table::kCustomer, customer_of(order), 0));
  }
}

void TpccTrace::stock_level() {
  const District& home = random_district();
  read(key_of(Table::kDistrict, home.warehouse, home.number, 0, 0));
  std::set<std::uint64_t> items;
  for (std::uint64_t number = home.next_order - kStockLevelOrders; number < home.next_order;
       ++number) {
    const Order order{home.warehouse, home.number, number};
    for (std::uint64_t line = 1; line <= lines_of(order); ++line) {
      read(key_of(Table::kOrderLine, home.warehouse, home.number, number, line));
      items.insert(item_of(order, line));
    }
  }
  for (const std::uint64_t item : items) read(key_of(Table::kStock, home.warehouse, 0, item, 0));
}

std::uint64_t TpccTrace::below(std::uint64_t end) { return scaled(random_(), end); }

std::uint64_t TpccTrace::random_customer() {
  const std::uint64_t random = random_();
  return kRandomCustomer(random, random_());
}

std::uint64_t TpccTrace::other_warehouse(std::uint64_t warehouse) {
  if (options_.warehouses == 1) return warehouse;
  const std::uint64_t other = below(options_.warehouses - 1) + 1;
  return other < warehouse ? other : other + 1;
}

// Name n is that of customer n + 1 and, in place of a look at an index of names, of one in each of
// the other two thousands.
std::uint64_t TpccTrace::look_for_customer(std::uint64_t warehouse, std::uint64_t district) {
  if (below(100) >= 60) {
    const std::uint64_t customer = random_customer();
    read(key_of(Table::kCustomer, warehouse, district, customer, 0));
    return customer;
  }
  const std::uint64_t random = random_();
  const std::uint64_t name = kRandomName(random, random_());
  std::uint64_t meant = 0;
  for (std::uint64_t thousand = 0; thousand < kCustomers / kNames; ++thousand) {
    const Order place{warehouse, district, name};
    const std::uint64_t in_it =
        thousand == 0 ? name : scaled(hash_of(place, kLinesMax + thousand + 2), kNames);
    const std::uint64_t customer = thousand * kNames + in_it + 1;
    read(key_of(Table::kCustomer, warehouse, district, customer, 0));
    if (thousand == 1) meant = customer;
  }
  return meant;
}

TpccTrace::District& TpccTrace::random_district() { return districts_[below(districts_.size())]; }

std::uint64_t TpccTrace::hash_of(const Order& order, std::uint64_t what) const {
  return mixed(mixed(order.warehouse << 8 | order.district) ^ mixed(order.number << 8 | what));
}

std::uint64_t TpccTrace::lines_of(const Order& order) const {
  return kLinesMin + scaled(hash_of(order, 0), kLinesMax - kLinesMin + 1);
}

std::uint64_t TpccTrace::customer_of(const Order& order) const {
  const std::uint64_t hash = hash_of(order, 1);
  return kRandomCustomer(hash, mixed(hash));
}

std::uint64_t TpccTrace::item_of(const Order& order, std::uint64_t line) const {
  const std::uint64_t hash = hash_of(order, line + 1);
  return kRandomItem(hash, mixed(hash));
}

}  // namespace mariner::bench
