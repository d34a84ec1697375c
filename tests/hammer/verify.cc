#include "tests/hammer/verify.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "tests/hammer/content.h"
#include "tests/hammer/history_match.h"

namespace mariner::hammer {
namespace {

// What a LUN holds of a region.
class Snapshot {
 public:
  Snapshot(CellRange region, std::vector<std::byte> bytes)
      : region_(region), bytes_(std::move(bytes)) {}
  [[nodiscard]] ConstCell at(std::uint64_t cell) const {
    return std::span(bytes_).subspan((cell - region_.first) * kCellBytes).first<kCellBytes>();
  }
  [[nodiscard]] CellRange region() const { return region_; }

 private:
  CellRange region_;
  std::vector<std::byte> bytes_;
};

Result<Snapshot> take_snapshot(const VerifyOptions& options) {
  auto initiator = Initiator::connect(options.initiator);
  if (!initiator) return initiator.error();
  CellRange region = options.region;
  if (region.count == 0) region = {0, (*initiator)->cells()};
  auto bytes = read_range(**initiator, region);
  if (!bytes) return bytes.error();
  (*initiator)->logout();
  return Snapshot(region, std::move(*bytes));
}

void add_fault(VerifyReport& report, std::string text) {
  if (report.faults.size() < VerifyReport::kFaultsMax) report.faults.push_back(std::move(text));
}

// What became of a write that nobody acknowledged; `before` is the state without it.
Outcome resolve(const Write& write, const Snapshot& snapshot, const State& before) {
  bool present = true;
  bool absent = true;
  const std::uint64_t first = std::max(write.first_cell, snapshot.region().first);
  const std::uint64_t end = std::min(write.end_cell(), snapshot.region().end());
  for (std::uint64_t cell = first; cell < end; ++cell) {
    present = present && cell_holds(snapshot.at(cell), &write, cell);
    absent = absent && cell_holds(snapshot.at(cell), before.shown(cell), cell);
  }
  if (present && absent) return Outcome::kSame;
  if (present) return Outcome::kPresent;
  return absent ? Outcome::kAbsent : Outcome::kUnknown;
}

void compare(const Snapshot& snapshot, const State& state, VerifyReport& report) {
  const CellRange region = snapshot.region();
  report.cells = region.count;
  for (std::uint64_t cell = region.first; cell < region.end(); ++cell) {
    const Write* expected = state.shown(cell);
    if (cell_holds(snapshot.at(cell), expected, cell)) continue;
    add_fault(report,
              fmt::format("cell {} (block {}): expected {}, found {}", cell, cell / kCellsPerBlock,
                          expected == nullptr ? std::string("never written")
                                              : fmt::format("write {} of kind {}", expected->id,
                                                            static_cast<char>(expected->kind)),
                          describe_cell(snapshot.at(cell))));
  }
}

}  // namespace

Result<VerifyReport> verify_volume(const VerifyOptions& options) {
  auto writes = load_campaign(options.campaign);
  if (!writes) return writes.error();
  auto snapshot = take_snapshot(options);
  if (!snapshot) return snapshot.error();

  VerifyReport report;
  report.writes = writes->size();
  const State before = newest_state(snapshot->region(), *writes);
  std::unordered_map<std::uint64_t, Outcome> resolved;
  for (Write& write : *writes) {
    if (write.outcome != Outcome::kUnknown) continue;
    const Outcome outcome = resolve(write, *snapshot, before);
    if (outcome == Outcome::kUnknown) {
      add_fault(report, fmt::format("write {} ({} cells at {}) was not acknowledged and is there "
                                    "in part",
                                    write.id, write.cells, write.first_cell));
      continue;
    }
    resolved.emplace(write.id, outcome);
    ++(outcome == Outcome::kPresent ? report.present : report.absent);
  }
  for (Write& write : *writes) {
    if (const auto it = resolved.find(write.id); it != resolved.end()) write.outcome = it->second;
  }
  compare(*snapshot, newest_state(snapshot->region(), *writes), report);
  if (report.faults.empty()) {
    if (auto recorded = record_resolutions(options.campaign, resolved); !recorded) {
      return recorded.error();
    }
  }
  return report;
}

Result<VerifyReport> verify_moment(const VerifyOptions& options, const ViewOptions& view) {
  auto writes = load_campaign(options.campaign);
  if (!writes) return writes.error();
  auto history = read_history(view.history);
  if (!history) return history.error();
  if (view.listed_ns) {
    for (Write& write : *writes) {
      if (write.acknowledged_ns > *view.listed_ns) write.outcome = Outcome::kUnknown;
    }
  }
  Match match = match_history(*history, *writes);
  if (view.asked_ns) check_moment(view.sequence, *view.asked_ns, match);

  VerifyReport report;
  report.writes = writes->size();
  report.records = match.history.size();
  for (std::string& fault : match.faults) add_fault(report, std::move(fault));
  auto snapshot = take_snapshot(options);
  if (!snapshot) return snapshot.error();
  compare(*snapshot, state_at(snapshot->region(), match.history, view.sequence), report);
  return report;
}

}  // namespace mariner::hammer
