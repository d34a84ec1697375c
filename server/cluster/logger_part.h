// What a logger has of a volume of a cluster: its log and indexes, and whom it listens to.
//
// Owner's thread only. Destroyed after close() and idle().
#pragma once

#include "proto/executor.h"
#include "replication/logger_host.h"
#include "server/volume/logged_volume.h"
#include "server/volume/reclaimable.h"
#include "server/volume/reclaimer.h"
#include "server/volume/volume_history.h"

namespace mariner::cluster {

// Where the logger begins, by what recovery found, the index (`indexed`, `end`: StoredIndex), and
// what was promised.
[[nodiscard]] replication::LoggerRole::Start begin_logging(VolumeId volume,
                                                           const volume::VolumeHistory& found,
                                                           index::IndexMoment indexed,
                                                           SequenceNumber end, Epoch promised,
                                                           VersionTime floor);

// The base of a volume whose images are elsewhere: only storage nodes can read it.
class BaseElsewhere final : public volume::Base {
 public:
  void read(BlockRange range, std::span<std::byte> to, volume::Done done) override;
  [[nodiscard]] bool may_move() const override { return true; }
};

class LoggerPart final : public volume::Reclaimable {
 public:
  struct Parts {  // all outlive it
    volume::LogParts log;
    Executor& executor;
    replication::PromiseStore& promises;
  };
  // Puts it on stable storage that the history begins anew; `kept` is always called, later.
  using KeepBeginning = UniqueFunction<void(volume::VolumeRelease, volume::Done kept)>;

  // `keep_beginning`: none: a journal, which has no history of its own to begin.
  LoggerPart(volume::LoggedVolume::Options options, const replication::LoggerRole::Start& start,
             Parts parts, KeepBeginning keep_beginning = nullptr);
  LoggerPart(const LoggerPart&) = delete;
  LoggerPart& operator=(const LoggerPart&) = delete;

  // Reclaimable. The images are elsewhere: what the log gives up because they hold it becomes their
  // nodes' to capture before it is overwritten, and they ask about it each time (image_applier.h).
  // They keep nothing under zeros, so there is nothing to punch.
  [[nodiscard]] volume::LoggedVolume& logged() override { return logged_; }
  [[nodiscard]] SequenceNumber settled() const override { return host_.role().settled(); }
  [[nodiscard]] bool has_image() const override { return true; }
  [[nodiscard]] SequenceNumber durable() const override { return host_.role().frontier(); }
  [[nodiscard]] std::optional<SequenceNumber> oldest_pinned() const override;
  void hurry() override {}
  void want_room() override { host_.want_room(); }
  void punch(std::vector<BlockRange> ranges, volume::Done done) override;

  [[nodiscard]] replication::LoggerHost& host() { return host_; }
  [[nodiscard]] const replication::LoggerHost& host() const { return host_; }

  void close(const Error& error) { logged_.close(error); }
  [[nodiscard]] bool idle() const { return logged_.idle() && host_.role().idle(); }

 private:
  struct Participant final : public replication::ClusterLoggerParticipant {
    explicit Participant(LoggerPart& of_part) : part(of_part) {}
    void log(const replication::WriteMessage& message, volume::Done done) override {
      part.logged_.log().log(message, std::move(done));
    }
    void log_void(const replication::VoidMessage& message, volume::Done done) override {
      part.logged_.log().log_void(message, std::move(done));
    }
    void applied(SequenceNumber through) override { part.logged_.log().applied(through); }
    void begin_anew(SequenceNumber at, VersionTime time, volume::Done done) override {
      part.begin_anew(at, time, std::move(done));
    }
    LoggerPart& part;
  };

  void begin_anew(SequenceNumber at, VersionTime time, volume::Done done);

  Executor& executor_;
  KeepBeginning keep_beginning_;
  BaseElsewhere base_;
  volume::LoggedVolume logged_;
  Participant participant_{*this};
  replication::LoggerHost host_;
};

}  // namespace mariner::cluster
