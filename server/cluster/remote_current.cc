#include "server/cluster/remote_current.h"

#include <chrono>
#include <utility>

namespace mariner::cluster {
namespace {

// Until a storage node that had no answer is asked again.
constexpr auto kAgain = std::chrono::milliseconds(50);

}  // namespace

void RemoteCurrent::read(BlockRange range, volume::ReadDone done) {
  waiting_.push_back(std::make_shared<Read>(range, coordinator_.role().settled(),
                                            Payload::allocate(range.count.bytes()),
                                            std::move(done)));
  begin_waiting();
}

// What is finished from within may be many, one after the other.
void RemoteCurrent::begin_waiting() {
  if (std::exchange(beginning_, true)) return;
  while (in_flight_ < kInFlightMax && !waiting_.empty()) {
    const ReadPtr next = std::move(waiting_.front());
    waiting_.pop_front();
    ++in_flight_;
    ask(next);
  }
  beginning_ = false;
}

void RemoteCurrent::ask(const ReadPtr& read) {
  if (!coordinator_.ready()) {
    return finish(read, Error{ErrorCode::kUnavailable, "another node serves the volume"});
  }
  const auto from = coordinator_.role().reads_from();
  if (!from) return ask_later(read);
  node_(*from).read_current(read->range, read->at, coordinator_.role().epoch(), read->to.bytes(),
                            [this, alive = alive_, read, from](const Result<void>& result) {
                              if (*alive) answered(read, *from, result);
                            });
}

void RemoteCurrent::answered(const ReadPtr& read, replication::NodeId by,
                             const Result<void>& result) {
  if (result) return finish(read, PayloadSlice{read->to, 0, read->to.size()});
  if (result.error().code != ErrorCode::kUnavailable) return finish(read, result.error());
  const auto now = coordinator_.role().reads_from();
  if (!coordinator_.ready() || (now && *now != by)) return ask(read);
  ask_later(read);
}

void RemoteCurrent::ask_later(const ReadPtr& read) {
  executor_.after(kAgain, [this, alive = alive_, read] {
    if (*alive) ask(read);
  });
}

void RemoteCurrent::finish(const ReadPtr& read, Result<PayloadSlice> result) {
  --in_flight_;
  read->done(std::move(result));
  begin_waiting();
}

}  // namespace mariner::cluster
