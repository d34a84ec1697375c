// Calls of etcd's members: one after another until one answers, within a deadline.
//
// What may be repeated is; what may not (a transaction) is given up as "unknown" as soon as a byte
// of it was sent and no answer says that it was refused. Owner's thread only.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "proto/backoff.h"
#include "proto/executor.h"
#include "server/manager/etcd_json.h"
#include "server/manager/etcd_members.h"

namespace boost::asio {
class io_context;
}

namespace mariner::manager {

class EtcdConnection;

struct EtcdAttempt {
  std::chrono::nanoseconds begun{0};  // of Executor::monotonic_time(), before anything was sent
  std::vector<std::string> answers;   // one for each request, with HTTP status 200
};

struct EtcdCall {
  std::vector<EtcdRequest> requests;  // one after another on one connection
  bool repeatable = true;
  // Reads an attempt's answers. kUnavailable: they are no use, and the call is to be repeated (only
  // where it is repeatable); otherwise the call has ended, and was answered from within.
  UniqueFunction<Result<void>(const EtcdAttempt&)> take;
  // The call has ended without an answer. `unknown`: it may have been carried out.
  UniqueFunction<void(Error, bool unknown)> fail;
};

struct EtcdCallLimits {
  std::chrono::milliseconds timeout{5000};          // of a call in all
  std::chrono::milliseconds attempt_timeout{1500};  // of one request, where it may be repeated
  std::size_t calls_max = 64;                       // under way at once
  BackoffTimes backoff{};
};

class EtcdCalls final : public std::enable_shared_from_this<EtcdCalls> {
 public:
  // `io`, `executor` and `members` live until stop(), and until what they have been given by then
  // has run or was dropped.
  EtcdCalls(boost::asio::io_context& io, Executor& executor, EtcdMembers& members,
            EtcdCallLimits limits);
  ~EtcdCalls();

  // Ends by take() or fail(), once, later. Beyond calls_max: fail() with kLimit.
  void run(EtcdCall call);
  // Nothing is called any more.
  void stop();

  [[nodiscard]] std::size_t under_way() const { return active_.size(); }

 private:
  struct Active;
  using Handle = std::shared_ptr<Active>;
  static constexpr std::size_t kIdleMax = 4;  // of each member

  [[nodiscard]] std::shared_ptr<EtcdConnection> connection();
  [[nodiscard]] std::chrono::milliseconds left(const Active& active) const;
  void attempt(const Handle& active);
  void request(const Handle& active);
  void answered(const Handle& active);
  void release(Active& active);
  void retry(const Handle& active, Error error);
  void fail(const Handle& active, Error error, bool unknown);

  boost::asio::io_context& io_;
  Executor& executor_;
  EtcdMembers& members_;
  EtcdCallLimits limits_;
  std::set<Handle> active_;
  std::map<std::string, std::vector<std::shared_ptr<EtcdConnection>>> idle_;  // by endpoint
  std::uint64_t seed_;
  bool stopped_ = false;
};

}  // namespace mariner::manager
