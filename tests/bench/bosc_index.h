// The index engine of this project: both trees on one BOSC store, on the thread that drives them.
#pragma once

#include <array>
#include <atomic>
#include <memory>

#include "index/bosc.h"
#include "index/btree.h"
#include "logging/file_disk.h"
#include "tests/bench/index_engine.h"
#include "tests/bench/ring_loop.h"

namespace mariner::bench {

class BoscIndex final : public IndexEngine {
 public:
  struct Options {
    std::string path;  // made anew
    std::uint64_t disk_bytes = 0;
    std::uint32_t block_bytes = 16384;
    index::BoscOptions store;
    std::uint64_t window_versions = 0;  // of them are kept; 0: all
  };
  static Result<std::unique_ptr<BoscIndex>> create(const Options& options);
  ~BoscIndex() override;

  [[nodiscard]] std::string name() const override { return "Mariner"; }
  Result<void> load(const Next& next_by_block, const Next& next_by_time) override;
  void insert(const BenchVersion& version) override;
  std::optional<BenchVersion> find(std::uint64_t block, std::uint64_t sequence) override;
  void begin_find(std::uint64_t block, std::uint64_t sequence,
                  std::function<void(std::optional<BenchVersion>)> done) override;
  void poll() override { loop_->poll(); }
  std::uint64_t scan(std::uint64_t first, std::uint64_t blocks) override;
  void commit() override;
  [[nodiscard]] EngineCounts counts() const override;
  [[nodiscard]] const index::Bosc& store() const { return *store_; }

 private:
  BoscIndex() = default;
  void make_room();
  void insert_pending();

  // As many as a batch of the log brings.
  static constexpr std::size_t kBatch = 32;
  struct Pending {
    BenchVersion version;
    std::uint64_t number = 0;
    std::array<std::byte, 32> value{};
  };

  // Versions before the window go when their leaf is committed.
  class Window final : public index::RecordFilter {
   public:
    [[nodiscard]] bool is_expired(index::IndexKey key, std::span<const std::byte>) const override {
      return key.low < floor.load(std::memory_order_relaxed);
    }
    std::atomic<std::uint64_t> floor{0};
  };

  Window window_;
  std::uint64_t window_versions_ = 0;
  std::unique_ptr<RingLoop> loop_;
  std::unique_ptr<logging::FileDisk> disk_;
  std::unique_ptr<index::Bosc> store_;
  std::unique_ptr<index::BTree> by_time_;
  std::unique_ptr<index::BTree> by_block_;
  std::uint64_t number_ = 0;
  std::array<Pending, kBatch> pending_;
  std::size_t pending_count_ = 0;
};

}  // namespace mariner::bench
