// The reads that a storage node answers for a coordinator on another node.
//
// A read names the coordinator's epoch and what was settled when it came. It is answered while this
// node listens to the coordinator of that epoch, and when everything that was settled is committed
// here: so it lacks nothing that was acknowledged. One that comes before that waits, for a second
// at most. If this node listens to somebody else before the contents are there, or has begun anew,
// the answer is kUnavailable: they may be of an image that is being made. Owner's thread only.
#pragma once

#include <chrono>
#include <deque>
#include <memory>

#include "proto/executor.h"
#include "replication/storage_host.h"
#include "server/cluster/current_source.h"
#include "server/volume/current_reader.h"

namespace mariner::cluster {

class ServedReads final : public CurrentSource {
 public:
  static constexpr std::size_t kWaitingMax = 1024;
  static constexpr auto kWaitMax = std::chrono::milliseconds(1000);

  // All outlive it. `blocks`: of the image.
  ServedReads(volume::CurrentReader& storage, const replication::StorageHost& host,
              Executor& executor, BlockCount blocks)
      : storage_(storage), host_(host), executor_(executor), blocks_(blocks) {}
  ~ServedReads() override;  // idle() must hold
  ServedReads(const ServedReads&) = delete;
  ServedReads& operator=(const ServedReads&) = delete;

  void read(const CurrentQuestion& question, volume::ReadDone done) override;

  // The storage node has committed something, or listens to somebody else.
  void look();
  // Who waits hears kUnavailable, and who comes.
  void close();
  [[nodiscard]] bool idle() const { return in_flight_ == 0 && waiting_.empty(); }

 private:
  struct Waiting {
    CurrentQuestion question;
    volume::ReadDone done;
    std::chrono::nanoseconds until;
  };

  [[nodiscard]] bool follows(Epoch epoch) const;
  void begin(const CurrentQuestion& question, volume::ReadDone done);
  void wait(const CurrentQuestion& question, volume::ReadDone done);
  void look_later();

  volume::CurrentReader& storage_;
  const replication::StorageHost& host_;
  Executor& executor_;
  const BlockCount blocks_;
  std::deque<Waiting> waiting_;  // in the order of `until`
  std::size_t in_flight_ = 0;
  bool timer_set_ = false;
  bool closed_ = false;
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace mariner::cluster
