// The small linearizable store that several nodes share: configuration, membership, epochs, leases.
//
// Keys and values are bytes. Every change of the store has a revision, greater than all before it;
// an entry remembers the revision of its newest change, and transactions compare with that. A lease
// is a promise of the store to keep what is bound to it for a time; when it ends, its entries are
// deleted in one change.
//
// Asynchronous and for one thread, the executor's: calls are made on it, answers and changes arrive
// on it, never from within a call. Each answer comes exactly once and within the store's deadline,
// unless the store is destroyed before: then it does not come any more. Whatever the servers behind
// the store send, the worst that it causes is an error.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "proto/error.h"
#include "proto/unique_function.h"
#include "proto/units.h"

namespace mariner::manager {

// A state of the store. 0: before the first change; as an entry's revision: there is no entry.
using Revision = Ordinal<struct RevisionTag>;
// 0: no lease.
using LeaseId = Ordinal<struct LeaseTag>;

// What a caller may ask for; more is kInvalidArgument, and nothing is sent.
inline constexpr std::size_t kKeyBytesMax = 1u << 10;
inline constexpr std::size_t kValueBytesMax = 256u << 10;
inline constexpr std::size_t kTransactionBytesMax = 1u << 20;  // keys and values together
inline constexpr std::size_t kComparesMax = 64;
inline constexpr std::size_t kChangesMax = 64;  // puts and deletes of one transaction together
inline constexpr std::chrono::seconds kLeaseTtlMax = std::chrono::hours(1);
// What a listing may hold; more is kLimit. (All that a cluster of 1024 volumes has, the most that a
// node can have: six entries of each, marks, views, nodes.)
inline constexpr std::size_t kListingEntriesMax = 16'384;
inline constexpr std::size_t kListingBytesMax = 512u << 20;  // keys and values together

struct Entry {
  std::string key;
  std::string value;
  Revision revision;  // of its newest change
  LeaseId lease;

  friend bool operator==(const Entry&, const Entry&) = default;
};

struct Reading {
  Revision revision;  // of the store
  std::optional<Entry> entry;
};

struct Listing {
  Revision revision;           // of the store; watching from the next one misses nothing
  std::vector<Entry> entries;  // by key
};

// Holds if the entry's revision is this one (0: there is none), or if the entry exists and is bound
// to this lease (not 0), which so exists, too.
struct Compare {
  std::string key;
  std::variant<Revision, LeaseId> expected;
};

struct Put {
  std::string key;
  std::string value;
  LeaseId lease{};  // 0: the entry stays until it is deleted
};

struct Transaction {
  std::vector<Compare> compares;     // none: applied in any case
  std::vector<Put> puts;             // no key twice in puts and deletes together
  std::vector<std::string> deletes;  // of what does not exist: no error, no change
};

enum class CommitOutcome {
  kApplied,     // durable on a majority of the store's servers
  kNotApplied,  // a compare does not hold: nothing was changed
  kUnknown,  // the answer was lost: it has been applied, or not, or it still will be. Read again,
             // and decide by what a revision or a value of one's own says
};

struct CommitAnswer {
  CommitOutcome outcome = CommitOutcome::kUnknown;
  Revision revision;           // of the store; with kUnknown 0
  std::vector<Entry> present;  // with kNotApplied: those of the compared keys that exist
  std::string why;             // with kUnknown: what went wrong, for the log
};

struct Lease {
  LeaseId id;
  std::chrono::seconds ttl{0};  // as granted: may be longer than was asked for
  // Of Executor::monotonic_time(), before the request was sent. The store ends the lease at
  // counted_from + ttl at the earliest, by its own clock; who takes rates of clocks into account
  // subtracts a margin.
  std::chrono::nanoseconds counted_from{0};

  // From here on the holder must not rely on it.
  [[nodiscard]] std::chrono::nanoseconds end() const { return counted_from + ttl; }
};

// One change of an entry. `entry.revision` is the change's; a deleted one has no value and no
// lease.
struct Change {
  bool deleted = false;
  Entry entry;
};

// Who is told of changes. Outlives the watch. May end the watch from within.
class Watcher {
 public:
  virtual ~Watcher() = default;
  // All changes of some revisions, whole and in order: none is told twice, none is left out.
  virtual void changed(std::vector<Change> changes) = 0;
  // What follows cannot be told without a gap. The watch has ended; list, and watch from behind the
  // listing. kOutsideWindow: the history was compacted. kLimit: one revision has more changes than
  // a watch holds. Any other: the servers say again and again what is not understood.
  virtual void lost(Error why) = 0;
};

// Ends when it is destroyed; before its store is.
class Watch {
 public:
  virtual ~Watch() = default;
};

class ClusterStore {
 public:
  template <typename T>
  using Answer = UniqueFunction<void(Result<T>)>;

  virtual ~ClusterStore() = default;

  // Both see every commit that was answered before the call. kUnavailable: no server answered in
  // time. kLimit: too many calls are under way, or there is more than a listing holds. kProtocol:
  // an answer was not understood.
  virtual void get(std::string key, Answer<Reading> answer) = 0;
  // Entries whose keys begin with `prefix`, which may be empty.
  virtual void list(std::string prefix, Answer<Listing> answer) = 0;

  // Atomic. An error means that it was not applied and never will be: kInvalidArgument (beyond the
  // bounds above), kNotFound (a lease to be bound to does not exist), kLimit, kNoSpace,
  // kUnavailable (it was not sent).
  virtual void commit(Transaction transaction, Answer<CommitAnswer> answer) = 0;

  // `ttl` is 1 s to kLeaseTtlMax. If the answer is lost, a lease may stay that nobody knows, until
  // it ends.
  virtual void grant_lease(std::chrono::seconds ttl, Answer<Lease> answer) = 0;
  // Begins the lease's time anew. kNotFound: it has ended. Any other error leaves it as it was, or
  // renewed, which the holder must not count on.
  virtual void keep_alive(LeaseId lease, Answer<Lease> answer) = 0;
  // Ends it, and deletes what is bound to it. kNotFound: it had ended before. kUnavailable: perhaps
  // it has ended, perhaps it will at the end of its time.
  virtual void revoke(LeaseId lease, Answer<void> answer) = 0;

  // Tells of every change from revision `from` on (not 0) of keys that begin with `prefix`. Goes on
  // through lost connections and servers. kLimit: too many watches.
  [[nodiscard]] virtual Result<std::unique_ptr<Watch>> watch(std::string prefix, Revision from,
                                                             Watcher& watcher) = 0;
};

// Whether what a caller gives is within the bounds above: kInvalidArgument otherwise. Every
// implementation asks these first.
[[nodiscard]] Result<void> check_key(std::string_view key);
[[nodiscard]] Result<void> check_prefix(std::string_view prefix);
[[nodiscard]] Result<void> check_transaction(const Transaction& transaction);
[[nodiscard]] Result<void> check_ttl(std::chrono::seconds ttl);

}  // namespace mariner::manager
