#include "tests/hammer/load.h"

#include <fmt/format.h>

#include <chrono>
#include <deque>
#include <memory>
#include <optional>
#include <random>
#include <vector>

#include "tests/hammer/content.h"
#include "tests/hammer/model.h"

namespace mariner::hammer {
namespace {

constexpr std::uint32_t kBlocksMax = 64;  // 256 KiB
constexpr std::chrono::seconds kStallMax{60};

using Clock = std::chrono::steady_clock;

class Load {
 public:
  Load(const LoadOptions& options, Initiator& initiator, JournalWriter& journal,
       std::span<const Write> earlier)
      : options_(options),
        initiator_(initiator),
        journal_(journal),
        random_(options.seed),
        state_(newest_state(options.region, earlier)),
        busy_(options.region.count / kCellsPerBlock, false) {
    report_.seed = options.seed;
  }

  LoadReport run(const std::atomic<bool>& stop) {
    const auto start = Clock::now();
    const auto seconds = [&] {
      return std::chrono::duration<double>(Clock::now() - start).count();
    };
    last_progress_ = start;
    while (true) {
      // Who stops it while it logs in still has a load: of one queue.
      const bool wanted = report_.end.empty() && (!stop || report_.issued + report_.reads == 0) &&
                          (options_.writes_max == 0 || report_.issued < options_.writes_max) &&
                          (options_.seconds_max <= 0 || seconds() < options_.seconds_max);
      if (wanted) {
        fill();
      } else if (initiator_.outstanding() == 0) {
        break;
      }
      if (auto polled = initiator_.poll(1000); !polled) {
        end("lost", polled.error().message);
        break;
      }
      record(journal_.flush());
      if (Clock::now() - last_progress_ > kStallMax) {
        end("lost", "no answer for a minute");
        break;
      }
    }
    if (report_.end.empty()) report_.end = "done";
    report_.seconds = seconds();
    return report_;
  }

  [[nodiscard]] const LoadReport& report() const { return report_; }

 private:
  struct Slot {
    Write write;
    std::vector<std::byte> payload;
  };

  void end(const char* why, std::string detail) {
    if (!report_.end.empty()) return;
    report_.end = why;
    report_.detail = std::move(detail);
  }

  void record(Result<void> flushed) {
    if (!flushed) end("refused", flushed.error().message);
  }

  std::uint64_t below(std::uint64_t bound) { return random_() % bound; }

  // Fills the queue to its depth. All of it is on record before the first command is sent.
  void fill() {
    std::vector<Slot*> batch;
    while (initiator_.outstanding() + batch.size() < options_.depth) {
      if (below(100) < options_.read_percent) {
        send_read();
        continue;
      }
      auto slot = draw();
      if (!slot) break;
      journal_.issued(slot->write);
      batch.push_back(slots_.emplace_back(std::move(slot)).get());
      if (options_.writes_max != 0 && report_.issued + batch.size() >= options_.writes_max) break;
    }
    record(journal_.flush());
    for (Slot* slot : batch) send_write(slot);
  }

  // A range of the wanted length that shares no block with anything outstanding.
  std::optional<CellRange> place(std::uint64_t cells, std::uint64_t align) {
    constexpr int kTries = 64;
    for (int i = 0; i < kTries; ++i) {
      const std::uint64_t slots = (options_.region.count - cells) / align + 1;
      const CellRange range{options_.region.first + below(slots) * align, cells};
      if (!any_busy(range)) return range;
    }
    return std::nullopt;
  }

  template <typename Visit>
  void for_blocks(CellRange range, Visit visit) {
    const std::uint64_t base = options_.region.first / kCellsPerBlock;
    for (std::uint64_t block = range.first / kCellsPerBlock; block * kCellsPerBlock < range.end();
         ++block) {
      visit(block - base);
    }
  }

  bool any_busy(CellRange range) {
    bool busy = false;
    for_blocks(range, [&](std::uint64_t block) { busy = busy || busy_[block]; });
    return busy;
  }

  void set_busy(CellRange range, bool busy) {
    for_blocks(range, [&](std::uint64_t block) { busy_[block] = busy; });
  }

  Kind draw_kind() {
    const std::uint64_t draw = below(100);
    if (draw < options_.unmap_percent) return Kind::kUnmap;
    if (draw < options_.unmap_percent + options_.same_percent) {
      return below(2) == 0 ? Kind::kSame : Kind::kZeroes;
    }
    return Kind::kWrite;
  }

  // Mostly 4 to 64 KiB in whole blocks, some of 256 KiB, some that start or end inside a block.
  std::pair<std::uint64_t, std::uint64_t> draw_length(Kind kind) {
    const bool small_blocks = initiator_.block_bytes() < kCellsPerBlock * kCellBytes;
    if (options_.block_writes_only != 0) return {options_.block_writes_only, kCellsPerBlock};
    const std::uint64_t draw = below(100);
    if (draw < 8) return {kBlocksMax * kCellsPerBlock, kCellsPerBlock};
    if (draw < 20 && small_blocks && kind == Kind::kWrite) return {1 + below(40), 1};
    return {(1 + below(16)) * kCellsPerBlock, kCellsPerBlock};
  }

