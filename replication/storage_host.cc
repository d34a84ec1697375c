#include "replication/storage_host.h"

#include <utility>

namespace mariner::replication {

StorageHost::StorageHost(const StorageRole::Start& start, Executor& executor,
                         ClusterStorageParticipant& storage, PromiseStore& promises,
                         const ImageHealth::Options& health)
    : volume_(start.volume),
      executor_(executor),
      storage_(storage),
      promises_(promises),
      role_(start),
      health_(health) {}

ConnectionId StorageHost::accept(Answer answer) {
  const ConnectionId id{++last_connection_};
  peers_[id] = std::move(answer);
  return id;
}

void StorageHost::received(ConnectionId from, ToStorage message) {
  StorageRole::Actions actions;
  role_.received(from, std::move(message), actions);
  run(actions);
}

void StorageHost::closed(ConnectionId connection) {
  role_.disconnected(connection);
  peers_.erase(connection);
  tell_counted_on();
}

void StorageHost::tell_counted_on() {
  const bool now = role_.counted_on();
  if (now != std::exchange(counted_on_, now)) storage_.counted_on(now);
}

void StorageHost::durable(SequenceNumber sequence) {
  if (role_.durable(sequence) && health_.worked(executor_.monotonic_time())) tell_health();
  flush_later();
}

void StorageHost::image_failed(const Error& why) {
  if (!health_.failed(why, executor_.monotonic_time())) return;
  ++image_failures_;
  tell_health();
  try_image_later();
}

void StorageHost::tell_health() {
  StorageRole::Actions actions;
  role_.image_failed(health_.failure(), actions);
  run(actions);
}

// (An image that is counted on all the same is written to all the time: what that says, counts.)
void StorageHost::try_image_later() {
  executor_.after(health_.rest(), [this, alive = alive_, failure = image_failures_] {
    if (!*alive || failure != image_failures_ || !health_.failure()) return;
    if (role_.counted_on()) return try_image_later();
    health_.try_again(executor_.monotonic_time());
    tell_health();
  });
}

void StorageHost::granted(std::uint64_t bytes) {
  role_.granted(bytes);
  flush_later();
}

void StorageHost::fetched(const CatchUpProgress& progress) {
  role_.fetched(progress);
  flush_later();
}

void StorageHost::outlived() {
  StorageRole::Actions actions;
  role_.outlived(actions);
  run(actions);
}

void StorageHost::run(StorageRole::Actions& actions) {
  flush_later();
  queue_.run(actions, [this](StorageRole::Action& action) {
    carry_out(action);
    return true;
  });
  tell_counted_on();
}

void StorageHost::carry_out(StorageRole::Action& action) {
  if (auto* promise = std::get_if<StorageRole::Promise>(&action)) {
    promises_.promise(volume_, promise->epoch, {},
                      [this, epoch = promise->epoch](const Result<void>& result) {
                        StorageRole::Actions more;
                        role_.promised(epoch, result, more);
                        run(more);
                      });
  } else if (std::holds_alternative<StorageRole::Forget>(action)) {
    storage_.forget();
  } else if (auto* prepare = std::get_if<StorageRole::Prepare>(&action)) {
    storage_.prepare(prepare->message);
  } else if (auto* drop = std::get_if<StorageRole::Drop>(&action)) {
    storage_.drop(drop->message);
  } else if (auto* commit = std::get_if<StorageRole::Commit>(&action)) {
    storage_.commit(commit->settled);
  } else if (auto* missed = std::get_if<StorageRole::CatchUp>(&action)) {
    storage_.catch_up(missed->from, missed->to, missed->at, [this, at = missed->at] {
      StorageRole::Actions more;
      role_.caught_up(at, more);
      run(more);
    });
  } else if (auto* away = std::get_if<StorageRole::LogIsAway>(&action)) {
    storage_.log_away(away->since);
  } else if (auto* harden = std::get_if<StorageRole::HardenNow>(&action)) {
    storage_.harden([this, settled = harden->settled](const Result<void>& result) {
      StorageRole::Actions more;
      role_.hardened(settled, result, more);
      run(more);
    });
  } else if (std::holds_alternative<StorageRole::LogIsLost>(action)) {
    storage_.log_lost();
  } else if (std::holds_alternative<StorageRole::StartOver>(action)) {
    storage_.start_over([this] {
      StorageRole::Actions more;
      role_.started_over(more);
      run(more);
    });
  } else {
    const auto& send = std::get<StorageRole::Send>(action);
    const auto peer = peers_.find(send.to);
    if (peer != peers_.end()) peer->second(send.message);
  }
}

void StorageHost::flush_later() {
  if (std::exchange(flushing_, true)) return;
  executor_.defer([this] {
    flushing_ = false;
    StorageRole::Actions actions;
    role_.flush(actions);
    if (!actions.empty()) run(actions);
  });
}

}  // namespace mariner::replication
