// Updates of rows as they stand in a log: one behind another, little-endian, in whole blocks.
//
//   0  u32  1 the row is put, 2 it goes, 0 the record ends here
//   4  u32  table
//   8  u32  bytes of the value
//  12  16   key
//  28       value
#pragma once

#include <algorithm>
#include <cstring>
#include <optional>
#include <span>
#include <vector>

#include "proto/bytes.h"
#include "tests/bench/row_engine.h"

namespace mariner::bench {

inline constexpr std::size_t kRedoHeaderBytes = 12 + index::kKeyBytes;
enum class RedoKind : std::uint32_t { kEnd = 0, kPut = 1, kErase = 2 };

[[nodiscard]] inline std::size_t redo_bytes(std::size_t value_bytes) {
  return kRedoHeaderBytes + value_bytes;
}

// The update as it stands in `to`, which has redo_bytes() for it.
inline RowUpdate put_redo(const RowUpdate& update, std::byte* to) {
  const RedoKind kind = update.value.empty() ? RedoKind::kErase : RedoKind::kPut;
  store_le(to, static_cast<std::uint32_t>(kind));
  store_le(to + 4, update.table);
  store_le(to + 8, static_cast<std::uint32_t>(update.value.size()));
  index::store_key(to + 12, update.key);
  std::ranges::copy(update.value, to + kRedoHeaderBytes);
  return {update.table, update.key, {to + kRedoHeaderBytes, update.value.size()}};
}

// The updates of a record, valid as long as its bytes. Nothing when it is none.
[[nodiscard]] inline std::optional<std::vector<RowUpdate>> parse_redo(
    std::span<const std::byte> record) {
  std::vector<RowUpdate> updates;
  while (record.size() >= kRedoHeaderBytes) {
    const auto kind = static_cast<RedoKind>(load_le<std::uint32_t>(record.data()));
    const std::size_t value_bytes = load_le<std::uint32_t>(record.data() + 8);
    if (kind == RedoKind::kEnd) break;
    if (kind > RedoKind::kErase || value_bytes > record.size() - kRedoHeaderBytes ||
        (kind == RedoKind::kErase) != (value_bytes == 0)) {
      return std::nullopt;
    }
    updates.push_back({load_le<std::uint32_t>(record.data() + 4),
                       index::load_key(record.data() + 12),
                       record.subspan(kRedoHeaderBytes, value_bytes)});
    record = record.subspan(redo_bytes(value_bytes));
  }
  return updates;
}

}  // namespace mariner::bench
