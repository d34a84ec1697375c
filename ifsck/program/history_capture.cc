#include "ifsck/program/history_capture.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "ifsck/write_trace.h"

namespace mariner::ifsck {
namespace {

// Asked for at a time.
constexpr std::size_t kBlocksAtOnce = 2048;
static_assert(kBlocksAtOnce <= kTraceBlocksMax);

bool is_zeros(std::span<const std::byte> bytes) {
  return std::ranges::all_of(bytes, [](std::byte each) { return each == std::byte{0}; });
}

// Blocks of one write that lie side by side.
struct Piece {
  SequenceNumber sequence;
  VersionTime time;
  BlockRange range;
};

class Capturer {
 public:
  Capturer(Past& past, const CaptureOptions& options) : past_(past), options_(options) {}

  Result<Capture> run() {
    if (const auto good = check(); !good) return good.error();
    if (const auto done = copy_image(); !done) return done.error();
    auto versions = find_versions();
    if (!versions) return versions.error();
    if (const auto done = copy_writes(pieces_of(*std::move(versions))); !done) return done.error();
    return captured_;
  }

 private:
  Result<void> check() {
    const auto reach = past_.reach();
    if (!reach) return reach.error();
    if (options_.from >= reach->oldest && options_.from <= options_.to &&
        options_.to <= reach->newest) {
      return {};
    }
    return Error{ErrorCode::kOutsideWindow,
                 fmt::format("what is known are the moments from {} to {}, not from {} to {}",
                             reach->oldest.value, reach->newest.value, options_.from.value,
                             options_.to.value)};
  }

  Result<void> copy_image() {
    const int fd = ::open(options_.image.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (fd < 0) return errno_error(errno, options_.image);
    const TraceFile image(fd);
    if (::ftruncate(fd, static_cast<off_t>(past_.size_bytes())) != 0) {
      return errno_error(errno, options_.image);
    }
    const std::uint64_t end = past_.size_bytes() >> kBlockShift;
    for (std::uint64_t first = 0; first < end; first += kBlocksAtOnce) {
      const BlockRange range{{first}, {std::min<std::uint64_t>(kBlocksAtOnce, end - first)}};
      const auto bytes = read(range, options_.from);
      if (!bytes) return bytes.error();
      for (std::uint64_t i = 0; i < range.count.value; ++i) {
        const auto block = bytes->subspan(i * kBlockBytes, kBlockBytes);
        if (is_zeros(block)) continue;
        const Lbn lbn = range.first + BlockCount{i};
        if (const auto put = image.write(lbn.byte_offset(), block); !put) return put.error();
        ++captured_.image_blocks;
      }
    }
    return {};
  }

  // Good until the next.
  Result<std::span<const std::byte>> read(const BlockRange& range, SequenceNumber at) {
    std::vector<Past::Question> questions;
    for (Lbn lbn = range.first; lbn < range.end(); lbn = lbn + BlockCount{1}) {
      questions.push_back({lbn, at});
    }
    bytes_.resize(range.count.bytes());
    if (const auto got = past_.read(questions, bytes_); !got) return got.error();
    return std::span<const std::byte>(bytes_);
  }

  Result<std::vector<Past::Version>> find_versions() {
    const auto changed = past_.changed(options_.from, options_.to);
    if (!changed) return changed.error();
    std::vector<Past::Version> all;
    std::vector<Lbn> asked;
    const auto ask = [&]() -> Result<void> {
      const auto some = past_.versions(asked, options_.from, options_.to);
      if (!some) return some.error();
      all.insert(all.end(), some->begin(), some->end());
      asked.clear();
      return {};
    };
    for (const BlockRange& range : *changed) {
      for (Lbn lbn = range.first; lbn < range.end(); lbn = lbn + BlockCount{1}) {
        asked.push_back(lbn);
        if (asked.size() < kBlocksAtOnce) continue;
        if (const auto done = ask(); !done) return done.error();
      }
    }
    if (const auto done = ask(); !done) return done.error();
    return all;
  }

  static std::vector<Piece> pieces_of(std::vector<Past::Version> versions) {
    std::ranges::sort(versions, {}, [](const Past::Version& each) {
      return std::tuple(each.sequence, each.block);
    });
    std::vector<Piece> pieces;
    for (const Past::Version& each : versions) {
      if (!pieces.empty() && pieces.back().sequence == each.sequence &&
          pieces.back().range.end() == each.block &&
          pieces.back().range.count.value < kBlocksAtOnce) {
        pieces.back().range.count = pieces.back().range.count + BlockCount{1};
      } else {
        pieces.push_back({each.sequence, each.time, {each.block, {1}}});
      }
    }
    return pieces;
  }

  Result<void> copy_writes(const std::vector<Piece>& pieces) {
    auto trace = TraceWriter::create(options_.trace, past_.size_bytes());
    if (!trace) return trace.error();
    SequenceNumber last;
    VersionTime last_time;
    for (const Piece& piece : pieces) {
      const auto bytes = read(piece.range, piece.sequence);
      if (!bytes) return bytes.error();
      const VersionTime time{std::max(piece.time.ns, last_time.ns + 1)};
      const auto put = is_zeros(*bytes) ? trace->zero(time, piece.range)
                                        : trace->write(time, piece.range.first, *bytes);
      if (!put) return put.error();
      ++captured_.records;
      captured_.written_blocks += piece.range.count.value;
      if (piece.sequence == last) ++captured_.pieces;
      last = piece.sequence;
      last_time = time;
    }
    return {};
  }

  Past& past_;
  const CaptureOptions& options_;
  std::vector<std::byte> bytes_;
  Capture captured_;
};

}  // namespace

Result<Capture> capture_history(Past& past, const CaptureOptions& options) {
  return Capturer(past, options).run();
}

}  // namespace mariner::ifsck
