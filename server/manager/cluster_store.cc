#include "server/manager/cluster_store.h"

#include <fmt/format.h>

#include <set>

namespace mariner::manager {
namespace {

Error wrong(std::string message) { return {ErrorCode::kInvalidArgument, std::move(message)}; }

}  // namespace

Result<void> check_key(std::string_view key) {
  if (key.empty()) return wrong("a key of the cluster's store is empty");
  return check_prefix(key);
}

Result<void> check_prefix(std::string_view prefix) {
  if (prefix.size() <= kKeyBytesMax) return {};
  return wrong(fmt::format("a key of the cluster's store has {} bytes; {} is the most",
                           prefix.size(), kKeyBytesMax));
}

Result<void> check_transaction(const Transaction& transaction) {
  if (transaction.compares.size() > kComparesMax) {
    return wrong(fmt::format("a transaction has {} compares; {} is the most",
                             transaction.compares.size(), kComparesMax));
  }
  const std::size_t changes = transaction.puts.size() + transaction.deletes.size();
  if (changes == 0) return wrong("a transaction changes nothing");
  if (changes > kChangesMax) {
    return wrong(fmt::format("a transaction has {} changes; {} is the most", changes, kChangesMax));
  }
  std::size_t bytes = 0;
  for (const Compare& compare : transaction.compares) {
    if (auto checked = check_key(compare.key); !checked) return checked;
    const LeaseId* lease = std::get_if<LeaseId>(&compare.expected);
    if (lease != nullptr && lease->value == 0) return wrong("a compare names no lease");
    bytes += compare.key.size();
  }
  std::set<std::string_view> keys;
  for (const Put& put : transaction.puts) {
    if (auto checked = check_key(put.key); !checked) return checked;
    if (put.value.size() > kValueBytesMax) {
      return wrong(fmt::format("a value of the cluster's store has {} bytes; {} is the most",
                               put.value.size(), kValueBytesMax));
    }
    keys.insert(put.key);
    bytes += put.key.size() + put.value.size();
  }
  for (const std::string& key : transaction.deletes) {
    if (auto checked = check_key(key); !checked) return checked;
    keys.insert(key);
    bytes += key.size();
  }
  if (keys.size() != changes) return wrong("a transaction changes a key twice");
  if (bytes > kTransactionBytesMax) {
    return wrong(fmt::format("a transaction has {} bytes of keys and values; {} is the most", bytes,
                             kTransactionBytesMax));
  }
  return {};
}

Result<void> check_ttl(std::chrono::seconds ttl) {
  if (ttl >= std::chrono::seconds(1) && ttl <= kLeaseTtlMax) return {};
  return wrong(
      fmt::format("a lease of {} s; 1 to {} s are possible", ttl.count(), kLeaseTtlMax.count()));
}

}  // namespace mariner::manager
