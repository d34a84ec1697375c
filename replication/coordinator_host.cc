#include "replication/coordinator_host.h"

#include <utility>

namespace mariner::replication {
namespace {

constexpr auto kTick = std::chrono::milliseconds(100);
// How long a write that is settled waits for the next one, which tells those who are in no hurry:
// a message of its own for each costs a lone writer's coordinator and mirror as much as a write.
constexpr auto kCarriedWithin = std::chrono::milliseconds(2);

Error logger_away() {
  return {
      ErrorCode::kUnavailable,
      "the volume's logger is away: its history can be asked, marked and rolled back when it is "
      "back"};
}

Error over() {
  return {ErrorCode::kUnavailable,
          "this node does not coordinate the volume; what became of the write, others decide"};
}

}  // namespace

CoordinatorHost::CoordinatorHost(const CoordinatorRole::Start& start,
                                 const CoordinatorRole::Options& options, Executor& executor,
                                 Transport& transport, Events events)
    : executor_(executor),
      transport_(transport),
      events_(std::move(events)),
      role_(start, options) {
  tick_later();
}

CoordinatorHost::~CoordinatorHost() {
  *alive_ = false;
  end();
}

void CoordinatorHost::logger_connected(NodeId node) {
  CoordinatorRole::Actions actions;
  role_.logger_connected(node, actions);
  run(actions);
}

void CoordinatorHost::logger_disconnected(NodeId node) {
  CoordinatorRole::Actions actions;
  role_.logger_disconnected(node, executor_.wall_time(), actions);
  run(actions);
}

void CoordinatorHost::storage_connected(NodeId node) {
  CoordinatorRole::Actions actions;
  role_.storage_connected(node, actions);
  run(actions);
}

void CoordinatorHost::storage_disconnected(NodeId node) {
  CoordinatorRole::Actions actions;
  role_.storage_disconnected(node, executor_.wall_time(), actions);
  run(actions);
}

void CoordinatorHost::received(NodeId node, FromLogger message) {
  CoordinatorRole::Actions actions;
  role_.received(node, std::move(message), executor_.wall_time(), actions);
  run(actions);
}

void CoordinatorHost::received(NodeId node, const FromStorage& message) {
  CoordinatorRole::Actions actions;
  role_.received(node, message, executor_.wall_time(), actions);
  run(actions);
}

void CoordinatorHost::submit(WriteRequest request, WriteDone done) {
  if (!ready()) return done(over());
  if (request.kind == WriteKind::kRollback && role_.away()) return done(logger_away());
  const std::uint64_t token = ++last_token_;
  writes_[token] = std::move(done);
  CoordinatorRole::Actions actions;
  role_.submit({token}, std::move(request), executor_.wall_time(), actions);
  run(actions);
}

void CoordinatorHost::settle(SettleDone done) {
  if (!ready()) return done(role_.settled());
  const std::uint64_t token = ++last_token_;
  settlers_[token] = std::move(done);
  CoordinatorRole::Actions actions;
  role_.settle({token}, actions);
  run(actions);
}

void CoordinatorHost::settle_moment(VersionTime time, MomentDone done) {
  if (!ready()) return done(over());
  if (role_.away()) return done(logger_away());
  const std::uint64_t token = ++last_token_;
  moments_[token] = std::move(done);
  CoordinatorRole::Actions actions;
  role_.settle_moment({token}, time, actions);
  run(actions);
}

void CoordinatorHost::end() {
  if (std::exchange(ended_, true)) return;
  queue_.clear();
  for (auto& [token, done] : std::exchange(writes_, {})) done(over());
  for (auto& [token, done] : std::exchange(moments_, {})) done(over());
  for (auto& [token, done] : std::exchange(settlers_, {})) done(role_.settled());
}

std::chrono::nanoseconds CoordinatorHost::lag(NodeId node) const {
  return settled_times_.behind(role_.durable_at(node), executor_.monotonic_time());
}

void CoordinatorHost::run(CoordinatorRole::Actions& actions) {
  if (ended_) return;
  flush_later();
  queue_.run(actions, [this, alive = alive_](CoordinatorRole::Action& action) {
    carry_out(action);
    return *alive;
  });
}

void CoordinatorHost::carry_out(CoordinatorRole::Action& action) {
  if (auto* log = std::get_if<CoordinatorRole::ToLog>(&action)) {
    transport_.send_log(log->node, log->message);
  } else if (auto* store = std::get_if<CoordinatorRole::ToStore>(&action)) {
    transport_.send_storage(store->node, store->message);
  } else if (auto* disconnect = std::get_if<CoordinatorRole::Disconnect>(&action)) {
    transport_.reopen_storage(disconnect->node, disconnect->why);
  } else if (auto* logger = std::get_if<CoordinatorRole::DisconnectLogger>(&action)) {
    transport_.reopen_log(logger->node, logger->why);
  } else if (auto* wanted = std::get_if<CoordinatorRole::FetchLogged>(&action)) {
    transport_.fetch(wanted->from, wanted->to,
                     [this, alive = alive_](const Result<LogSource::Portion>& portion) {
                       if (!*alive) return;
                       CoordinatorRole::Actions more;
                       role_.fetched(portion, more);
                       run(more);
                     });
  } else if (auto* change = std::get_if<CoordinatorRole::ChangeLogs>(&action)) {
    if (events_.change_logs) events_.change_logs(change->away);
  } else if (auto* waits = std::get_if<CoordinatorRole::WritesWait>(&action)) {
    if (events_.writes_wait) events_.writes_wait(waits->why);
  } else if (auto* given_up = std::get_if<CoordinatorRole::GivenUp>(&action)) {
    if (events_.given_up) events_.given_up(*given_up);
  } else if (auto* failed = std::get_if<CoordinatorRole::ImageFailed>(&action)) {
    if (events_.image_failed) events_.image_failed(*failed);
  } else if (auto* hand_over = std::get_if<CoordinatorRole::HandOver>(&action)) {
    if (events_.hand_over) events_.hand_over(hand_over->to);
  } else if (std::holds_alternative<CoordinatorRole::Ready>(action)) {
    if (events_.ready) events_.ready();
  } else if (auto* superseded = std::get_if<CoordinatorRole::Superseded>(&action)) {
    const Epoch by = superseded->by;
    end();
    if (events_.superseded) events_.superseded(by);
  } else if (auto* answer = std::get_if<Answer>(&action)) {
    auto done = writes_.extract(answer->token.value);
    if (done.empty()) return;
    if (answer->result && events_.may_answer && !events_.may_answer()) {
      return done.mapped()(over());
    }
    done.mapped()(std::move(answer->result));
  } else {
    const auto& settled = std::get<Settled>(action);
    if (auto done = settlers_.extract(settled.token.value); !done.empty()) {
      done.mapped()(settled.sequence);
    } else if (auto moment = moments_.extract(settled.token.value); !moment.empty()) {
      moment.mapped()(settled.sequence);
    }
  }
}

void CoordinatorHost::flush_later() {
  if (std::exchange(flushing_, true)) return;
  executor_.after(kCarriedWithin, [this, alive = alive_] {
    if (!*alive) return;
    flushing_ = false;
    CoordinatorRole::Actions actions;
    role_.flush(actions);
    if (!actions.empty()) run(actions);
  });
}

void CoordinatorHost::tick_later() {
  executor_.after(kTick, [this, alive = alive_] {
    if (!*alive || ended_) return;
    CoordinatorRole::Actions actions;
    const std::chrono::nanoseconds now = executor_.monotonic_time();
    role_.tick(executor_.wall_time(), now, actions);
    if (role_.ready()) settled_times_.note(role_.settled(), now);
    run(actions);
    if (*alive) tick_later();
  });
}

}  // namespace mariner::replication
