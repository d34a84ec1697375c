#include "uvfs/parts/lvm_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>

namespace mariner::uvfs {
namespace {

bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_of_key(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
         std::string_view("_-.+/:").find(c) != std::string_view::npos;
}

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Result<LvmNode> run() {
    LvmNode root{.is_section = true};
    if (auto done = parse_children(root, 0); !done) return done.error();
    return root;
  }

 private:
  [[nodiscard]] bool at_end() const { return at_ == text_.size(); }
  // The next character; NUL: there is none.
  [[nodiscard]] char next() const { return at_end() ? '\0' : text_[at_]; }
  bool take(char c) {
    if (at_end() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  void skip_space() {
    while (!at_end()) {
      if (next() == '#') {
        at_ = std::min(text_.find('\n', at_), text_.size());
      } else if (is_space(next())) {
        ++at_;
      } else {
        return;
      }
    }
  }
  [[nodiscard]] Error error(std::string_view what, ErrorCode code = ErrorCode::kCorrupt) const {
    const auto line = 1 + std::ranges::count(text_.substr(0, at_), '\n');
    return {code, fmt::format("line {}: {}", line, what)};
  }
  Result<void> count() {
    if (++nodes_ <= LvmNode::kNodesMax) return {};
    return error(fmt::format("more than {} values", LvmNode::kNodesMax), ErrorCode::kLimit);
  }

  Result<void> parse_children(LvmNode& section, std::size_t depth) {
    if (depth > LvmNode::kDepthMax) {
      return error(fmt::format("more than {} sections within each other", LvmNode::kDepthMax),
                   ErrorCode::kLimit);
    }
    for (skip_space(); !at_end() && next() != '}'; skip_space()) {
      auto child = parse_child(depth);
      if (!child) return child.error();
      section.children.push_back(std::move(*child));
    }
    if (depth > 0) return take('}') ? Result<void>{} : error("a section is not closed");
    return at_end() ? Result<void>{} : error("a section is closed that was not opened");
  }

  Result<LvmNode> parse_child(std::size_t depth) {
    if (auto good = count(); !good) return good.error();
    LvmNode node;
    const std::size_t begin = at_;
    while (!at_end() && is_of_key(next())) ++at_;
    if (at_ == begin) return error("expected a name");
    node.key = text_.substr(begin, at_ - begin);
    skip_space();
    if (take('{')) {
      node.is_section = true;
      if (auto done = parse_children(node, depth + 1); !done) return done.error();
      return node;
    }
    if (!take('=')) return error(fmt::format("expected = or {{ behind {}", node.key));
    skip_space();
    if (auto done = take('[') ? parse_list(node) : parse_value(node); !done) return done.error();
    return node;
  }

  Result<void> parse_list(LvmNode& node) {
    skip_space();
    if (take(']')) return {};
    do {
      skip_space();
      if (auto done = parse_value(node); !done) return done;
      skip_space();
    } while (take(','));
    return take(']') ? Result<void>{} : error("a list is not closed");
  }

  Result<void> parse_value(LvmNode& node) {
    if (auto good = count(); !good) return good;
    if (next() == '"' || next() == '\'') return parse_string(node);
    const std::size_t begin = at_;
    if (next() == '-' || next() == '+') ++at_;
    while (is_digit(next()) || next() == '.') ++at_;
    std::string_view word = text_.substr(begin, at_ - begin);
    if (word.starts_with('+')) word.remove_prefix(1);
    std::int64_t number = 0;
    const auto [end, failed] = std::from_chars(word.data(), word.data() + word.size(), number);
    if (failed != std::errc{}) return error("expected a value");
    // (Fractions are in no metadata; they are kept as they are written.)
    if (end == word.data() + word.size()) {
      node.values.emplace_back(number);
    } else {
      node.values.emplace_back(std::string(word));
    }
    return {};
  }

  Result<void> parse_string(LvmNode& node) {
    const char quote = text_[at_++];
    std::string value;
    while (!at_end() && next() != quote) {
      if (next() == '\\' && quote == '"') ++at_;
      if (at_end()) break;
      value += text_[at_++];
    }
    if (!take(quote)) return error("a string is not closed");
    node.values.emplace_back(std::move(value));
    return {};
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::size_t nodes_ = 0;
};

}  // namespace

Result<LvmNode> LvmNode::parse(std::string_view text) { return Parser(text).run(); }

const LvmNode* LvmNode::section(std::string_view name) const {
  const auto found = std::ranges::find_if(
      children, [name](const LvmNode& each) { return each.is_section && each.key == name; });
  return found == children.end() ? nullptr : &*found;
}

const LvmNode* LvmNode::list(std::string_view name) const {
  const auto found = std::ranges::find_if(
      children, [name](const LvmNode& each) { return !each.is_section && each.key == name; });
  return found == children.end() ? nullptr : &*found;
}

std::optional<std::uint64_t> LvmNode::number(std::string_view name) const {
  const LvmNode* const node = list(name);
  if (node == nullptr || node->values.size() != 1) return {};
  const auto* const value = std::get_if<std::int64_t>(&node->values.front());
  if (value == nullptr || *value < 0) return {};
  return static_cast<std::uint64_t>(*value);
}

std::optional<std::string_view> LvmNode::string(std::string_view name) const {
  const LvmNode* const node = list(name);
  if (node == nullptr || node->values.size() != 1) return {};
  const auto* const value = std::get_if<std::string>(&node->values.front());
  if (value == nullptr) return {};
  return *value;
}

bool LvmNode::lists(std::string_view name, std::string_view string) const {
  const LvmNode* const node = list(name);
  if (node == nullptr) return false;
  return std::ranges::any_of(node->values, [string](const Value& each) {
    const auto* const value = std::get_if<std::string>(&each);
    return value != nullptr && *value == string;
  });
}

}  // namespace mariner::uvfs
