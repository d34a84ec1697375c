// A log of updates by Mariner's own log writer, on one disk: O_DIRECT, durable by whichever way is
// faster, going round.
//
// Like BenchLog, but on a RingLoop and with payloads that mean something, so that find_updates()
// can tell what stands in it. The file is kept for later runs, each of which begins with an empty
// log.
#pragma once

#include <functional>
#include <memory>

#include "logging/durability_probe.h"
#include "logging/log_array.h"
#include "tests/bench/ring_loop.h"
#include "tests/bench/update_log.h"

namespace mariner::bench {

class WriterLog final : public UpdateLog {
 public:
  struct Options {
    std::string path;
    std::uint64_t log_bytes = 0;
    std::uint64_t track_bytes = 0;
  };
  // `loop` outlives it. Blocking: may write the whole file.
  static Result<std::unique_ptr<WriterLog>> create(const Options& options, RingLoop& loop);
  ~WriterLog() override;

  [[nodiscard]] std::string name() const override { return "the log writer"; }
  void append(const PayloadSlice& payload, Done done) override;
  [[nodiscard]] std::uint64_t written_bytes() const override { return written_bytes_; }
  // How often tracks have been freed for new use.
  [[nodiscard]] std::uint64_t releases() const { return releases_; }

  // Opens the log at `path`, which nobody writes to, as after a crash, and visits the payload of
  // each record, in order. Blocking.
  static Result<void> read_all(const std::string& path,
                               const std::function<void(std::span<const std::byte>)>& visit);

 private:
  WriterLog(const Options& options, RingLoop& loop) : options_(options), loop_(loop) {}
  Result<logging::DurableWay> prepare();
  Result<void> open();
  void recycle();

  const Options options_;
  RingLoop& loop_;
  std::unique_ptr<logging::LogArray> array_;
  logging::LogArray::Member* member_ = nullptr;  // its only disk
  SequenceNumber sequence_;
  VersionTime time_;
  std::uint64_t written_bytes_ = 0;
  std::uint64_t releases_ = 0;
};

}  // namespace mariner::bench
