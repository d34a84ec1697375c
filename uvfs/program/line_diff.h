// What changed between two texts, line by line, as `diff -u` writes it.
//
// The shortest edit, found in linear space (Myers, "An O(ND) Difference Algorithm and Its
// Variations", Algorithmica 1986, section 4b). Lines that only one text has are set apart before;
// and where texts have little in common, what is found after a bounded effort may be longer than
// the shortest, never wrong.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace mariner::uvfs {

inline constexpr std::size_t kDiffBytesMax = 64u << 20;  // of each text
inline constexpr std::size_t kDiffLinesMax = 1'000'000;

// Lines [before, before_end) of one text became [after, after_end) of the other.
struct LineChange {
  std::size_t before = 0;
  std::size_t before_end = 0;
  std::size_t after = 0;
  std::size_t after_end = 0;
  friend bool operator==(const LineChange&, const LineChange&) = default;
};

// With the newlines that end them.
[[nodiscard]] std::vector<std::string_view> lines_of(std::string_view text);

struct Texts {
  std::string_view before;
  std::string_view after;
};
// Ascending, with lines in between that both have.
[[nodiscard]] std::vector<LineChange> changed_lines(const Texts& texts);

struct DiffLabels {
  std::string before;
  std::string after;
};
// With three lines around each change; empty: they are the same.
[[nodiscard]] std::string unified_diff(const Texts& texts, const DiffLabels& labels);

}  // namespace mariner::uvfs
