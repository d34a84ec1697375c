// A log disk in memory that does to a log what disks do: loses what was not durable, tears, flips,
// misdirects, forgets, fails, runs full and hangs. Everything random comes from its seed.
//
// Its unit of damage is a sector of 512 bytes: a sector is old or new, never half. Memory is taken
// as it is written; what never was reads as zeros. Blocking calls may come from any thread, as
// Disk demands; completions run on the Executor that the test turns.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <unordered_map>
#include <vector>

#include "logging/disk.h"
#include "proto/executor.h"

namespace mariner::test {

class FaultyDisk final : public logging::Disk {
 public:
  static constexpr std::uint32_t kSectorBytes = 512;

  struct Options {
    std::uint64_t size_bytes = 0;
    std::uint64_t seed = 1;
    // An asynchronous call completes after a random time up to this; 0: in the next turn.
    std::chrono::nanoseconds delay_max{0};
    std::uint32_t alignment = kBlockBytes;  // of offsets and lengths; 512 is the other possibility
  };
  // What reaches the medium of a write that is reported as failed.
  enum class Remains { kNothing, kSomeSectors, kEverything };

  FaultyDisk(Executor& executor, const Options& options);
  ~FaultyDisk() override;

  [[nodiscard]] std::uint64_t size_bytes() const override { return options_.size_bytes; }
  [[nodiscard]] std::uint32_t alignment() const override { return options_.alignment; }
  Result<void> read(std::uint64_t offset, std::span<std::byte> to) override;
  Result<void> write(std::uint64_t offset, std::span<const logging::ConstBytes> parts,
                     logging::Durability durability) override;
  Result<void> flush() override;
  Result<void> discard(ByteRange range) override;
  void async_read(std::uint64_t offset, std::span<std::byte> to, Completion done) override;
  void async_prefetch(ByteRange range, Completion done) override {
    prefetched_.push_back(range);
    done({});
  }
  void async_write(std::uint64_t offset, std::vector<logging::ConstBytes> parts,
                   logging::Durability durability, Completion done) override;
  void async_flush(Completion done) override;
  void submit_now() override { ++submits_; }

  // The power goes: of what was not durable, and of writes in flight, any subset of sectors
  // remains. From here on every call fails, and those in flight do, until the power is back.
  void cut_power();
  void restore_power();
  // The power goes in the middle of the write after so many others: of that one, any subset of
  // sectors remains. UINT64_MAX: it does not.
  void cut_power_after(std::uint64_t writes);
  [[nodiscard]] bool powered() const;

  // The next `count` writes fail, leaving `remains` behind.
  void fail_writes(std::size_t count, Remains remains);
  // Reads that touch `range` fail with kIo. An empty range ends it.
  void fail_reads(ByteRange range);
  // The next write lands at `offset` instead and reports success.
  void misdirect_next_write(std::uint64_t offset);
  // The next write reports success and never reaches the medium.
  void drop_next_write();
  // Writes to pages that hold nothing yet fail with kNoSpace once so many bytes are in use.
  void set_capacity(std::uint64_t bytes);
  // Where a misdirected or dropped write has left other bytes than the writer believes.
  [[nodiscard]] const std::vector<ByteRange>& lies() const { return lies_; }
  // Completions wait until release(), which lets them go in order.
  void hold();
  void release();
  [[nodiscard]] std::size_t held() const { return held_.size(); }

  // The medium itself, past every fault.
  void flip_bit(std::uint64_t byte, unsigned bit);
  void overwrite(std::uint64_t offset, std::span<const std::byte> bytes);
  [[nodiscard]] std::vector<std::byte> bytes(ByteRange range) const;

  // Successful and failed writes since the start, in the order of their completions.
  [[nodiscard]] const std::vector<ByteRange>& writes() const { return writes_; }
  [[nodiscard]] std::size_t in_flight() const { return in_flight_.size(); }
  // What was to be fetched, since the start.
  [[nodiscard]] const std::vector<ByteRange>& prefetched() const { return prefetched_; }
  // How often submit_now() was called.
  [[nodiscard]] std::size_t submits() const { return submits_; }

 private:
  using Sector = std::array<std::byte, kSectorBytes>;
  using Sectors = std::map<std::uint64_t, Sector>;  // by offset
  using Page = std::array<std::byte, kBlockBytes>;
  struct Write {
    std::uint64_t offset = 0;
    std::vector<logging::ConstBytes> parts;
    logging::Durability durability = logging::Durability::kVolatile;
    [[nodiscard]] std::uint64_t length() const;
  };
  struct InFlight {
    std::optional<Write> write;  // else a flush or a read
    std::optional<std::list<Sectors>::iterator> flush;
    std::uint64_t offset = 0;
    std::span<std::byte> to;
    Completion done;
  };

  // All of these with mutex_ held.
  void copy_out(std::uint64_t offset, std::span<std::byte> to) const;
  void put(std::uint64_t offset, std::span<const std::byte> bytes);
  void put_sectors(const Write& write, const std::vector<bool>& chosen, bool durable);
  std::vector<bool> any_sectors(std::uint64_t count);
  void lose_power();
  Result<void> do_read(std::uint64_t offset, std::span<std::byte> to);
  Result<void> do_write(Write write);
  Result<void> do_flush(std::list<Sectors>::iterator flush);
  bool runs_full(const Write& write) const;
  std::uint64_t random(std::uint64_t below);

  void start(InFlight operation);
  void complete(std::list<InFlight>::iterator operation);

  Executor& executor_;
  const Options options_;
  mutable std::mutex mutex_;
  std::mt19937_64 random_;
  std::unordered_map<std::uint64_t, std::unique_ptr<Page>> pages_;  // what a read sees now
  Sectors durable_;  // what a sector not yet durable holds on the medium
  // What flushes under way, in the order of their calls, will make durable, as it was then; without
  // what has become durable since.
  std::list<Sectors> flushes_;
  bool powered_ = true;
  std::uint64_t writes_to_power_cut_ = UINT64_MAX;
  std::size_t failing_writes_ = 0;
  Remains remains_ = Remains::kNothing;
  ByteRange unreadable_{};
  std::optional<std::uint64_t> misdirected_to_;
  bool dropping_ = false;
  std::vector<ByteRange> lies_;
  std::uint64_t capacity_ = UINT64_MAX;
  bool holding_ = false;
  std::list<InFlight> in_flight_;  // the owner's thread only, as are the next two
  std::vector<std::list<InFlight>::iterator> held_;
  std::vector<ByteRange> writes_;
  std::size_t submits_ = 0;
  std::vector<ByteRange> prefetched_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace mariner::test
