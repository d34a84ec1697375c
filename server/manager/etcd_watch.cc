#include "server/manager/etcd_watch.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "server/manager/etcd_connection.h"
#include "server/manager/etcd_members.h"

namespace mariner::manager {

Result<std::vector<Change>> WatchCursor::take(WatchLine line) {
  if (line.canceled) {
    if (line.compacted.value != 0) {
      return Error{ErrorCode::kOutsideWindow,
                   fmt::format("the changes from {} on have been compacted up to {}", next_.value,
                               line.compacted.value)};
    }
    return Error{ErrorCode::kUnavailable, "etcd has ended a watch: " + line.reason};
  }
  const bool says_nothing = line.changes.empty() && !line.created;
  for (Change& change : line.changes) {
    // Told already: a member that tells again what is behind `next_` loses nothing by it.
    if (change.entry.revision < next_) continue;
    if (!held_.empty() && change.entry.revision < held_.back().entry.revision) {
      return Error{ErrorCode::kUnavailable, "etcd's changes are not in order"};
    }
    held_bytes_ += change.entry.key.size() + change.entry.value.size();
    held_.push_back(std::move(change));
  }
  std::vector<Change> told;
  if (!line.fragment) {
    told = std::exchange(held_, {});
    held_bytes_ = 0;
    // Nothing but the newest state of the store: all changes up to there have come.
    if (told.empty() && says_nothing) next_ = std::max(next_, line.header.revision.next());
    if (!told.empty()) next_ = told.back().entry.revision.next();
    return told;
  }
  // A piece may end in the middle of a revision: its last one waits.
  if (held_.empty()) return told;
  const Revision last = held_.back().entry.revision;
  const auto whole = std::find_if(held_.begin(), held_.end(), [last](const Change& change) {
    return change.entry.revision == last;
  });
  told.assign(std::make_move_iterator(held_.begin()), std::make_move_iterator(whole));
  held_.erase(held_.begin(), whole);
  if (!told.empty()) {
    next_ = last;
    held_bytes_ = 0;
    for (const Change& change : held_) {
      held_bytes_ += change.entry.key.size() + change.entry.value.size();
    }
  }
  if (held_.size() > kHeldChangesMax || held_bytes_ > kHeldBytesMax) {
    return Error{ErrorCode::kLimit, fmt::format("the change {} of the cluster's store is too large "
                                                "for a watch",
                                                last.value)};
  }
  return told;
}

EtcdWatch::EtcdWatch(boost::asio::io_context& io, Executor& executor, EtcdMembers& members,
                     EtcdWatchOptions options, BackoffTimes times, Watcher& watcher)
    : io_(io),
      executor_(executor),
      members_(members),
      options_(std::move(options)),
      backoff_(times),
      watcher_(&watcher),
      cursor_(options_.from) {}

void EtcdWatch::stop() {
  watcher_ = nullptr;
  if (connection_ != nullptr) std::exchange(connection_, nullptr)->close();
}

void EtcdWatch::connect() {
  if (watcher_ == nullptr) return;
  endpoint_ = members_.preferred();
  cursor_.reconnected();
  understood_ = {};
  connection_ = std::make_shared<EtcdConnection>(io_, endpoint_);
  // A stopped watch has closed its connection, which then calls nothing.
  connection_->stream(
      watch_request(options_.prefix, cursor_.next()),
      {options_.answer_timeout, options_.answer_timeout, options_.silence},
      [self = shared_from_this()](std::string_view line) { return self->take_line(line); },
      [self = shared_from_this()](EtcdExchange exchange) {
        const auto& answer = exchange.answer;
        if (!answer) return self->ended(answer.error());
        if (answer->status == 200) return self->ended({});
        self->ended(parse_failure(answer->status, answer->body).error);
      });
}

bool EtcdWatch::take_line(std::string_view line) {
  auto parsed = parse_watch_line(line, options_.prefix);
  if (parsed && parsed->header.cluster != 0 && !members_.same_cluster(parsed->header.cluster)) {
    parsed = Error{ErrorCode::kProtocol, "the etcd that answers is another cluster than before"};
  }
  if (!parsed) {
    understood_ = parsed.error();
    return false;
  }
  if (parsed->created) backoff_.succeeded();
  auto changes = cursor_.take(std::move(*parsed));
  if (!changes) {
    const bool gap = changes.error().code == ErrorCode::kOutsideWindow ||
                     changes.error().code == ErrorCode::kLimit;
    if (gap) lose(changes.error());
    return false;
  }
  if (changes->empty()) return true;
  misunderstood_ = 0;
  watcher_->changed(std::move(*changes));
  return watcher_ != nullptr;
}

void EtcdWatch::ended(Result<void> understood) {
  connection_ = nullptr;
  if (watcher_ == nullptr) return;
  members_.failed(endpoint_);
  if (!understood_) understood = understood_;
  const bool strange = !understood && understood.error().code != ErrorCode::kUnavailable &&
                       understood.error().code != ErrorCode::kAborted;
  misunderstood_ = strange ? misunderstood_ + 1 : 0;
  if (misunderstood_ >= kMisunderstoodMax) return lose(understood.error());
  executor_.after(backoff_.next(), [self = shared_from_this()] { self->connect(); });
}

void EtcdWatch::lose(Error why) {
  Watcher* watcher = std::exchange(watcher_, nullptr);
  watcher->lost(std::move(why));
}

}  // namespace mariner::manager
