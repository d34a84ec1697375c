// The words of the questions about files of the past: `mariner fs` and the program `uvfs`, which
// answers them, have the same.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace mariner::client {

struct FilesWords {
  std::string object;
  std::string other;  // of diff
  std::string since;
  std::string until;
  bool below = false;
  bool every_write = false;
  bool deleted = false;
  std::string name;  // a glob; empty: any
  std::string type;  // "f", "d", "l"; empty: any
  std::string to;
  bool force = false;
  std::string folder;  // of mount
  bool foreground = false;
  bool allow_other = false;
};

struct FilesVerb {
  const char* name;
  const char* help;
  void (*set_up)(CLI::App& verb, FilesWords& words);
};
// ls, cat, versions, incarnations, diff, find, restore and mount. What uvfs can do without (a
// volume, if it is given an image) is not required.
inline constexpr std::size_t kFilesVerbs = 8;
[[nodiscard]] std::span<const FilesVerb, kFilesVerbs> files_verbs();

// What set_up() made the words of, as it would be typed.
[[nodiscard]] std::vector<std::string> typed(const FilesWords& words);

}  // namespace mariner::client
