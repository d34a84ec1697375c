// What a storage node has of a volume of a cluster: image and pending writes, and whom it listens
// to.
//
// A node that has a journal can go on while the log is away: what is committed by then is made
// durable beside the image (harden()), and what comes then, the journal tells (log_away()). The
// image stays as it is until the log is back.
//
// Owner's thread only. Destroyed after close() and idle().
#pragma once

#include <memory>
#include <optional>

#include "logging/disk.h"
#include "proto/executor.h"
#include "replication/storage_host.h"
#include "server/cluster/base_check.h"
#include "server/cluster/rebuilding_history.h"
#include "server/cluster/served_reads.h"
#include "server/cluster/switched_history.h"
#include "server/volume/stored_volume.h"

namespace mariner::cluster {

class LoggerPart;

class StoragePart {
 public:
  struct Parts {  // all outlive it
    volume::History& history;
    volume::Base* other;  // another node's image of the volume; null: there is none
    volume::Worker& worker;
    Executor& executor;
    replication::PromiseStore& promises;
    // Both null: this node does not go on without the log.
    LoggerPart* journal = nullptr;  // of this node, of this volume
    volume::Spill* spill = nullptr;
    // What base_known() said when `start.durable` was kept. False: an earlier version kept it.
    bool base_known = true;
  };
  struct Events {
    // Everything at or below is in the image. It is to be kept on stable storage: when `kept` says
    // that it is, the coordinator hears of it, and the log relies on it.
    UniqueFunction<void(SequenceNumber, volume::Done kept)> durable;
    // Will be tried again. What the image's own disk spoils, the host counts (image_health.h).
    UniqueFunction<void(const Error&)> apply_failed;
    // The log has given up what the image lacks: it is made anew. That nothing is durable,
    // `durable` has been told before it is emptied.
    UniqueFunction<void()> starts_over;
  };

  // `start.durable`: what the image is known to hold. What came since, the history tells. 0: the
  // image is to be built anew (rebuilding_history.h); until it is, reads of the past ask `other`.
  // `spilled`: what `parts.spill` holds, if there is one.
  StoragePart(std::unique_ptr<logging::Disk> image, const replication::StorageRole::Start& start,
              const volume::Storage::Options& options, Parts parts, Events events,
              std::optional<volume::Spill::Contents> spilled = std::nullopt);
  StoragePart(const StoragePart&) = delete;
  StoragePart& operator=(const StoragePart&) = delete;

  [[nodiscard]] volume::Storage& storage() { return stored_.storage(); }
  [[nodiscard]] const volume::Storage& storage() const { return stored_.storage(); }
  [[nodiscard]] replication::StorageHost& host() { return host_; }
  [[nodiscard]] const replication::StorageHost& host() const { return host_; }

  // The image, for a node that lacks one: kUnavailable while it is being built itself, and while
  // it is not known what of it is base.
  [[nodiscard]] volume::Base& image() { return served_; }

  // The image holds whatever the log calls base (base_check.h): to be kept with what is durable.
  [[nodiscard]] bool base_known() const { return check_ == nullptr || check_->over(); }

  // What the volume holds now, for a coordinator on another node.
  [[nodiscard]] CurrentSource& current() { return reads_; }

  void close() {
    if (check_ != nullptr) check_->close();
    reads_.close();
    stored_.close();
  }
  [[nodiscard]] bool idle() const {
    return stored_.idle() && history_.idle() && served_.in_flight == 0 && keeping_ == 0 &&
           reads_.idle() && (check_ == nullptr || check_->idle());
  }

 private:
  struct ServedImage final : public volume::Base {
    explicit ServedImage(const StoragePart& of_part) : part(of_part) {}
    void read(BlockRange range, std::span<std::byte> to, volume::Done done) override;
    [[nodiscard]] bool may_move() const override { return true; }
    const StoragePart& part;
    std::size_t in_flight = 0;
  };

  struct Participant final : public replication::ClusterStorageParticipant {
    explicit Participant(StoragePart& of_part) : part(of_part) {}
    void prepare(const replication::WriteMessage& message) override {
      part.storage().prepare(message);
    }
    void drop(const replication::VoidMessage& message) override { part.storage().drop(message); }
    void commit(SequenceNumber settled) override {
      part.storage().commit(settled);
      part.reads_.look();
    }
    void forget() override {
      part.storage().forget();
      part.reads_.look();
    }
    void catch_up(SequenceNumber from, SequenceNumber to, SequenceNumber at,
                  UniqueFunction<void()> done) override {
      part.storage().catch_up(from, to, at, [this, done = std::move(done)]() mutable {
        done();
        part.reads_.look();
      });
    }
    void start_over(UniqueFunction<void()> done) override {
      part.reads_.look();
      if (part.check_ != nullptr) part.check_->give_up();
      part.storage().start_over(std::move(done));
    }
    void harden(volume::Done done) override { part.harden(std::move(done)); }
    void log_away(std::optional<SequenceNumber> since) override { part.log_away(since); }
    void log_lost() override { part.storage().put_spilled(); }
    void counted_on(bool listens) override {
      part.storage().rest(!listens);
      if (part.check_ != nullptr) part.check_->go_on(listens);
    }
    StoragePart& part;
  };

  [[nodiscard]] bool building() const { return storage().durable().value == 0; }
  [[nodiscard]] HeldBase held_base() const;
  [[nodiscard]] Result<void> check_served() const;
  void harden(volume::Done done);
  void log_away(std::optional<SequenceNumber> since);
  volume::Storage::Events storage_events();
  void keep(SequenceNumber durable);
  void keep_start_over(volume::Done kept);

  Events events_;
  Executor& executor_;
  const bool has_journal_;
  std::size_t keeping_ = 0;
  logging::Disk& disk_;               // of stored_
  std::unique_ptr<BaseCheck> check_;  // null: nothing is to be found out
  SwitchedHistory switched_;
  RebuildingHistory history_;
  volume::StoredVolume stored_;
  const std::uint64_t lag_bytes_max_;
  const std::uint64_t lag_in_memory_;
  Participant participant_{*this};
  replication::StorageHost host_;
  ServedImage served_{*this};
  ServedReads reads_;
};

}  // namespace mariner::cluster
