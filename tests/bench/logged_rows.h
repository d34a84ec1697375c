// An engine of rows with a log in front of it: an update is durable in the log (redo_record.h)
// before the engine gets it, and counts from then on.
//
// While one record is on its way to the log, updates gather for the next one. At most
// `outstanding_max` are under way: who brings more waits, as so many clients do that each wait for
// their own. Lookups see what is under way, too.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <vector>

#include "proto/payload.h"
#include "tests/bench/latency_histogram.h"
#include "tests/bench/row_engine.h"
#include "tests/bench/update_log.h"

namespace mariner::bench {

class LoggedRows final : public RowEngine {
 public:
  // All of them outlive it.
  struct Parts {
    RowEngine& rows;
    UpdateLog& log;
    RingLoop& loop;
  };
  struct Options {
    std::size_t outstanding_max = 256;
    std::size_t value_bytes_max = 0;  // of a row
  };
  LoggedRows(const Parts& parts, const Options& options);
  ~LoggedRows() override { settle(); }

  [[nodiscard]] std::string name() const override { return rows_.name() + ", " + log_.name(); }
  // Past the log.
  void load(std::uint32_t table, const Next& next) override { rows_.load(table, next); }
  void apply(std::span<const RowUpdate> updates) override;
  void begin_find(std::uint32_t table, KeyRange range, Found done) override;
  std::uint64_t count(std::uint32_t table, KeyRange range) override;
  void poll() override;
  void commit() override;
  [[nodiscard]] EngineCounts counts() const override { return rows_.counts(); }

  // Until every update has been applied.
  void settle();
  // Updates that are durable and applied, and how long each of them took from apply() on.
  [[nodiscard]] std::uint64_t applied() const { return applied_; }
  [[nodiscard]] const LatencyHistogram& latency() const { return latency_; }
  void forget_latency() { latency_ = {}; }

 private:
  using Clock = std::chrono::steady_clock;
  struct Batch {
    Payload record;
    std::size_t bytes = 0;
    std::vector<RowUpdate> updates;  // as they stand in the record
    std::vector<Clock::time_point> came;
  };

  void add(const RowUpdate& update);
  void begin_record();
  void turn();
  void wait();
  // How many updates under way may have the key: more than none where one has.
  [[nodiscard]] std::uint16_t& under_way(std::uint32_t table, IndexKey key);
  [[nodiscard]] std::size_t outstanding() const {
    return gathering_.updates.size() + in_log_.updates.size();
  }

  RowEngine& rows_;
  UpdateLog& log_;
  RingLoop& loop_;
  const Options options_;
  Batch gathering_;
  Batch in_log_;
  bool durable_ = false;                         // in_log_ is
  std::array<std::uint16_t, 4096> under_way_{};  // by a hash of the key
  std::uint64_t applied_ = 0;
  LatencyHistogram latency_;
};

}  // namespace mariner::bench
