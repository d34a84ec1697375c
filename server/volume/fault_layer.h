// Fault injection: a layer that delays and fails operations, for tests of hosts and of our own.
//
// In front of any other layer. Deterministic from its seed. Ships to users: `[volume.faults]` in
// the configuration.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <random>

#include "proto/executor.h"
#include "server/volume/layer.h"

namespace mariner::volume {

struct FaultOptions {
  double read_error_rate = 0;  // 0..1: share of reads and allocation() that fail with kIo
  double write_error_rate =
      0;  // of writes, write-sames, updates and trims; nothing is written then
  std::chrono::nanoseconds read_delay{0};   // before the read or allocation() is begun
  std::chrono::nanoseconds write_delay{0};  // before the write is begun
  std::uint64_t seed = 1;
};

class FaultLayer final : public Layer {
 public:
  // `below` and `executor` outlive it; completions may run until idle().
  FaultLayer(Layer& below, Executor& executor, const FaultOptions& options)
      : below_(below), executor_(executor), options_(options), random_(options.seed) {}
  ~FaultLayer() override;

  [[nodiscard]] std::uint64_t size_bytes() const override { return below_.size_bytes(); }
  [[nodiscard]] bool read_only() const override { return below_.read_only(); }
  void read(ByteRange range, ReadDone done) override;
  void prefetch(ByteRange range) override { below_.prefetch(range); }
  void write(ByteRange range, PayloadSlice data, Done done) override;
  void write_same(ByteRange range, PayloadSlice pattern, Done done) override;
  void update(ByteRange range, Change change, Done done) override;
  void trim(ByteRange range, TrimMode mode, Done done) override;
  void flush(Done done) override { below_.flush(std::move(done)); }
  void allocation(ByteRange range, AllocationDone done) override;
  // Neither fails nor waits, and reads of it do not either: faults are those of the present.
  void snapshot(SnapshotDone done) override { below_.snapshot(std::move(done)); }
  void settle(Done done) override { below_.settle(std::move(done)); }

  [[nodiscard]] bool idle() const { return delayed_ == 0; }

 private:
  [[nodiscard]] bool strikes(double rate);
  void later(std::chrono::nanoseconds delay, UniqueFunction<void()> work);

  Layer& below_;
  Executor& executor_;
  const FaultOptions options_;
  std::mt19937_64 random_;
  std::size_t delayed_ = 0;
};

}  // namespace mariner::volume
