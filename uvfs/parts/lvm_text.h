// The text of LVM2's metadata as a tree: sections of sections and of values.
//
//   vg0 { id = "uOEW4T-..." extent_size = 8192 status = ["READ", "WRITE"] logical_volumes { ... } }
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "proto/error.h"

namespace mariner::uvfs {

struct LvmNode {
  static constexpr std::size_t kDepthMax = 16;       // of sections within each other; LVM2 has five
  static constexpr std::size_t kNodesMax = 200'000;  // values, too

  using Value = std::variant<std::int64_t, std::string>;

  std::string key;
  bool is_section = false;
  std::vector<LvmNode> children;  // of a section
  std::vector<Value> values;      // of others: one, or those of a list

  // The whole text as a section without a name. kCorrupt, with the line; kLimit.
  [[nodiscard]] static Result<LvmNode> parse(std::string_view text);

  // The first child of that name; null: there is none of that kind.
  [[nodiscard]] const LvmNode* section(std::string_view name) const;
  [[nodiscard]] const LvmNode* list(std::string_view name) const;
  // Of a child with one value, of that kind.
  [[nodiscard]] std::optional<std::uint64_t> number(std::string_view name) const;
  [[nodiscard]] std::optional<std::string_view> string(std::string_view name) const;
  // Whether the list `name` has the string.
  [[nodiscard]] bool lists(std::string_view name, std::string_view string) const;
};

}  // namespace mariner::uvfs
