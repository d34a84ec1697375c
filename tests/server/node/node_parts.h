// The volumes and views of a node over real files in a directory of the test's own, without the
// network: start() and stop() are a restart, what is between them runs on the test's thread.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "server/node/view_set.h"
#include "tests/server/node/shifted_clock.h"
#include "tests/support/index_answers.h"

namespace mariner::node::testing {

class NodeParts {
 public:
  static constexpr std::uint64_t kVolumeBytes = 1u << 20;

  static constexpr std::uint64_t kLogTracks = 4;

  explicit NodeParts(std::uint64_t log_tracks = kLogTracks);
  ~NodeParts();
  NodeParts(const NodeParts&) = delete;
  NodeParts& operator=(const NodeParts&) = delete;

  void start();
  void stop();
  // Runs what is ready until `done` answers true; aborts after some seconds.
  void run_until(const std::function<bool()>& done);

  [[nodiscard]] VolumeSet& volumes() { return *volumes_; }
  [[nodiscard]] ViewSet& views() { return *views_; }
  [[nodiscard]] MetaStore& store() { return *store_; }
  // Of volumes and views.
  [[nodiscard]] Executor& executor() { return clock_; }
  void advance(std::chrono::nanoseconds by) { clock_.advance(by); }
  void step_wall(std::chrono::nanoseconds by) { clock_.step_wall(by); }
  [[nodiscard]] LogStack& log_stack() { return *stack_; }
  [[nodiscard]] IndexStack& indexes() { return *indexes_; }
  // Of a volume's index.
  [[nodiscard]] test::IndexAnswers answers(const ServedVolume& volume);
  [[nodiscard]] volume::Worker& worker() { return *worker_; }
  [[nodiscard]] Log& log() { return log_; }  // to path("daemon.log")
  [[nodiscard]] std::string path(const std::string& name) const { return directory_ + "/" + name; }
  [[nodiscard]] bool has_file(const std::string& name) const;

  ServedVolume& create(const std::string& name);
  Result<ServedVolume*> import(const std::string& name, const std::string& file,
                               bool dry_run = false);
  Result<void> remove(const std::string& name);
  // Writes and reads 4 KiB, all of one byte.
  void write(volume::Layer& layer, std::uint64_t block, char byte);
  char read(volume::Layer& layer, std::uint64_t block);
  SequenceNumber newest(const ServedVolume& volume) {
    return volume.volume->index().newest().sequence;
  }

 private:
  std::string directory_;
  const std::uint64_t log_tracks_;
  EventLoop loop_;
  test::ShiftedClock clock_{loop_};
  const int log_file_;
  Log log_{{.fd = log_file_}};
  std::unique_ptr<logging::IoRing> ring_;
  std::unique_ptr<MetaStore> store_;
  std::unique_ptr<volume::Worker> worker_;
  std::unique_ptr<RecoveredVolumes> recovered_;
  std::unique_ptr<LogStack> stack_;
  std::unique_ptr<IndexStack> indexes_;
  std::unique_ptr<VolumeSet> volumes_;
  std::unique_ptr<ViewSet> views_;
};

}  // namespace mariner::node::testing
