#include "server/client/moment_export.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "server/volume/data_runs.h"

namespace mariner::client {
namespace {

constexpr std::size_t kBatchBlocks = 2048;  // 8 MiB: as many as are expected at once

// Questions for all that is stored, ascending.
class StoredBlocks {
 public:
  StoredBlocks(PastClient& past, SequenceNumber at, Lbn end) : past_(past), at_(at), end_(end) {}

  // The next ones; empty: there are no more.
  Result<std::vector<admin::BlockQuestion>> next() {
    std::vector<admin::BlockQuestion> out;
    out.reserve(kBatchBlocks);
    while (out.size() < kBatchBlocks) {
      if (range_ == ranges_.size()) {
        if (asked_to_ >= end_) break;
        if (const Result<void> r = ask(); !r) return r.error();
        continue;
      }
      BlockRange& range = ranges_[range_];
      for (; !range.empty() && out.size() < kBatchBlocks;
           --range.count.value, ++range.first.value) {
        out.push_back({range.first, at_});
      }
      if (range.empty()) ++range_;
    }
    return out;
  }

 private:
  Result<void> ask() {
    Result<admin::StoredPart> part = past_.stored(at_, asked_to_);
    if (!part) return part.error();
    asked_to_ = part->next.value == 0 ? end_ : part->next;
    ranges_ = std::move(part->ranges);
    // (The volume may have grown since.)
    for (BlockRange& each : ranges_)
      each = BlockRange::between(each.first, std::min(each.end(), end_));
    std::erase_if(ranges_, [](const BlockRange& each) { return each.empty(); });
    range_ = 0;
    return {};
  }

  PastClient& past_;
  const SequenceNumber at_;
  const Lbn end_;
  Lbn asked_to_;
  std::vector<BlockRange> ranges_;
  std::size_t range_ = 0;
};

// Neighbours together.
Result<void> pass_on(const std::vector<admin::BlockQuestion>& questions,
                     std::span<const std::byte> bytes, ExportSink& sink, std::uint64_t& passed_on) {
  for (std::size_t from = 0; from < questions.size();) {
    std::size_t to = from + 1;
    while (to < questions.size() &&
           questions[to].block.value == questions[to - 1].block.value + 1) {
      ++to;
    }
    const std::uint64_t offset = questions[from].block.byte_offset();
    const Result<void> written =
        volume::for_each_data_run(bytes.subspan(from * kBlockBytes, (to - from) * kBlockBytes),
                                  [&](std::size_t at, std::span<const std::byte> run) {
                                    passed_on += run.size();
                                    return sink.write(offset + at, run);
                                  });
    if (!written) return written;
    from = to;
  }
  return {};
}

}  // namespace

Result<std::uint64_t> export_moment(
    PastClient& past, SequenceNumber at, ExportSink& sink,
    const std::function<void(std::uint64_t, std::uint64_t)>& progress) {
  const std::uint64_t size_bytes = past.past().size_bytes();
  StoredBlocks stored(past, at, Lbn{size_bytes >> kBlockShift});
  std::vector<std::byte> bytes(kBatchBlocks * kBlockBytes);
  std::uint64_t passed_on = 0;
  auto questions = stored.next();
  while (questions && !questions->empty()) {
    const auto answer = std::span(bytes).first(questions->size() * kBlockBytes);
    if (const Result<void> read = past.read(*questions, answer); !read) return read.error();
    auto next = stored.next();
    if (!next) return next.error();
    past.expect(*next);
    if (const Result<void> r = pass_on(*questions, answer, sink, passed_on); !r) return r.error();
    progress(questions->back().block.byte_offset() + kBlockBytes, size_bytes);
    questions = std::move(next);
  }
  if (!questions) return questions.error();
  if (const Result<void> finished = sink.finish(); !finished) return finished.error();
  progress(size_bytes, size_bytes);
  return passed_on;
}

}  // namespace mariner::client
