// A storage node's table of pending writes and its image in the simulated cluster. The image is
// written in the background, block by block; a crash leaves some of them.
#pragma once

#include <algorithm>
#include <deque>
#include <functional>
#include <optional>
#include <random>

#include "replication/participant.h"
#include "replication/storage_role.h"
#include "tests/sim/cluster/cluster_model.h"
#include "tests/sim/cluster/planted.h"
#include "tests/sim/cluster/sim_node.h"

namespace mariner::test {

// What of one volume is on a storage node's stable storage.
struct StorageDisk {
  Epoch promised;
  Blocks image;
  SequenceNumber durable;
  // Beside it: what the image lacked of everything at or below a number.
  struct Spill {
    SequenceNumber kept;
    Blocks blocks;
  };
  std::optional<Spill> spill;

  // Everything at or below is there.
  [[nodiscard]] SequenceNumber has() const {
    return spill ? std::max(durable, spill->kept) : durable;
  }
};

class SimStorage final : public replication::ClusterStorageParticipant,
                         public replication::PromiseStore {
 public:
  static constexpr std::uint64_t kLagBytesMax = 200ull * kBlockBytes;
  static constexpr std::uint64_t kLagBytesMaxAway = 3000ull * kBlockBytes;

  // Asks the logger what changed in (from, to], until it answers. Null: it has given that up.
  using AskHistory = std::function<void(SequenceNumber from, SequenceNumber to,
                                        std::function<void(const Blocks*)> answer)>;
  // The image has everything at or below; so much may be prepared.
  using Progress = std::function<void(SequenceNumber durable, std::uint64_t granted)>;
  // What it was to catch up with is not in the history any more.
  using Outlived = std::function<void()>;
  // Something could not be written to the image.
  using Failed = std::function<void(const Error&)>;

  SimStorage(SimNode& node, std::mt19937_64& random, StorageDisk& disk, Planted planted,
             AskHistory ask, Progress progress, Outlived outlived, Failed failed);

  void prepare(const replication::WriteMessage& message) override { prepared_.push_back(message); }
  void drop(const replication::VoidMessage& message) override;
  void commit(SequenceNumber settled) override;
  void forget() override;
  void catch_up(SequenceNumber from, SequenceNumber to, SequenceNumber at,
                UniqueFunction<void()> done) override;
  void start_over(UniqueFunction<void()> done) override;
  void harden(UniqueFunction<void(Result<void>)> done) override;
  void log_away(std::optional<SequenceNumber> since) override;
  void log_lost() override;
  void promise(VolumeId volume, Epoch epoch, VersionTime floor,
               UniqueFunction<void(Result<void>)> done) override;

  // What a read sees once everything at or below `at` is committed.
  void read(std::uint64_t block, SequenceNumber at, std::function<void(BlockValue)> done);
  [[nodiscard]] BlockValue value(std::uint64_t block) const;

  // The image is not written meanwhile.
  void set_slow(bool slow);
  // What is written to it fails, meanwhile; some of it is there all the same.
  void set_failing(bool failing) { failing_ = failing; }
  // The number from which on its own journal is the history.
  [[nodiscard]] std::optional<SequenceNumber> away_since() const { return away_since_; }
  // Everything committed is in the image.
  [[nodiscard]] bool applied() const { return pending_.empty() && !applying_; }
  // What another image may be built from.
  [[nodiscard]] const StorageDisk& disk() const { return disk_; }

 private:
  struct Waiting {
    std::uint64_t block = 0;
    SequenceNumber at;
    std::function<void(BlockValue)> done;
  };
  [[nodiscard]] std::uint64_t granted() const {
    return given_back_ + (away_since_ ? kLagBytesMaxAway : kLagBytesMax);
  }
  void serve_waiting();
  void apply_later();
  void apply();
  void write_image();
  void empty_image(UniqueFunction<void()> done);

  SimNode& node_;
  std::mt19937_64& random_;
  StorageDisk& disk_;
  const Planted planted_;
  const AskHistory ask_;
  const Progress progress_;
  const Outlived outlived_;
  const Failed failed_;
  std::uint64_t image_ = 0;  // how often it was begun anew: what belongs to an older one ends
  std::deque<replication::WriteMessage> prepared_;
  Blocks pending_;
  std::uint64_t pending_bytes_ = 0;
  std::uint64_t given_back_ = 0;  // bytes that were prepared, and do not wait any more
  std::deque<Waiting> waiting_;
  SequenceNumber committed_;
  bool applying_ = false;
  bool apply_set_ = false;
  bool slow_ = false;
  bool failing_ = false;
  std::optional<SequenceNumber> away_since_;  // nothing new comes to the image meanwhile
};

}  // namespace mariner::test
