#include "server/node/config_table.h"

#include <fmt/format.h>

#include <algorithm>

#include "server/node/nearest.h"

namespace mariner {
namespace {

std::string_view type_name(const toml::node& node) {
  switch (node.type()) {
    case toml::node_type::table: return "a table";
    case toml::node_type::array: return "a list";
    case toml::node_type::string: return "a string";
    case toml::node_type::integer: return "a whole number";
    case toml::node_type::floating_point: return "a fraction";
    case toml::node_type::boolean: return "true or false";
    default: return "a date or time";
  }
}

}  // namespace

void ConfigProblems::add(ConfigProblem::Level level, const toml::source_region& where,
                         std::string key, std::string message) {
  problems_.push_back({level, file_, static_cast<std::uint32_t>(where.begin.line), std::move(key),
                       std::move(message)});
}

void ConfigProblems::error(const toml::source_region& where, std::string key, std::string message) {
  add(ConfigProblem::Level::kError, where, std::move(key), std::move(message));
}

void ConfigProblems::warning(const toml::source_region& where, std::string key,
                             std::string message) {
  add(ConfigProblem::Level::kWarning, where, std::move(key), std::move(message));
}

bool ConfigProblems::any_error() const {
  return std::any_of(problems_.begin(), problems_.end(), [](const auto& problem) {
    return problem.level == ConfigProblem::Level::kError;
  });
}

std::vector<ConfigProblem> ConfigProblems::take() {
  std::stable_sort(problems_.begin(), problems_.end(),
                   [](const auto& a, const auto& b) { return a.line < b.line; });
  return std::move(problems_);
}

std::string ConfigTable::full_name(std::string_view key) const {
  return path_.empty() ? std::string(key) : fmt::format("{}.{}", path_, key);
}

const toml::source_region& ConfigTable::where(std::string_view key) const {
  const auto* node = table_.get(key);
  return node != nullptr ? node->source() : table_.source();
}

void ConfigTable::error(std::string_view key, std::string message) {
  problems_.error(where(key), full_name(key), std::move(message));
}

void ConfigTable::warning(std::string_view key, std::string message) {
  problems_.warning(where(key), full_name(key), std::move(message));
}

void ConfigTable::wrong_type(std::string_view key, const toml::node& node,
                             std::string_view expected) {
  problems_.error(node.source(), full_name(key),
                  fmt::format("expected {}, found {}", expected, type_name(node)));
}

const toml::node* ConfigTable::find(std::string_view key) {
  known_.emplace_back(key);
  return table_.get(key);
}

std::optional<std::string> ConfigTable::string(std::string_view key) {
  const auto* node = find(key);
  if (node == nullptr) return std::nullopt;
  if (const auto* text = node->as_string()) return text->get();
  wrong_type(key, *node, "a string in quotes");
  return std::nullopt;
}

std::optional<std::int64_t> ConfigTable::integer(std::string_view key) {
  const auto* node = find(key);
  if (node == nullptr) return std::nullopt;
  if (const auto* number = node->as_integer()) return number->get();
  wrong_type(key, *node, "a whole number");
  return std::nullopt;
}

std::optional<bool> ConfigTable::boolean(std::string_view key) {
  const auto* node = find(key);
  if (node == nullptr) return std::nullopt;
  if (const auto* value = node->as_boolean()) return value->get();
  wrong_type(key, *node, "true or false");
  return std::nullopt;
}

std::optional<std::vector<std::string>> ConfigTable::strings(std::string_view key) {
  const auto* node = find(key);
  if (node == nullptr) return std::nullopt;
  const auto* array = node->as_array();
  if (array == nullptr) {
    wrong_type(key, *node, "a list of strings");
    return std::nullopt;
  }
  std::vector<std::string> strings;
  for (const auto& element : *array) {
    if (const auto* text = element.as_string()) {
      strings.push_back(text->get());
    } else {
      wrong_type(key, element, "a list of strings");
    }
  }
  return strings;
}

std::vector<std::string> ConfigTable::string_or_strings(std::string_view key) {
  if (const auto* node = find(key); node != nullptr && node->is_string()) {
    return {node->as_string()->get()};
  }
  return strings(key).value_or(std::vector<std::string>{});
}

const toml::table* ConfigTable::table(std::string_view key) {
  const auto* node = find(key);
  if (node == nullptr) return nullptr;
  if (node->is_table()) return node->as_table();
  wrong_type(key, *node, fmt::format("a table: [{}]", full_name(key)));
  return nullptr;
}

std::vector<const toml::table*> ConfigTable::tables(std::string_view key) {
  std::vector<const toml::table*> tables;
  const auto* node = find(key);
  if (node == nullptr) return tables;
  const auto* array = node->as_array();
  if (array == nullptr) {
    wrong_type(key, *node, fmt::format("tables with double brackets: [[{}]]", full_name(key)));
    return tables;
  }
  for (const auto& element : *array) {
    if (element.is_table()) {
      tables.push_back(element.as_table());
    } else {
      wrong_type(key, element, fmt::format("tables with double brackets: [[{}]]", full_name(key)));
    }
  }
  return tables;
}

void ConfigTable::finish() {
  for (const auto& [key, node] : table_) {
    if (std::find(known_.begin(), known_.end(), key.str()) != known_.end()) continue;
    const auto meant = nearest(key.str(), known_);
    problems_.error(
        key.source(), full_name(key.str()),
        meant ? fmt::format("unknown key; the nearest that exists is \"{}\"", full_name(*meant))
              : std::string("unknown key"));
  }
}

}  // namespace mariner
