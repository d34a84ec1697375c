#include "server/manager/etcd_calls.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "proto/check.h"
#include "server/manager/etcd_connection.h"

namespace mariner::manager {

struct EtcdCalls::Active {
  EtcdCall call;
  std::chrono::nanoseconds deadline;
  Backoff backoff;
  std::shared_ptr<EtcdConnection> connection;  // of the attempt that is under way
  EtcdAttempt attempt{};
};

EtcdCalls::EtcdCalls(boost::asio::io_context& io, Executor& executor, EtcdMembers& members,
                     EtcdCallLimits limits)
    : io_(io),
      executor_(executor),
      members_(members),
      limits_(limits),
      seed_(limits.backoff.seed) {}

EtcdCalls::~EtcdCalls() { CHECK(stopped_ && active_.empty()); }

void EtcdCalls::run(EtcdCall call) {
  CHECK(!stopped_ && !call.requests.empty());
  BackoffTimes times = limits_.backoff;
  times.seed = ++seed_;
  auto active = std::make_shared<Active>(
      Active{std::move(call), executor_.monotonic_time() + limits_.timeout, Backoff(times), {}});
  const bool too_many = active_.size() >= limits_.calls_max;
  active_.insert(active);
  executor_.post([self = shared_from_this(), active = std::move(active), too_many] {
    if (self->stopped_) return;
    if (!too_many) return self->attempt(active);
    self->fail(active,
               {ErrorCode::kLimit, fmt::format("{} calls of the cluster's store are under way",
                                               self->limits_.calls_max)},
               false);
  });
}

void EtcdCalls::stop() {
  stopped_ = true;
  for (const Handle& active : std::exchange(active_, {})) {
    if (active->connection != nullptr) active->connection->close();
  }
  for (auto& [endpoint, connections] : std::exchange(idle_, {})) {
    for (auto& connection : connections) connection->close();
  }
}

std::shared_ptr<EtcdConnection> EtcdCalls::connection() {
  auto& idle = idle_[to_string(members_.preferred())];
  while (!idle.empty()) {
    auto connection = std::move(idle.back());
    idle.pop_back();
    if (connection->reusable()) return connection;
    connection->close();
  }
  return std::make_shared<EtcdConnection>(io_, members_.preferred());
}

std::chrono::milliseconds EtcdCalls::left(const Active& active) const {
  return std::chrono::duration_cast<std::chrono::milliseconds>(active.deadline -
                                                               executor_.monotonic_time());
}

void EtcdCalls::attempt(const Handle& active) {
  active->connection = connection();
  active->attempt = {executor_.monotonic_time(), {}};
  request(active);
}

void EtcdCalls::request(const Handle& active) {
  const auto all = std::max(left(*active), std::chrono::milliseconds(1));
  const auto some = std::min(all, limits_.attempt_timeout);
  const EtcdCall& call = active->call;
  active->connection->exchange(
      call.requests[active->attempt.answers.size()],
      {.connect = some, .answer = call.repeatable ? some : all},
      [self = shared_from_this(), active](EtcdExchange exchange) {
        if (self->stopped_) return;
        const bool certain = active->call.repeatable || !exchange.sent;
        if (!exchange.answer) {
          self->members_.failed(active->connection->endpoint());
          active->connection = nullptr;
          if (!certain) return self->fail(active, exchange.answer.error(), true);
          return self->retry(active, exchange.answer.error());
        }
        if (exchange.answer->status == 200) {
          active->attempt.answers.push_back(std::move(exchange.answer->body));
          return self->answered(active);
        }
        EtcdFailure failure = parse_failure(exchange.answer->status, exchange.answer->body);
        if (!failure.refused) self->members_.failed(active->connection->endpoint());
        self->release(*active);
        if (failure.refused || !certain) {
          return self->fail(active, std::move(failure.error), !failure.refused);
        }
        self->retry(active, std::move(failure.error));
      });
}

void EtcdCalls::answered(const Handle& active) {
  if (active->attempt.answers.size() < active->call.requests.size()) return request(active);
  release(*active);
  Result<void> taken = active->call.take(active->attempt);
  if (stopped_) return;
  if (taken) {
    active_.erase(active);
    return;
  }
  CHECK(active->call.repeatable);
  retry(active, taken.error());
}

void EtcdCalls::release(Active& active) {
  auto connection = std::exchange(active.connection, nullptr);
  auto& idle = idle_[to_string(connection->endpoint())];
  if (idle.size() < kIdleMax && connection->reusable()) {
    idle.push_back(std::move(connection));
  } else {
    connection->close();
  }
}

void EtcdCalls::retry(const Handle& active, Error error) {
  const std::chrono::nanoseconds wait = active->backoff.next();
  if (wait >= left(*active)) return fail(active, std::move(error), false);
  executor_.after(wait, [self = shared_from_this(), active] {
    if (!self->stopped_) self->attempt(active);
  });
}

void EtcdCalls::fail(const Handle& active, Error error, bool unknown) {
  active_.erase(active);
  active->call.fail(std::move(error), unknown);
}

}  // namespace mariner::manager
