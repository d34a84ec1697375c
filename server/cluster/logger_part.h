// What a logger has of a volume of a cluster: its log and indexes, and whom it listens to.
//
// Owner's thread only. Destroyed after close() and idle().
#pragma once

#include "proto/executor.h"
#include "replication/logger_host.h"
#include "server/volume/logged_volume.h"
#include "server/volume/volume_history.h"

namespace mariner::cluster {

// Where the logger begins, by what recovery found and what was promised.
[[nodiscard]] replication::LoggerRole::Start begin_logging(VolumeId volume,
                                                           const volume::VolumeHistory& found,
                                                           index::IndexMoment indexed,
                                                           Epoch promised, VersionTime floor);

// The base of a volume whose images are elsewhere: only storage nodes can read it.
class BaseElsewhere final : public volume::Base {
 public:
  void read(BlockRange range, std::span<std::byte> to, volume::Done done) override;
  [[nodiscard]] bool may_move() const override { return true; }
};

class LoggerPart {
 public:
  struct Parts {  // all outlive it
    volume::LogParts log;
    Executor& executor;
    replication::PromiseStore& promises;
  };

  LoggerPart(volume::LoggedVolume::Options options, const replication::LoggerRole::Start& start,
             Parts parts)
      : logged_(std::move(options), parts.log, base_),
        host_(start, parts.executor, logged_.log(), parts.promises) {}
  LoggerPart(const LoggerPart&) = delete;
  LoggerPart& operator=(const LoggerPart&) = delete;

  [[nodiscard]] volume::LoggedVolume& logged() { return logged_; }
  [[nodiscard]] replication::LoggerHost& host() { return host_; }
  [[nodiscard]] const replication::LoggerHost& host() const { return host_; }

  void close(const Error& error) { logged_.close(error); }
  [[nodiscard]] bool idle() const { return logged_.idle() && host_.role().idle(); }

 private:
  BaseElsewhere base_;
  volume::LoggedVolume logged_;
  replication::LoggerHost host_;
};

}  // namespace mariner::cluster
