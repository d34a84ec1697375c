#include "tests/server/manager/memory_store.h"

#include <algorithm>
#include <set>
#include <type_traits>
#include <utility>

#include "proto/check.h"

namespace mariner::manager {
namespace {

Error unavailable() { return {ErrorCode::kUnavailable, "the cluster has not answered in time"}; }

}  // namespace

Reading MemoryCluster::get(const std::string& key) const {
  const auto found = entries_.find(key);
  if (found == entries_.end()) return {revision_, std::nullopt};
  return {revision_, found->second};
}

Result<Listing> MemoryCluster::list(const std::string& prefix) const {
  Listing listing{revision_, {}};
  for (auto entry = entries_.lower_bound(prefix);
       entry != entries_.end() && entry->first.starts_with(prefix); ++entry) {
    listing.entries.push_back(entry->second);
  }
  if (listing.entries.size() > kListingEntriesMax) return Error{ErrorCode::kLimit, "too many"};
  return listing;
}

bool MemoryCluster::holds(const Compare& compare) const {
  const auto found = entries_.find(compare.key);
  if (const auto* lease = std::get_if<LeaseId>(&compare.expected); lease != nullptr) {
    return found != entries_.end() && found->second.lease == *lease;
  }
  const Revision present = found == entries_.end() ? Revision{} : found->second.revision;
  return present == std::get<Revision>(compare.expected);
}

Result<CommitAnswer> MemoryCluster::commit(const Transaction& transaction) {
  const auto& compares = transaction.compares;
  if (!std::all_of(compares.begin(), compares.end(), [this](auto& c) { return holds(c); })) {
    CommitAnswer answer{CommitOutcome::kNotApplied, revision_, {}, {}};
    std::set<std::string> told;
    for (const Compare& compare : compares) {
      const auto found = entries_.find(compare.key);
      if (found != entries_.end() && told.insert(compare.key).second) {
        answer.present.push_back(found->second);
      }
    }
    return answer;
  }
  for (const Put& put : transaction.puts) {
    if (put.lease.value != 0 && !leases_.contains(put.lease)) {
      return Error{ErrorCode::kNotFound, "there is no such lease"};
    }
  }
  const auto& deletes = transaction.deletes;
  const bool changes = !transaction.puts.empty() ||
                       std::any_of(deletes.begin(), deletes.end(),
                                   [this](auto& key) { return entries_.contains(key); });
  if (changes) {
    revision_ = revision_.next();
    for (const Put& put : transaction.puts) {
      entries_[put.key] = {put.key, put.value, revision_, put.lease};
      history_.push_back({false, entries_[put.key]});
    }
    for (const std::string& key : deletes) remove(key);
    changed();
  }
  return CommitAnswer{CommitOutcome::kApplied, revision_, {}, {}};
}

void MemoryCluster::remove(const std::string& key) {
  if (entries_.erase(key) != 0) history_.push_back({true, {key, {}, revision_, {}}});
}

Lease MemoryCluster::grant(std::chrono::seconds ttl) {
  const LeaseId id{++last_lease_};
  leases_[id] = {ttl, executor_.monotonic_time() + ttl};
  end_when_due(id);
  return {id, ttl, {}};
}

Result<Lease> MemoryCluster::keep_alive(LeaseId id) {
  const auto found = leases_.find(id);
  if (found == leases_.end()) return Error{ErrorCode::kNotFound, "the lease has ended"};
  found->second.end = executor_.monotonic_time() + found->second.ttl;
  end_when_due(id);
  return Lease{id, found->second.ttl, {}};
}

void MemoryCluster::end_when_due(LeaseId id) {
  executor_.after(leases_.at(id).ttl, [this, id] {
    const auto found = leases_.find(id);
    if (found != leases_.end() && found->second.end <= executor_.monotonic_time()) {
      CHECK(revoke(id));
    }
  });
}

Result<void> MemoryCluster::revoke(LeaseId id) {
  if (leases_.erase(id) == 0) return Error{ErrorCode::kNotFound, "the lease has ended"};
  std::vector<std::string> bound;
  for (const auto& [key, entry] : entries_) {
    if (entry.lease == id) bound.push_back(key);
  }
  if (bound.empty()) return {};
  revision_ = revision_.next();
  for (const std::string& key : bound) remove(key);
  changed();
  return {};
}

Result<std::vector<Change>> MemoryCluster::changes(const std::string& prefix, Revision from) const {
  if (from <= compacted_) return Error{ErrorCode::kOutsideWindow, "the changes are forgotten"};
  std::vector<Change> found;
  for (const Change& change : history_) {
    if (change.entry.revision >= from && change.entry.key.starts_with(prefix)) {
      found.push_back(change);
    }
  }
  return found;
}

void MemoryCluster::changed() {
  for (MemoryStore* client : clients_) client->tell_watches();
}

class MemoryStore::MemoryWatch final : public Watch {
 public:
  MemoryWatch(MemoryStore& store, std::string prefix, Revision from, Watcher& watcher)
      : store_(store), prefix_(std::move(prefix)), next_(from), watcher_(watcher) {
    store_.watches_.push_back(this);
    tell();
  }
  ~MemoryWatch() override { std::erase(store_.watches_, this); }

  // Later, if the cluster can be reached then.
  void tell() {
    if (std::exchange(telling_, true)) return;
    store_.executor_.after(store_.faults_.delay, [this, alive = std::weak_ptr(alive_)] {
      if (!alive.expired()) tell_now();
    });
  }

