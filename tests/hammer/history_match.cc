#include "tests/hammer/history_match.h"

#include <fmt/format.h>
#include <google/protobuf/util/json_util.h>

#include <deque>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <tuple>
#include <unordered_set>

namespace mariner::hammer {
namespace {

// First block, blocks, and whether the record is of zeros.
using Extent = std::tuple<std::uint64_t, std::uint64_t, bool>;

Extent extent_of(const Write& write) {
  const bool zeros = write.kind == Kind::kUnmap || write.kind == Kind::kZeroes;
  return {write.first_block(), write.end_block() - write.first_block(), zeros};
}

class Matcher {
 public:
  Matcher(std::span<const Write> writes, Match& out) : writes_(writes), out_(out) {
    for (const Write& write : writes) waiting_[extent_of(write)].push_back(&write);
  }

  void record(const api::HistoryWrite& record) {
    check_order(record);
    if (record.kind() == "rollback") {
      out_.history.push_back({record.sequence(), nullptr, record.target_sequence()});
      return;
    }
    if (record.kind() != "write" && record.kind() != "zero") return;
    const Write* write = find(record);
    if (write == nullptr) {
      fault(fmt::format("sequence {}: a {} of {} blocks at {} that nobody sent", record.sequence(),
                        record.kind(), record.blocks(), record.first_block()));
      return;
    }
    matched_.insert(write->id);
    if (write->outcome == Outcome::kAbsent) {
      fault(fmt::format("sequence {}: write {} was absent after the crash and is in the history",
                        record.sequence(), write->id));
    }
    const bool too_late = write->acknowledged_ns != 0 && record.time_ns() > write->acknowledged_ns;
    if (record.time_ns() < write->issued_ns || too_late) {
      fault(
          fmt::format("sequence {}: time {} is outside of write {}'s life, issued {}, "
                      "acknowledged {}",
                      record.sequence(), record.time_ns(), write->id, write->issued_ns,
                      write->acknowledged_ns));
    }
    out_.history.push_back({record.sequence(), write, 0});
  }

  void finish() {
    for (const Write& write : writes_) {
      if (write.in_effect() && matched_.count(write.id) == 0) {
        fault(fmt::format("write {} ({} cells at {}) is in effect and has no record", write.id,
                          write.cells, write.first_cell));
      }
    }
  }

 private:
  void check_order(const api::HistoryWrite& record) {
    if (last_ && (record.sequence() <= last_->sequence() || record.time_ns() <= last_->time_ns())) {
      fault(fmt::format("sequence {} at {} follows sequence {} at {}", record.sequence(),
                        record.time_ns(), last_->sequence(), last_->time_ns()));
    }
    last_ = record;
  }

  // The first waiting write of the record's extent that can be its cause. A write without
  // acknowledgement may have no record: it is passed over when the next one was issued already.
  const Write* find(const api::HistoryWrite& record) {
    // A pattern of zeros and a zero range are the same bytes; either may be recorded as the other.
    for (const bool zeros : {record.kind() == "zero", record.kind() != "zero"}) {
      auto& queue = waiting_[{record.first_block(), record.blocks(), zeros}];
      while (queue.size() > 1 && queue.front()->outcome != Outcome::kAcknowledged &&
             record.time_ns() >= queue[1]->issued_ns) {
        queue.pop_front();
      }
      if (queue.empty()) continue;
      const Write* write = queue.front();
      queue.pop_front();
      return write;
    }
    return nullptr;
  }

  void fault(std::string text) {
    if (out_.faults.size() < Match::kFaultsMax) out_.faults.push_back(std::move(text));
  }

  std::span<const Write> writes_;
  Match& out_;
  std::map<Extent, std::deque<const Write*>> waiting_;
  std::unordered_set<std::uint64_t> matched_;
  std::optional<api::HistoryWrite> last_;
};

}  // namespace

Result<api::History> read_history(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  api::History history;
  google::protobuf::util::JsonParseOptions options;
  options.ignore_unknown_fields = true;
  const auto status = google::protobuf::util::JsonStringToMessage(text, &history, options);
  if (!status.ok()) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("{}: {}", path.string(), std::string(status.message()))};
  }
  if (history.truncated()) {
    return Error{ErrorCode::kLimit, path.string() + ": the list of writes is truncated"};
  }
  return history;
}

Match match_history(const api::History& history, std::span<const Write> writes) {
  Match match;
  Matcher matcher(writes, match);
  for (const auto& record : history.write_list()) matcher.record(record);
  matcher.finish();
  return match;
}

void check_moment(std::uint64_t sequence, std::uint64_t asked_ns, Match& match) {
  for (const Settled& event : match.history) {
    if (event.write == nullptr || match.faults.size() >= Match::kFaultsMax) continue;
    const Write& write = *event.write;
    const bool before = write.acknowledged_ns != 0 && write.acknowledged_ns <= asked_ns;
    const bool after = write.issued_ns > asked_ns;
    const bool in = event.sequence <= sequence;
    if ((before && !in) || (after && in)) {
      match.faults.push_back(
          fmt::format("write {} (sequence {}) was {} the asked time {} and is {} the moment {}",
                      write.id, event.sequence, before ? "acknowledged by" : "issued after",
                      asked_ns, in ? "in" : "not in", sequence));
    }
  }
}

}  // namespace mariner::hammer
