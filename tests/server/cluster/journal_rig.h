// A journal as a coordinator writes it, over a log in memory.
#pragma once

#include <memory>
#include <optional>
#include <utility>

#include "server/cluster/logger_part.h"
#include "tests/server/cluster/memory_promises.h"
#include "tests/server/volume/logged_rig.h"

namespace mariner::test {

class JournalRig {
 public:
  JournalRig() {
    to_ = part->host().accept([](const replication::FromLogger& message) {
      EXPECT_FALSE(std::holds_alternative<replication::Refused>(message));
    });
    tell(replication::OpenLog{LoggedRig::kVolume, {1}});
  }
  ~JournalRig() {
    logged.disk.release();
    part->close(Error{ErrorCode::kUnavailable, "closing"});
    run();
  }

  void run() { logged.executor.run_ready(); }
  void tell(replication::ToLogger message) {
    part->host().received(to_, std::move(message));
    run();
  }
  void write(std::uint64_t sequence, replication::WriteRequest request) {
    replication::WriteMessage message;
    message.volume = LoggedRig::kVolume;
    message.stamp = {{1}, {sequence}, {1000 + sequence}};
    message.write = std::move(request);
    tell(std::move(message));
  }
  void write(std::uint64_t sequence, BlockRange extent, char letter) {
    replication::WriteRequest request;
    request.extent = extent;
    request.payload = LoggedRig::blocks_of(letter, extent.count.value);
    write(sequence, std::move(request));
  }
  void zero(std::uint64_t sequence, BlockRange extent) {
    replication::WriteRequest request;
    request.kind = replication::WriteKind::kZero;
    request.extent = extent;
    write(sequence, std::move(request));
  }
  void roll_back(std::uint64_t sequence, std::uint64_t target) {
    replication::WriteRequest request;
    request.kind = replication::WriteKind::kRollback;
    request.target = {target};
    request.target_time = {1000 + target};
    write(sequence, std::move(request));
  }
  void skip(std::uint64_t first, std::uint64_t last) {
    tell(replication::VoidMessage{LoggedRig::kVolume, {1}, {first}, {last}});
  }

  LoggedRig logged{false};
  cluster::MemoryPromises promises{logged.executor};
  const std::unique_ptr<cluster::LoggerPart> part = std::make_unique<cluster::LoggerPart>(
      volume::LoggedVolume::Options{
          .id = LoggedRig::kVolume, .epoch = {}, .index = logged.index.shared(), .base_pages = {}},
      cluster::begin_logging(LoggedRig::kVolume, {}, {}, {}, {}, {}),
      cluster::LoggerPart::Parts{
          {logged.disks, logged.writer, logged.log_reader}, logged.executor, promises});

 private:
  replication::ConnectionId to_;
};

}  // namespace mariner::test
