// Aligned columns for people.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "server/client/console.h"

namespace mariner::client {

// How many columns of a terminal `text` takes; every character counts as one.
[[nodiscard]] std::size_t display_width(std::string_view text);

class Table {
 public:
  // Headings; one that begins with '>' is of a column that is aligned right.
  explicit Table(std::vector<std::string> headings);

  // As many cells as there are headings. Cells are made printable.
  void add(std::vector<std::string> cells);

  [[nodiscard]] bool empty() const { return rows_.empty(); }
  // The headings bold, two blanks between columns, no blanks at the ends of lines.
  [[nodiscard]] std::string text(const Console& console) const;

 private:
  std::vector<std::string> headings_;
  std::vector<bool> right_;
  std::vector<std::vector<std::string>> rows_;
};

// "label   value" lines, the labels dim.
class Facts {
 public:
  void add(std::string label, std::string_view value);
  [[nodiscard]] std::string text(const Console& console) const;

 private:
  std::vector<std::pair<std::string, std::string>> facts_;
};

}  // namespace mariner::client
