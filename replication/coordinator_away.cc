// The coordinator without its logger: how it goes on when that is away, and brings it back.
#include <algorithm>
#include <string>
#include <utility>

#include "replication/coordinator_role.h"

namespace mariner::replication {
namespace {

constexpr auto kHardenAgain = std::chrono::seconds(1);
constexpr auto kNearerWithin = std::chrono::seconds(10);

}  // namespace

// ---- the logger goes

void CoordinatorRole::watch_logger(std::chrono::nanoseconds monotonic, Actions& out) {
  const auto& [logger, log] = *logs_.begin();
  // (Who stores nothing has no journal, from which the logger would be brought up to date.)
  if (options_.logger_patience.count() == 0 || !candidates_.empty() || storages_.size() != 2 ||
      storages_.contains(logger)) {
    return;
  }
  // (Before anything is settled there is no number from which the journals would count.)
  if (settled_.value == 0) return;
  if (log.link == Link::kOpen) {
    logger_lost_since_.reset();
    hardening_.reset();
    return;
  }
  if (!logger_lost_since_) logger_lost_since_ = monotonic;
  if (std::exchange(harden_failed_, false)) harden_after_ = monotonic + kHardenAgain;
  if (monotonic - *logger_lost_since_ < options_.logger_patience || monotonic < harden_after_ ||
      hardening_) {
    return;
  }
  for (const auto& [node, storage] : storages_) {
    if (storage.link != Link::kOpen || !storage.caught_up) return;
  }
  hardening_.emplace(Hardening{settled_, {}});
  for (auto& [node, storage] : storages_) {
    hardening_->waits.insert(node);
    storage.told = settled_;
    out.emplace_back(ToStore{node, Harden{volume_, epoch_, settled_}});
  }
}

void CoordinatorRole::hear(StorageLink& /*storage*/, NodeId node, const Hardened& message,
                           VersionTime /*now*/, Actions& out) {
  if (!hardening_ || message.settled != hardening_->settled) return;
  if (message.failed) {
    hardening_.reset();
    harden_failed_ = true;
    out.emplace_back(WritesWait{Error{message.failed->code, "node " + std::to_string(node.value) +
                                                                ": " + message.failed->message}});
    return;
  }
  hardening_->waits.erase(node);
  if (!hardening_->waits.empty() || hardening_->settled != settled_ ||
      logs_.begin()->second.link == Link::kOpen) {
    return;
  }
  change_logs(LogAway{settled_, writes_->last_stamped(), writes_->floor(), end_}, out);
}

void CoordinatorRole::change_logs(std::optional<LogAway> away, Actions& out) {
  holding_ = true;
  changing_ = true;
  close(Error{ErrorCode::kUnavailable, "the volume's writes are about to be kept elsewhere"}, out);
  out.emplace_back(ChangeLogs{away});
}

// ---- the logger returns

void CoordinatorRole::carry_out(LogReturn::Out& returned, Actions& out) {
  const NodeId logger = return_->logger();
  for (ToLogger& message : returned.send) out.emplace_back(ToLog{logger, std::move(message)});
  if (returned.fetch) {
    out.emplace_back(FetchLogged{returned.fetch->first, returned.fetch->last});
  }
  if (returned.drop) out.emplace_back(DisconnectLogger{logger, *returned.drop});
}

void CoordinatorRole::fetched(const Result<LogSource::Portion>& portion, Actions& out) {
  if (!return_ || phase_ == Phase::kOver) return;
  LogReturn::Out returned;
  return_->fetched(portion, returned);
  carry_out(returned, out);
}

// When it has almost everything, the rest is held back until it has that, too.
void CoordinatorRole::look_at_return(Actions& out) {
  const auto has = return_->has();
  if (!has || changing_) return;
  if (settled_.value - has->value <= return_near_) holding_ = true;
  if (*has == settled_) change_logs(std::nullopt, out);
}

// What it had, both images are to hold first; but for one that was set up anew, and lacks what only
// the log could have told, or may (of a node whose journal is missing, the image is, too).
void CoordinatorRole::begin_anew(Actions& out) {
  bool held = std::ranges::any_of(storages_, [this](const auto& each) {
    return logs_.contains(each.first) && each.second.durable >= away_->since;
  });
  for (auto& [node, storage] : storages_) {
    if (!logs_.contains(node) || storage.lacks_since || storage.durable >= away_->since) continue;
    held = false;
    if (storage.link != Link::kOpen || !storage.caught_up || storage.told_lost) continue;
    storage.told_lost = true;
    out.emplace_back(ToStore{node, LogLost{volume_, epoch_, away_->since}});
  }
  if (!held) return;
  LogReturn::Out returned;
  return_->begin_anew(returned);
  carry_out(returned, out);
}

void CoordinatorRole::watch_return(std::chrono::nanoseconds monotonic, VersionTime now,
                                   Actions& out) {
  LogReturn::Out returned;
  return_->go_on(settled_, returned);
  carry_out(returned, out);
  look_at_return(out);
  if (return_->lost()) begin_anew(out);
  if (!return_->has()) {
    if (std::exchange(holding_, changing_) && !holding_) advance(now, out);
    return_near_since_.reset();
    return_near_ = options_.return_near;
  } else if (!return_near_since_) {
    return_near_since_ = monotonic;
  } else if (monotonic - *return_near_since_ > kNearerWithin) {
    return_near_since_ = monotonic;
    return_near_ *= 2;
  }
}

}  // namespace mariner::replication
