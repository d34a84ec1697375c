#include "tests/sim/cluster/sim_storage.h"

#include <algorithm>
#include <memory>
#include <utility>

namespace mariner::test {
namespace {

Error broken() { return {ErrorCode::kIo, "the image's disk is broken"}; }

}  // namespace

SimStorage::SimStorage(SimNode& node, std::mt19937_64& random, StorageDisk& disk, Planted planted,
                       AskHistory ask, Progress progress, Outlived outlived, Failed failed)
    : node_(node),
      random_(random),
      disk_(disk),
      planted_(planted),
      ask_(std::move(ask)),
      progress_(std::move(progress)),
      outlived_(std::move(outlived)),
      failed_(std::move(failed)),
      committed_(disk.durable) {
  if (!disk_.spill || disk_.spill->kept <= disk_.durable) return;
  pending_ = disk_.spill->blocks;
  committed_ = disk_.spill->kept;
}

void SimStorage::start_over(UniqueFunction<void()> done) {
  ++image_;
  forget();
  given_back_ += std::exchange(pending_bytes_, 0);
  pending_.clear();
  committed_ = {};
  applying_ = true;
  empty_image(std::move(done));
}

void SimStorage::empty_image(UniqueFunction<void()> done) {
  node_.after(std::chrono::milliseconds(1 + random_() % 300),
              [this, done = std::move(done)]() mutable {
                if (failing_) {
                  failed_(broken());
                  return empty_image(std::move(done));
                }
                disk_.image.clear();
                disk_.durable = {};
                disk_.spill.reset();
                applying_ = false;
                done();
                progress_({}, granted());
              });
}

void SimStorage::harden(UniqueFunction<void(Result<void>)> done) {
  StorageDisk::Spill spill{committed_, pending_};
  if (planted_ == Planted::kNotHardened) spill.blocks.clear();
  node_.after(std::chrono::milliseconds(1 + random_() % 30),
              [this, spill = std::move(spill), done = std::move(done)]() mutable {
                disk_.spill = std::move(spill);
                done({});
              });
}

void SimStorage::log_away(std::optional<SequenceNumber> since) {
  away_since_ = since;
  progress_(disk_.durable, granted());
  apply_later();
}

// A crash leaves some of it in the image, and all of it beside.
void SimStorage::log_lost() {
  if (!disk_.spill || disk_.spill->kept <= disk_.durable) return;
  for (const auto& [block, value] : disk_.spill->blocks) {
    if (random_() % 2 == 0) disk_.image[block] = value;
  }
  node_.after(std::chrono::milliseconds(1 + random_() % 30), [this] {
    if (!disk_.spill || disk_.spill->kept <= disk_.durable) return;
    for (const auto& [block, value] : disk_.spill->blocks) {
      if (planted_ != Planted::kSpillNotPut) {
        disk_.image[block] = value;
      } else if (const auto same = pending_.find(block);
                 same != pending_.end() && same->second == value) {
        pending_.erase(same);
      }
    }
    disk_.durable = disk_.spill->kept;
    progress_(disk_.durable, granted());
  });
}

void SimStorage::promise(VolumeId /*volume*/, Epoch epoch, VersionTime /*floor*/,
                         UniqueFunction<void(Result<void>)> done) {
  node_.after(std::chrono::microseconds(200 + random_() % 2000),
              [this, epoch, done = std::move(done)]() mutable {
                disk_.promised = std::max(disk_.promised, epoch);
                done({});
              });
}

void SimStorage::forget() {
  for (const auto& message : prepared_) given_back_ += replication::lag_bytes(message.write);
  prepared_.clear();
}

void SimStorage::drop(const replication::VoidMessage& message) {
  std::erase_if(prepared_, [&](const replication::WriteMessage& prepared) {
    const SequenceNumber sequence = prepared.stamp.sequence;
    const bool lost = sequence >= message.first && sequence <= message.last;
    if (lost) given_back_ += replication::lag_bytes(prepared.write);
    return lost;
  });
}

void SimStorage::catch_up(SequenceNumber from, SequenceNumber to, SequenceNumber /*at*/,
                          UniqueFunction<void()> done) {
  const auto placed = std::make_shared<UniqueFunction<void()>>(std::move(done));
  if (planted_ == Planted::kCommittedBeforeCaughtUp) {
    committed_ = to;
    node_.post([placed] { (*placed)(); });
  }
  ask_(from, to, [this, to, placed, image = image_](const Blocks* changed) {
    if (image != image_) return;
    if (changed == nullptr) return outlived_();
    for (const auto& [block, value] : *changed) {
      BlockValue& mine = pending_[block];
      mine = std::max(mine, value);
    }
    if (planted_ != Planted::kCommittedBeforeCaughtUp) {
      committed_ = to;
      (*placed)();
    }
    serve_waiting();
    apply_later();
  });
}

void SimStorage::commit(SequenceNumber settled) {
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

BlockValue SimStorage::value(std::uint64_t block) const {
  const auto pending = pending_.find(block);
  if (pending != pending_.end()) return pending->second;
  const auto image = disk_.image.find(block);
  return image == disk_.image.end() ? BlockValue{} : image->second;
}

void SimStorage::read(std::uint64_t block, SequenceNumber at,
                      std::function<void(BlockValue)> done) {
  waiting_.push_back({block, at, std::move(done)});
  serve_waiting();
}

void SimStorage::serve_waiting() {
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

void SimStorage::set_slow(bool slow) {
  slow_ = slow;
  if (!slow) apply_later();
}

void SimStorage::apply_later() {
  const auto may = [this] { return !applying_ && !slow_ && !away_since_; };
  // (With nothing pending, what was committed were voids.)
  if ((pending_.empty() && disk_.durable >= committed_) || !may() ||
      std::exchange(apply_set_, true)) {
    return;
  }
  node_.after(std::chrono::milliseconds(20 + random_() % 300), [this, may] {
    apply_set_ = false;
    if (may()) apply();
  });
}

// Whether anybody needs what is there, the log is asked first.
void SimStorage::apply() {
  applying_ = true;
  ask_(committed_, committed_, [this, image = image_](const Blocks*) {
    if (image != image_) return;
    if (!away_since_) return write_image();
    applying_ = false;
  });
}

// Blocks reach the image one after another; a crash leaves some of them.
void SimStorage::write_image() {
  const auto table = std::make_shared<Blocks>(pending_);
  const SequenceNumber through = committed_;
  const std::uint64_t bytes = std::exchange(pending_bytes_, 0);
  for (const auto& [block, value] : *table) {
    if (random_() % 2 == 0) disk_.image[block] = value;
  }
  node_.after(std::chrono::milliseconds(1 + random_() % 60), [=, this, image = image_] {
    if (failing_ && image == image_ && planted_ != Planted::kFailedWriteCounts) {
      pending_bytes_ += bytes;
      applying_ = false;
      failed_(broken());
      return apply_later();
    }
    given_back_ += bytes;
    if (image != image_) return progress_({}, granted());
    for (const auto& [block, value] : *table) {
      if (!failing_) disk_.image[block] = value;
      const auto found = pending_.find(block);
      if (found != pending_.end() && found->second == value) pending_.erase(found);
    }
    disk_.durable = through;
    applying_ = false;
    progress_(through, granted());
    apply_later();
  });
}

}  // namespace mariner::test