 private:
  void tell_now() {
    telling_ = false;
    if (lost_ || store_.faults_.partitioned) return;
    auto changes = store_.cluster_.changes(prefix_, next_);
    if (!changes) {
      lost_ = true;
      return watcher_.lost(changes.error());
    }
    next_ = std::max(next_, store_.cluster_.revision().next());
    if (!changes->empty()) watcher_.changed(std::move(*changes));
  }

  MemoryStore& store_;
  std::string prefix_;
  Revision next_;
  Watcher& watcher_;
  bool telling_ = false;
  bool lost_ = false;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

template <typename T>
struct MemoryStore::Call {
  UniqueFunction<Result<T>()> work;
  Answer<T> answer;
  bool repeatable = true;
  std::chrono::nanoseconds deadline{0};
  std::chrono::nanoseconds begun{0};  // of the attempt
  unsigned attempts = 0;              // one more once it has been answered
};

MemoryStore::MemoryStore(test::ManualExecutor& executor, MemoryCluster& cluster, Limits limits)
    : executor_(executor), cluster_(cluster), limits_(limits) {
  cluster_.clients_.push_back(this);
}

MemoryStore::~MemoryStore() {
  CHECK(watches_.empty());
  std::erase(cluster_.clients_, this);
}

void MemoryStore::set_faults(Faults faults) {
  faults_ = faults;
  tell_watches();
}

void MemoryStore::tell_watches() {
  for (MemoryWatch* watch : watches_) watch->tell();
}

template <typename T>
void MemoryStore::refuse(Answer<T> answer, Error error) {
  executor_.post([alive = std::weak_ptr(alive_), answer = std::move(answer),
                  error = std::move(error)]() mutable {
    if (!alive.expired()) answer(std::move(error));
  });
}

template <typename T>
void MemoryStore::run(UniqueFunction<Result<T>()> work, bool repeatable, Answer<T> answer) {
  attempt(std::make_shared<Call<T>>(Call<T>{std::move(work),
                                            std::move(answer),
                                            repeatable,
                                            executor_.monotonic_time() + limits_.timeout,
                                            {},
                                            0}));
}

template <typename T>
void MemoryStore::attempt(const std::shared_ptr<Call<T>>& call) {
  call->begun = executor_.monotonic_time();
  const unsigned number = ++call->attempts;
  const std::weak_ptr alive(alive_);
  // A request or answer that is late enough is as good as lost; but what arrives is carried out.
  const auto over = [alive, call, number] { return alive.expired() || call->attempts != number; };
  executor_.after(std::min(limits_.attempt_timeout, call->deadline - call->begun),
                  [this, over, call] {
                    if (over()) return;
                    if (call->repeatable && executor_.monotonic_time() < call->deadline) {
                      return attempt(call);
                    }
                    ++call->attempts;
                    call->answer(unavailable());
                  });
  executor_.after(faults_.delay, [this, alive, over, call] {
    const auto strikes = [](unsigned& left) { return left > 0 && left-- > 0; };
    if (alive.expired() || faults_.partitioned || strikes(faults_.lose_requests)) return;
    Result<T> result = call->work();
    if (strikes(faults_.lose_answers)) return;
    executor_.after(faults_.delay, [this, over, call, result = std::move(result)]() mutable {
      if (over() || faults_.partitioned) return;
      ++call->attempts;
      if constexpr (std::is_same_v<T, Lease>) {
        if (result) result->counted_from = call->begun;
      }
      call->answer(std::move(result));
    });
  });
}

void MemoryStore::get(std::string key, Answer<Reading> answer) {
  if (auto checked = check_key(key); !checked) return refuse(std::move(answer), checked.error());
  run<Reading>([this, key]() -> Result<Reading> { return cluster_.get(key); }, true,
               std::move(answer));
}

void MemoryStore::list(std::string prefix, Answer<Listing> answer) {
  if (auto checked = check_prefix(prefix); !checked) {
    return refuse(std::move(answer), checked.error());
  }
  run<Listing>([this, prefix] { return cluster_.list(prefix); }, true, std::move(answer));
}

void MemoryStore::commit(Transaction transaction, Answer<CommitAnswer> answer) {
  if (auto checked = check_transaction(transaction); !checked) {
    return refuse(std::move(answer), checked.error());
  }
  run<CommitAnswer>(
      [this, transaction = std::move(transaction)] { return cluster_.commit(transaction); }, false,
      [answer = std::move(answer)](Result<CommitAnswer> result) mutable {
        if (!result && result.error().code == ErrorCode::kUnavailable) {
          return answer(CommitAnswer{CommitOutcome::kUnknown, {}, {}, to_string(result.error())});
        }
        answer(std::move(result));
      });
}

void MemoryStore::grant_lease(std::chrono::seconds ttl, Answer<Lease> answer) {
  if (auto checked = check_ttl(ttl); !checked) return refuse(std::move(answer), checked.error());
  run<Lease>([this, ttl]() -> Result<Lease> { return cluster_.grant(ttl); }, true,
             std::move(answer));
}

void MemoryStore::keep_alive(LeaseId lease, Answer<Lease> answer) {
  run<Lease>([this, lease] { return cluster_.keep_alive(lease); }, true, std::move(answer));
}

void MemoryStore::revoke(LeaseId lease, Answer<void> answer) {
  run<void>([this, lease] { return cluster_.revoke(lease); }, true, std::move(answer));
}

Result<std::unique_ptr<Watch>> MemoryStore::watch(std::string prefix, Revision from,
                                                  Watcher& watcher) {
  if (auto checked = check_prefix(prefix); !checked) return checked.error();
  if (from.value == 0) return Error{ErrorCode::kInvalidArgument, "a watch from before all changes"};
  return std::unique_ptr<Watch>(
      std::make_unique<MemoryWatch>(*this, std::move(prefix), from, watcher));
}

}  // namespace mariner::manager
