#include "tests/sim/cluster/storage_host.h"

#include <utility>

namespace mariner::test {

using replication::ConnectionId;
using replication::StorageRole;

StorageHost::StorageHost(SimNode& node, std::mt19937_64& random, ClusterModel& model,
                         StorageDisk& disk, VolumeId volume, Planted planted, AskHistory ask)
    : node_(node),
      random_(random),
      model_(model),
      disk_(disk),
      planted_(planted),
      ask_(std::move(ask)),
      role_({volume, disk.promised, disk.durable}),
      committed_(disk.durable) {
  role_.granted(kLagBytesMax);
}

ConnectionId StorageHost::accept(AnswerTo answer) {
  static std::uint64_t last_connection = 0;
  const ConnectionId id{++last_connection};
  peers_[id] = std::move(answer);
  return id;
}

void StorageHost::disconnected(ConnectionId connection) {
  role_.disconnected(connection);
  peers_.erase(connection);
}

void StorageHost::received(ConnectionId from, replication::ToStorage message) {
  if (planted_ == Planted::kEpochNotChecked && role_.heard() != from) {
    if (auto* write = std::get_if<replication::WriteMessage>(&message)) {
      prepared_.push_back(std::move(*write));
      return;
    }
  }
  StorageRole::Actions actions;
  role_.received(from, std::move(message), actions);
  run(actions);
}

void StorageHost::run(StorageRole::Actions& actions) {
  for (auto& action : actions) queue_.push_back(std::move(action));
  actions.clear();
  flush_later();
  if (std::exchange(running_, true)) return;
  while (!queue_.empty()) {
    StorageRole::Action action = std::move(queue_.front());
    queue_.pop_front();
    carry_out(action);
  }
  running_ = false;
}

void StorageHost::carry_out(StorageRole::Action& action) {
  if (auto* promise = std::get_if<StorageRole::Promise>(&action)) {
    node_.after(std::chrono::microseconds(200 + random_() % 2000), [this, epoch = promise->epoch] {
      disk_.promised = std::max(disk_.promised, epoch);
      StorageRole::Actions more;
      role_.promised(epoch, {}, more);
      run(more);
    });
  } else if (std::holds_alternative<StorageRole::Forget>(action)) {
    for (const auto& message : prepared_) given_back_ += replication::lag_bytes(message.write);
    prepared_.clear();
  } else if (auto* prepare = std::get_if<StorageRole::Prepare>(&action)) {
    prepared_.push_back(std::move(prepare->message));
  } else if (auto* drop = std::get_if<StorageRole::Drop>(&action)) {
    std::erase_if(prepared_, [&](const replication::WriteMessage& message) {
      const SequenceNumber sequence = message.stamp.sequence;
      const bool lost = sequence >= drop->message.first && sequence <= drop->message.last;
      if (lost) given_back_ += replication::lag_bytes(message.write);
      return lost;
    });
  } else if (auto* commit_action = std::get_if<StorageRole::Commit>(&action)) {
    commit(commit_action->settled);
  } else if (auto* missed = std::get_if<StorageRole::CatchUp>(&action)) {
    const SequenceNumber to = missed->to;
    const auto caught_up = [this, to] {
      StorageRole::Actions more;
      role_.caught_up(to, more);
      run(more);
    };
    if (planted_ == Planted::kCommittedBeforeCaughtUp) {
      node_.post(caught_up);
      committed_ = to;
    }
    ask_(missed->from, to, [this, to, caught_up](const Blocks& changed) {
      for (const auto& [block, value] : changed) {
        BlockValue& mine = pending_[block];
        mine = std::max(mine, value);
      }
      if (planted_ != Planted::kCommittedBeforeCaughtUp) {
        committed_ = to;
        caught_up();
      }
      serve_waiting();
      apply_later();
    });
  } else {
    auto& send = std::get<StorageRole::Send>(action);
    const auto peer = peers_.find(send.to);
    if (peer != peers_.end()) peer->second(std::move(send.message));
  }
}

void StorageHost::commit(SequenceNumber settled) {
  while (!prepared_.empty() && prepared_.front().stamp.sequence <= settled) {
    const replication::WriteMessage& message = prepared_.front();
    for (std::uint64_t i = 0; i < message.write.extent.count.value; ++i) {
      pending_[message.write.extent.first.value + i] = {message.stamp.sequence,
                                                        attempt_of(message.write)};
    }
    pending_bytes_ += replication::lag_bytes(message.write);
    prepared_.pop_front();
  }
  committed_ = settled;
  serve_waiting();
  apply_later();
}

BlockValue StorageHost::value(std::uint64_t block) const {
  const auto pending = pending_.find(block);
  if (pending != pending_.end()) return pending->second;
  const auto image = disk_.image.find(block);
  return image == disk_.image.end() ? BlockValue{} : image->second;
}

void StorageHost::read(std::uint64_t block, SequenceNumber at,
                       std::function<void(BlockValue)> done) {
  waiting_.push_back({block, at, std::move(done)});
  serve_waiting();
}

void StorageHost::serve_waiting() {
  for (std::size_t i = 0; i < waiting_.size();) {
    if (waiting_[i].at > committed_) {
      ++i;
      continue;
    }
    const Waiting one = std::move(waiting_[i]);
    waiting_.erase(waiting_.begin() + static_cast<std::ptrdiff_t>(i));
    one.done(value(one.block));
  }
}

void StorageHost::set_slow(bool slow) {
  slow_ = slow;
  if (!slow) apply_later();
}

void StorageHost::apply_later() {
  if (pending_.empty() || applying_ || slow_ || std::exchange(apply_set_, true)) return;
  node_.after(std::chrono::milliseconds(20 + random_() % 300), [this] {
    apply_set_ = false;
    if (!pending_.empty() && !applying_ && !slow_) apply();
  });
}

// Blocks reach the image one after another; a crash leaves some of them.
void StorageHost::apply() {
  applying_ = true;
  auto table = std::make_shared<Blocks>(pending_);
  const SequenceNumber through = committed_;
  const std::uint64_t bytes = std::exchange(pending_bytes_, 0);
  for (auto it = table->begin(); it != table->end(); ++it) {
    if (random_() % 2 != 0) continue;
    disk_.image[it->first] = it->second;
  }
  node_.after(std::chrono::milliseconds(1 + random_() % 60), [this, table, through, bytes] {
    for (const auto& [block, value] : *table) {
      disk_.image[block] = value;
      const auto found = pending_.find(block);
      if (found != pending_.end() && found->second == value) pending_.erase(found);
    }
    disk_.durable = through;
    applying_ = false;
    given_back_ += bytes;
    role_.durable(through);
    role_.granted(given_back_ + kLagBytesMax);
    flush_later();
    apply_later();
  });
}

void StorageHost::flush_later() {
  if (std::exchange(flushing_, true)) return;
  node_.defer([this] {
    flushing_ = false;
    StorageRole::Actions actions;
    role_.flush(actions);
    if (!actions.empty()) run(actions);
  });
}

}  // namespace mariner::test
