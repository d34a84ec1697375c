#include "server/client/table.h"

#include <algorithm>

#include "proto/check.h"

namespace mariner::client {
namespace {

std::string padded(const std::string& text, std::size_t width, bool right) {
  const auto used = display_width(text);
  const std::string blanks(width > used ? width - used : 0, ' ');
  return right ? blanks + text : text + blanks;
}

void trim_end(std::string& text) { text.erase(text.find_last_not_of(' ') + 1); }

}  // namespace

std::size_t display_width(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  }));
}

Table::Table(std::vector<std::string> headings) : headings_(std::move(headings)) {
  for (auto& heading : headings_) {
    right_.push_back(heading.starts_with('>'));
    if (right_.back()) heading.erase(0, 1);
  }
}

void Table::add(std::vector<std::string> cells) {
  CHECK(cells.size() == headings_.size());
  for (auto& cell : cells) cell = printable(cell);
  rows_.push_back(std::move(cells));
}

std::string Table::text(const Console& console) const {
  std::vector<std::size_t> widths;
  for (std::size_t i = 0; i < headings_.size(); ++i) {
    auto width = display_width(headings_[i]);
    for (const auto& row : rows_) width = std::max(width, display_width(row[i]));
    widths.push_back(width);
  }
  const auto line = [&](const std::vector<std::string>& cells) {
    std::string text;
    for (std::size_t i = 0; i < cells.size(); ++i)
      text += (i == 0 ? "" : "  ") + padded(cells[i], widths[i], right_[i]);
    trim_end(text);
    return text;
  };
  auto text = console.bold(line(headings_)) + "\n";
  for (const auto& row : rows_) text += line(row) + "\n";
  return text;
}

void Facts::add(std::string label, std::string_view value) {
  facts_.emplace_back(std::move(label), printable(value));
}

std::string Facts::text(const Console& console) const {
  std::size_t width = 0;
  for (const auto& [label, value] : facts_) width = std::max(width, display_width(label));
  std::string text;
  for (const auto& [label, value] : facts_) {
    text += console.dim(padded(label, width, false)) + "  " + value + "\n";
  }
  return text;
}

}  // namespace mariner::client