  std::unique_ptr<Slot> draw() {
    auto slot = std::make_unique<Slot>();
    Write& write = slot->write;
    write.kind = draw_kind();
    const auto [cells, align] = draw_length(write.kind);
    const auto range = place(cells, align);
    if (!range) return nullptr;
    set_busy(*range, true);
    write.id = journal_.next_id();
    write.first_cell = range->first;
    write.cells = static_cast<std::uint32_t>(range->count);
    const std::size_t bytes = write.kind == Kind::kWrite   ? range->count * kCellBytes
                              : write.kind == Kind::kUnmap ? 0
                                                           : initiator_.block_bytes();
    slot->payload.resize(bytes);
    fill_payload(slot->payload, write);
    write.issued_ns = now_ns();
    return slot;
  }

  void send_write(Slot* slot) {
    ++report_.issued;
    report_.payload_bytes += slot->write.cells * std::uint64_t{kCellBytes};
    auto sent = initiator_.send(slot->write, slot->payload,
                                [this, slot](int status, auto) { written(*slot, status); });
    if (!sent) end("lost", sent.error().message);
  }

  void written(Slot& slot, int status) {
    last_progress_ = Clock::now();
    Write& write = slot.write;
    slot.payload = {};
    if (status != Initiator::kGood) {
      journal_.failed(write.id, now_ns(), status);
      if (status <= 255)
        end("refused", fmt::format("write {} ended with status {}", write.id, status));
      return;  // its blocks stay busy: nobody knows what they hold
    }
    write.acknowledged_ns = now_ns();
    journal_.acknowledged(write.id, write.acknowledged_ns);
    ++report_.acknowledged;
    state_.apply(write);
    set_busy({write.first_cell, write.cells}, false);
  }

  void send_read() {
    const auto range = place(kCellsPerBlock * (1 + below(8)), kCellsPerBlock);
    if (!range) return;
    set_busy(*range, true);
    ++report_.reads;
    auto sent = initiator_.read(*range, [this, r = *range](int status, auto data) {
      last_progress_ = Clock::now();
      set_busy(r, false);
      if (status != Initiator::kGood) {
        if (status <= 255) end("refused", fmt::format("a read ended with status {}", status));
        return;
      }
      compare(r, data);
    });
    if (!sent) end("lost", sent.error().message);
  }

  void compare(CellRange range, std::span<const std::byte> data) {
    if (data.size() != range.count * kCellBytes) {
      report_.fault = fmt::format("a read of {} cells returned {} bytes", range.count, data.size());
      return;
    }
    for (std::uint64_t i = 0; i < range.count; ++i) {
      const std::uint64_t cell = range.first + i;
      const auto bytes = data.subspan(i * kCellBytes).first<kCellBytes>();
      if (cell_holds(bytes, state_.shown(cell), cell) || !report_.fault.empty()) continue;
      const Write* expected = state_.shown(cell);
      report_.fault = fmt::format("cell {}: expected write {}, read {}", cell,
                                  expected == nullptr ? 0 : expected->id, describe_cell(bytes));
    }
  }

  const LoadOptions& options_;
  Initiator& initiator_;
  JournalWriter& journal_;
  std::mt19937_64 random_;
  State state_;
  std::vector<bool> busy_;                   // by block of the region
  std::deque<std::unique_ptr<Slot>> slots_;  // all writes: the state refers to them
  Clock::time_point last_progress_;
  LoadReport report_;
};

}  // namespace

Result<LoadReport> run_load(const LoadOptions& asked, const std::atomic<bool>& stop) {
  auto earlier = load_campaign(asked.campaign);
  if (!earlier) return earlier.error();
  for (const Write& write : *earlier) {
    if (write.outcome == Outcome::kUnknown && asked.read_percent > 0) {
      return Error{ErrorCode::kInvalidArgument,
                   fmt::format("what became of write {} is not known: verify first", write.id)};
    }
  }
  LoadOptions options = asked;
  if (options.seed == 0) options.seed = now_ns();
  auto journal = JournalWriter::create(options.campaign);
  if (!journal) return journal.error();
  auto initiator = Initiator::connect(options.initiator);
  if (!initiator) return initiator.error();
  const std::uint64_t cells = (*initiator)->cells() & ~std::uint64_t{kCellsPerBlock - 1};
  if (options.region.count == 0) options.region = {0, cells};
  if (options.region.end() > cells || options.region.count < kBlocksMax * kCellsPerBlock ||
      (options.region.first | options.region.count) % kCellsPerBlock != 0) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("the region must be whole blocks, at least {}, within {} cells",
                             kBlocksMax, cells)};
  }
  // Outlives the initiator, whose end completes what is outstanding.
  Load load(options, **initiator, *journal, *earlier);
  LoadReport report = load.run(stop);
  if (report.end == "done") (*initiator)->logout();
  initiator->reset();
  report.fault = load.report().fault;
  return report;
}

}  // namespace mariner::hammer
