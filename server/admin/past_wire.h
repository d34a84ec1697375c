// What goes over the admin API as bytes and not as JSON: questions about blocks of the past, and
// answers. Numbers are little-endian, of eight bytes. API.md, "Reading the past".
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "proto/error.h"
#include "proto/units.h"

namespace mariner::admin {

inline constexpr std::size_t kBlockQuestionsMax = 2048;  // of one request: 8 MiB
inline constexpr std::size_t kChangedRangesMax = 65536;  // in one answer
inline constexpr std::size_t kVersionBlocksMax = 2048;   // of one request
inline constexpr std::size_t kVersionsMax = 32768;       // in one answer

struct BlockQuestion {
  Lbn block;
  SequenceNumber at;
  friend bool operator==(const BlockQuestion&, const BlockQuestion&) = default;
};

struct ChangedPart {
  std::vector<BlockRange> ranges;  // ascending, with gaps between them
  Lbn next;                        // what changed from here on is another request; 0: nothing
  friend bool operator==(const ChangedPart&, const ChangedPart&) = default;
};
using StoredPart = ChangedPart;  // the same of what is stored

struct BlockSince {
  Lbn block;
  SequenceNumber after;
  friend bool operator==(const BlockSince&, const BlockSince&) = default;
};
struct VersionsRequest {
  SequenceNumber to;
  std::vector<BlockSince> blocks;  // ascending
  friend bool operator==(const VersionsRequest&, const VersionsRequest&) = default;
};
struct BlockVersion {
  Lbn block;
  SequenceNumber sequence;
  VersionTime time;
  friend bool operator==(const BlockVersion&, const BlockVersion&) = default;
};
struct VersionsPart {
  std::vector<BlockVersion> list;  // by block, then by sequence number
  bool more = false;               // what is behind the last one is another request
  friend bool operator==(const VersionsPart&, const VersionsPart&) = default;
};

[[nodiscard]] std::string pack_questions(std::span<const BlockQuestion> questions);
[[nodiscard]] std::string pack_versions_request(const VersionsRequest& request);
[[nodiscard]] std::string pack_changed(const ChangedPart& part);
[[nodiscard]] std::string pack_versions(const VersionsPart& part);

// kInvalidArgument, kLimit.
[[nodiscard]] Result<std::vector<BlockQuestion>> parse_questions(std::string_view bytes);
[[nodiscard]] Result<VersionsRequest> parse_versions_request(std::string_view bytes);
// kProtocol.
[[nodiscard]] Result<ChangedPart> parse_changed(std::string_view bytes);
[[nodiscard]] Result<VersionsPart> parse_versions(std::string_view bytes);

}  // namespace mariner::admin
