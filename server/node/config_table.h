// One table of a TOML file while it is read: takes keys by name, notes what is wrong, and at the
// end names the keys that nobody asked for.
#pragma once

// toml++ is a header of 400 KB: only the sources of the configuration include this file.
#include <toml++/toml.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "proto/error.h"
#include "server/node/config.h"

namespace mariner {

class ConfigProblems {
 public:
  explicit ConfigProblems(std::string file) : file_(std::move(file)) {}

  void error(const toml::source_region& where, std::string key, std::string message);
  void warning(const toml::source_region& where, std::string key, std::string message);
  [[nodiscard]] bool any_error() const;
  // In the order of lines.
  [[nodiscard]] std::vector<ConfigProblem> take();

 private:
  void add(ConfigProblem::Level level, const toml::source_region& where, std::string key,
           std::string message);

  std::string file_;
  std::vector<ConfigProblem> problems_;
};

class ConfigTable {
 public:
  // `path` is the table's own name ("log"), empty for the root. All three outlive this object.
  ConfigTable(const toml::table& table, std::string path, ConfigProblems& problems)
      : table_(table), path_(std::move(path)), problems_(problems) {}

  // The value of `key`, if it is there and a string. A value of another type is noted.
  std::optional<std::string> string(std::string_view key);
  std::optional<std::int64_t> integer(std::string_view key);
  std::optional<bool> boolean(std::string_view key);
  // The strings of an array. An element of another type is noted and left out.
  std::optional<std::vector<std::string>> strings(std::string_view key);
  // The strings of an array, or the one that stands for it; empty if the key is not there.
  std::vector<std::string> string_or_strings(std::string_view key);
  const toml::table* table(std::string_view key);
  // The tables of an array of tables ([[volume]]); empty if there is none.
  std::vector<const toml::table*> tables(std::string_view key);

  // Sets `to` from a string by `parse` (string_view -> Result<T>), if the key is there.
  template <typename T, typename Parse>
  void parsed(std::string_view key, T& to, Parse parse) {
    const auto text = string(key);
    if (!text) return;
    auto value = parse(std::string_view(*text));
    if (value) {
      to = *std::move(value);
    } else {
      error(key, value.error().message);
    }
  }

  [[nodiscard]] bool has(std::string_view key) const { return table_.contains(key); }
  // Takes `key` whatever its value is: nobody knows yet what it is to be.
  void ignore(std::string_view key) { known_.emplace_back(key); }
  void error(std::string_view key, std::string message);
  void warning(std::string_view key, std::string message);

  // Notes every key that was not asked for, with the nearest that was.
  void finish();

 private:
  const toml::node* find(std::string_view key);
  [[nodiscard]] std::string full_name(std::string_view key) const;
  [[nodiscard]] const toml::source_region& where(std::string_view key) const;
  void wrong_type(std::string_view key, const toml::node& node, std::string_view expected);

  const toml::table& table_;
  std::string path_;
  ConfigProblems& problems_;
  std::vector<std::string> known_;
};

}  // namespace mariner
