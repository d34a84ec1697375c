// A watch of etcd's store that goes on through lost connections.
//
// WatchCursor is the logic, without a socket: which changes have been told, and from where to go
// on. EtcdWatch keeps one connection at a time and gives its lines to the cursor.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "proto/backoff.h"
#include "proto/endpoint.h"
#include "proto/executor.h"
#include "server/manager/cluster_store.h"
#include "server/manager/etcd_json.h"

namespace boost::asio {
class io_context;
}

namespace mariner::manager {

class EtcdConnection;
class EtcdMembers;

// What a watch holds of one revision until all of it has come.
inline constexpr std::size_t kHeldChangesMax = 16384;
inline constexpr std::size_t kHeldBytesMax = 16u << 20;
// So often in a row a member may say what is not understood before the watch is given up.
inline constexpr int kMisunderstoodMax = 8;

// Invariant: every change of a revision below next() has been told, none of another.
class WatchCursor {
 public:
  explicit WatchCursor(Revision from) : next_(from) {}

  // From where to watch after the connection has been lost.
  [[nodiscard]] Revision next() const { return next_; }
  // Forgets what has come of a revision that is not whole: it comes again.
  void reconnected() {
    held_.clear();
    held_bytes_ = 0;
  }

  // What to tell now; may be nothing. kOutsideWindow: the history that would be next has been
  // compacted. kLimit: a revision has more changes than is held. kUnavailable: the member has ended
  // the watch.
  [[nodiscard]] Result<std::vector<Change>> take(WatchLine line);

 private:
  Revision next_;
  std::vector<Change> held_;  // of one revision, of which more may come
  std::size_t held_bytes_ = 0;
};

struct EtcdWatchOptions {
  std::string prefix;
  Revision from;
  std::chrono::milliseconds answer_timeout;
  // After so long without a word the watch is begun anew at another member: a process that hangs
  // keeps its connections, and says nothing.
  std::chrono::milliseconds silence;
};

class EtcdWatch final : public std::enable_shared_from_this<EtcdWatch> {
 public:
  // `members` and `executor` outlive the watch.
  EtcdWatch(boost::asio::io_context& io, Executor& executor, EtcdMembers& members,
            EtcdWatchOptions options, BackoffTimes times, Watcher& watcher);

  // At most once.
  void start() { connect(); }
  // The watcher is not called any more.
  void stop();

 private:
  void connect();
  [[nodiscard]] bool take_line(std::string_view line);
  void ended(Result<void> understood);
  void lose(Error why);

  boost::asio::io_context& io_;
  Executor& executor_;
  EtcdMembers& members_;
  EtcdWatchOptions options_;
  Backoff backoff_;
  Watcher* watcher_;  // null: stopped, or lost
  WatchCursor cursor_;
  Endpoint endpoint_;
  std::shared_ptr<EtcdConnection> connection_;
  Result<void> understood_{};  // what has come over this connection
  int misunderstood_ = 0;      // connections in a row
};

}  // namespace mariner::manager
