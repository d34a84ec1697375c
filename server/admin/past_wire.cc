#include "server/admin/past_wire.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <initializer_list>

#include "proto/bytes.h"

namespace mariner::admin {
namespace {

constexpr std::size_t kNumberBytes = 8;

void append(std::string& to, std::initializer_list<std::uint64_t> numbers) {
  for (const std::uint64_t number : numbers) {
    to.resize(to.size() + kNumberBytes);
    store_le(to.data() + to.size() - kNumberBytes, number);
  }
}

// Rows of so many numbers, behind so many others.
class Rows {
 public:
  Rows(std::string_view bytes, std::size_t in_front, std::size_t columns)
      : bytes_(bytes), in_front_(in_front), columns_(columns) {}
  [[nodiscard]] bool whole() const {
    return bytes_.size() >= in_front_ * kNumberBytes &&
           (bytes_.size() - in_front_ * kNumberBytes) % (columns_ * kNumberBytes) == 0;
  }
  [[nodiscard]] std::size_t count() const {
    return (bytes_.size() - in_front_ * kNumberBytes) / (columns_ * kNumberBytes);
  }
  [[nodiscard]] std::uint64_t in_front() const { return number(0); }
  [[nodiscard]] std::uint64_t at(std::size_t row, std::size_t column) const {
    return number(in_front_ + row * columns_ + column);
  }

 private:
  [[nodiscard]] std::uint64_t number(std::size_t index) const {
    return load_le<std::uint64_t>(bytes_.data() + index * kNumberBytes);
  }
  std::string_view bytes_;
  std::size_t in_front_;
  std::size_t columns_;
};

Result<void> check_request(const Rows& rows, std::size_t most, std::string_view bytes) {
  if (!rows.whole() || rows.count() == 0) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("a body of {} bytes is no list of questions", bytes.size())};
  }
  if (rows.count() <= most) return {};
  return Error{ErrorCode::kLimit,
               fmt::format("{} questions in one request: expected {} at most", rows.count(), most)};
}

Error not_understood(std::string_view bytes) {
  return Error{ErrorCode::kProtocol,
               fmt::format("the daemon's answer of {} bytes is not understood", bytes.size())};
}

}  // namespace

std::string pack_questions(std::span<const BlockQuestion> questions) {
  std::string out;
  out.reserve(questions.size() * 2 * kNumberBytes);
  for (const BlockQuestion& each : questions) append(out, {each.block.value, each.at.value});
  return out;
}

Result<std::vector<BlockQuestion>> parse_questions(std::string_view bytes) {
  const Rows rows(bytes, 0, 2);
  if (const Result<void> good = check_request(rows, kBlockQuestionsMax, bytes); !good) {
    return good.error();
  }
  std::vector<BlockQuestion> out(rows.count());
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = {{rows.at(i, 0)}, {rows.at(i, 1)}};
  return out;
}

std::string pack_versions_request(const VersionsRequest& request) {
  std::string out;
  append(out, {request.to.value});
  for (const BlockSince& each : request.blocks) append(out, {each.block.value, each.after.value});
  return out;
}

Result<VersionsRequest> parse_versions_request(std::string_view bytes) {
  const Rows rows(bytes, 1, 2);
  if (const Result<void> good = check_request(rows, kVersionBlocksMax, bytes); !good) {
    return good.error();
  }
  VersionsRequest out{{rows.in_front()}, std::vector<BlockSince>(rows.count())};
  for (std::size_t i = 0; i < out.blocks.size(); ++i) {
    out.blocks[i] = {{rows.at(i, 0)}, {rows.at(i, 1)}};
  }
  if (std::ranges::adjacent_find(out.blocks, std::greater_equal{}, &BlockSince::block) !=
      out.blocks.end()) {
    return Error{ErrorCode::kInvalidArgument, "the blocks do not ascend"};
  }
  return out;
}

std::string pack_changed(const ChangedPart& part) {
  std::string out;
  append(out, {part.next.value});
  for (const BlockRange& each : part.ranges) append(out, {each.first.value, each.count.value});
  return out;
}

Result<ChangedPart> parse_changed(std::string_view bytes) {
  const Rows rows(bytes, 1, 2);
  if (!rows.whole() || rows.count() > kChangedRangesMax) return not_understood(bytes);
  ChangedPart out{std::vector<BlockRange>(rows.count()), {rows.in_front()}};
  Lbn end;
  for (std::size_t i = 0; i < out.ranges.size(); ++i) {
    const BlockRange range{{rows.at(i, 0)}, {rows.at(i, 1)}};
    const bool behind = i == 0 || range.first > end;
    if (!behind || range.empty() || range.end() < range.first) return not_understood(bytes);
    out.ranges[i] = range;
    end = range.end();
  }
  if (out.next.value != 0 && out.next < end) return not_understood(bytes);
  return out;
}

std::string pack_versions(const VersionsPart& part) {
  std::string out;
  append(out, {part.more ? 1u : 0u});
  for (const BlockVersion& each : part.list) {
    append(out, {each.block.value, each.sequence.value, each.time.ns});
  }
  return out;
}

Result<VersionsPart> parse_versions(std::string_view bytes) {
  const Rows rows(bytes, 1, 3);
  if (!rows.whole() || rows.count() > kVersionsMax || rows.in_front() > 1 ||
      (rows.count() == 0 && rows.in_front() != 0)) {
    return not_understood(bytes);
  }
  VersionsPart out{std::vector<BlockVersion>(rows.count()), rows.in_front() == 1};
  for (std::size_t i = 0; i < out.list.size(); ++i) {
    out.list[i] = {{rows.at(i, 0)}, {rows.at(i, 1)}, {rows.at(i, 2)}};
  }
  return out;
}

}  // namespace mariner::admin
