// The node's index file, and each volume's version index in it.
//
// The file can be thrown away at any time while the daemon does not run: what is missing is made
// from the log. It belongs to one log, which the node's store remembers; with another log it begins
// anew. Damage is mended while the daemon runs (index_repair.h); what cannot be, by the next start.
// Owner's thread only.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "index/stored_index.h"
#include "logging/file_disk.h"
#include "logging/io_ring.h"
#include "server/node/event_loop.h"
#include "server/node/index_repair.h"
#include "server/node/log.h"
#include "server/node/log_limiter.h"
#include "server/node/meta_store.h"

namespace mariner::node {

class IndexStack {
 public:
  struct Settings {
    std::string path;
    std::string log;  // the identity of the log that it is of
    std::uint64_t memory_bytes = 0;
    std::uint64_t replay_max = 8'000'000;    // records, about, that a start may have to replay
    std::uint64_t log_bytes = 0;             // the index must have room for what the log can hold
    std::chrono::milliseconds lock_wait{0};  // for what a killed process has left under way
    std::optional<logging::DurableWay> durable_way{};  // of superblocks; without value: kFua
  };
  struct Parts {  // all outlive it
    EventLoop& loop;
    logging::IoRing& ring;
    MetaStore& store;
    Log& log;
  };

  // Opens the file, or makes it. Blocking.
  static Result<std::unique_ptr<IndexStack>> open(const Settings& settings, Parts parts);
  ~IndexStack();  // runs the loop, if that does not run, until nothing is under way
  IndexStack(const IndexStack&) = delete;
  IndexStack& operator=(const IndexStack&) = delete;

  // The index of a volume, as it was given up. One that is new knows all it has at once; see
  // load().
  Result<std::shared_ptr<index::StoredIndex>> open_volume(VolumeId volume,
                                                          const volume::Horizon& horizon,
                                                          std::uint64_t given_up_ordinal);
  // Before anything else is asked of them: learns what they hold, and forgets volumes that were not
  // opened. Runs the loop. kCorrupt when they cannot be used: opened again, the file begins anew.
  Result<void> load();
  // Nobody uses the volume's index any more: it goes, and what it has in the file.
  void remove(VolumeId volume);

  // Every record of the log up to this ordinal has been given to the indexes. Asked at times.
  void set_used_through(UniqueFunction<std::uint64_t()> used_through) {
    used_through_ = std::move(used_through);
  }
  // From now on damage is mended from the log; both outlive stop() until idle().
  void start_repairs(const logging::LogArray& log, volume::Worker& worker);
  // Who waits for them hears errors from now on.
  void stop_repairs() {
    if (repair_ != nullptr) repair_->stop();
  }
  // Null before start_repairs().
  [[nodiscard]] const IndexRepair* repair() const { return repair_.get(); }
  // Runs the loop, which does not run, until `ended` holds.
  void wait_until(UniqueFunction<bool()> ended) { parts_.loop.run_until(std::move(ended)); }
  // Runs the loop until there is room for more.
  void wait_for_room();

  [[nodiscard]] index::Bosc& store() { return *store_; }
  [[nodiscard]] const index::Bosc& store() const { return *store_; }
  // Records behind it are to be given again.
  [[nodiscard]] std::uint64_t frontier() const { return frontier_at_start_; }
  [[nodiscard]] const std::string& path() const { return settings_.path; }
  // Damage has been found that only the next start can mend.
  [[nodiscard]] bool is_damaged() const { return is_damaged_; }

  // Lets what is under way end; nothing new is begun. No volume is left.
  void stop();
  [[nodiscard]] bool idle() const { return drained_ && (repair_ == nullptr || repair_->idle()); }

  // Of blocks that cannot be used so many are named in a time; the others are counted.
  static constexpr std::uint32_t kComplaintsMax = 5;
  static constexpr std::chrono::seconds kComplaintsTime{60};

 private:
  IndexStack(Settings settings, Parts parts) : settings_(std::move(settings)), parts_(parts) {}
  void complain(index::BlockAddress address, const Error& error);
  Result<void> open_file();
  Result<bool> is_of_this_log();
  Result<void> format();
  void flush();
  void failed(index::BlockAddress address, const Error& error);
  void leave_to_next_start();
  void remember(bool usable);

  const Settings settings_;
  const Parts parts_;
  std::unique_ptr<logging::FileDisk> disk_;
  std::unique_ptr<index::Bosc> store_;
  IndexRepair::Indexes volumes_;
  std::unique_ptr<IndexRepair> repair_;
  std::set<index::BlockAddress> damaged_before_;  // it was there
  UniqueFunction<std::uint64_t()> used_through_;
  std::uint64_t frontier_at_start_ = 0;
  meta::IndexFile file_;  // as the node's store knows it
  bool is_damaged_ = false;
  bool stopping_ = false;
  bool drained_ = false;
  // A commit that fails is tried again and again.
  LogLimiter complaints_{{.lines_max = kComplaintsMax, .time = kComplaintsTime}};
};

}  // namespace mariner::node
