#include "server/client/files_words.h"

#include <gmock/gmock.h>

#include <CLI/CLI.hpp>

namespace mariner::client {
namespace {

using testing::ElementsAre;
using testing::ElementsAreArray;

std::vector<std::string> names() {
  std::vector<std::string> all;
  for (const FilesVerb& each : files_verbs()) all.emplace_back(each.name);
  return all;
}

// What is typed again for words that were parsed. Throws if they make no sense.
std::vector<std::string> again(const FilesVerb& verb, std::vector<std::string> words) {
  CLI::App app;
  FilesWords parsed;
  verb.set_up(app, parsed);
  std::reverse(words.begin(), words.end());
  app.parse(words);
  return typed(parsed);
}

const FilesVerb& verb(std::string_view name) {
  return *std::ranges::find(files_verbs(), name, &FilesVerb::name);
}

TEST(FilesWordsTest, TheVerbs) {
  EXPECT_THAT(names(), ElementsAre("ls", "cat", "versions", "incarnations", "diff", "find",
                                   "restore", "mount"));
}

TEST(FilesWordsTest, AreTypedAsTheyWereRead) {
  const std::pair<const char*, std::vector<std::string>> all[] = {
      {"ls", {"db1:/etc@-1h"}},
      {"versions", {"db1:/a", "--since", "-1d", "--until", "#7", "--below", "--every-write"}},
      {"incarnations", {"db1:/a", "--since", "-1d"}},
      {"diff", {"db1:/a@#1", "@#2"}},
      {"find", {"db1", "--since", "#1", "--name", "*.odt", "--type", "f", "--deleted"}},
      {"find", {}},
      {"restore", {"db1:/a@-1h", "--to", "./a", "--force"}},
      {"mount", {"db1", "/mnt/past", "--foreground", "--allow-other"}},
      {"mount", {"/mnt/past"}},
  };
  for (const auto& [name, words] : all) {
    EXPECT_THAT(again(verb(name), words), ElementsAreArray(words)) << name;
  }
}

TEST(FilesWordsTest, WhatMakesNoSenseIsRefused) {
  EXPECT_THROW(again(verb("cat"), {}), CLI::ParseError);
  EXPECT_THROW(again(verb("diff"), {"db1:/a@#1"}), CLI::ParseError);
  EXPECT_THROW(again(verb("restore"), {"db1:/a@#1"}), CLI::ParseError);
  EXPECT_THROW(again(verb("find"), {"db1", "--type", "x"}), CLI::ParseError);
  EXPECT_THROW(again(verb("ls"), {"db1:/a", "--below"}), CLI::ParseError);
}

}  // namespace
}  // namespace mariner::client
