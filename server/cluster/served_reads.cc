#include "server/cluster/served_reads.h"

#include <string>
#include <utility>

#include "proto/check.h"

namespace mariner::cluster {
namespace {

Error not_followed(Epoch epoch) {
  return {ErrorCode::kUnavailable, "this storage node does not follow the coordinator of epoch " +
                                       std::to_string(epoch.value) + " now"};
}

}  // namespace

ServedReads::~ServedReads() {
  CHECK_MSG(idle(), "reads for a coordinator elsewhere are dropped in use");
  *alive_ = false;
}

bool ServedReads::follows(Epoch epoch) const {
  const replication::StorageRole& role = host_.role();
  return !closed_ && role.heard().has_value() && role.epoch() == epoch;
}

void ServedReads::read(const CurrentQuestion& question, volume::ReadDone done) {
  if (question.range.end().value > blocks_.value) {
    return done(Error{ErrorCode::kInvalidArgument, "blocks behind the end of the volume"});
  }
  if (!follows(question.epoch)) return done(not_followed(question.epoch));
  if (host_.role().committed() < question.at) return wait(question, std::move(done));
  begin(question, std::move(done));
}

void ServedReads::begin(const CurrentQuestion& question, volume::ReadDone done) {
  ++in_flight_;
  storage_.read(question.range, [this, epoch = question.epoch, heard = host_.role().heard(),
                                 done = std::move(done)](Result<PayloadSlice> read) mutable {
    --in_flight_;
    if (!follows(epoch) || host_.role().heard() != heard) read = not_followed(epoch);
    done(std::move(read));
  });
}

void ServedReads::wait(const CurrentQuestion& question, volume::ReadDone done) {
  if (waiting_.size() >= kWaitingMax) {
    return done(Error{ErrorCode::kUnavailable, "too many reads wait at this storage node"});
  }
  waiting_.push_back({question, std::move(done), executor_.monotonic_time() + kWaitMax});
  look_later();
}

void ServedReads::look() {
  if (waiting_.empty()) return;
  const auto now = executor_.monotonic_time();
  // What is answered may ask again.
  std::deque<Waiting> still;
  std::deque<Waiting> over;
  for (Waiting& each : waiting_) {
    const bool waits = follows(each.question.epoch) &&
                       host_.role().committed() < each.question.at && now < each.until;
    (waits ? still : over).push_back(std::move(each));
  }
  waiting_ = std::move(still);
  for (Waiting& each : over) {
    if (!follows(each.question.epoch)) {
      each.done(not_followed(each.question.epoch));
    } else if (host_.role().committed() < each.question.at) {
      each.done(Error{ErrorCode::kUnavailable, "this storage node has not committed #" +
                                                   std::to_string(each.question.at.value) +
                                                   " yet, but #" +
                                                   std::to_string(host_.role().committed().value)});
    } else {
      begin(each.question, std::move(each.done));
    }
  }
}

void ServedReads::look_later() {
  if (std::exchange(timer_set_, true)) return;
  const auto left = waiting_.front().until - executor_.monotonic_time();
  executor_.after(left, [this, alive = alive_] {
    if (!*alive) return;
    timer_set_ = false;
    look();
    if (!waiting_.empty()) look_later();
  });
}

void ServedReads::close() {
  closed_ = true;
  look();
}

}  // namespace mariner::cluster
