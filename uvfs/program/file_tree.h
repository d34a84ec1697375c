// A directory of a moment with all that is below it, ready to be shown or copied.
//
// Names of another system's are not trusted: what is no name of one thing in its directory, and
// what would have no end, is left out and said.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "proto/error.h"
#include "uvfs/files_history.h"
#include "uvfs/object_state.h"
#include "uvfs/safe_name.h"

namespace mariner::uvfs {

struct FileTree {
  static constexpr std::size_t kEntriesMax = 2'000'000;

  struct Entry {
    std::size_t parent = 0;  // of the first entry: itself
    std::string name;        // of the first entry: empty
    ObjectNumber inode = 0;
    ObjectState object;
  };
  std::vector<Entry> entries;        // parents before children; those of one are together, by name
  std::vector<std::string> skipped;  // a sentence for each
  // Something is not as a file system has it that is well: names of nobody, or none where some are
  // to be.
  bool damaged = false;

  struct Options {
    ObjectNumber root = 0;  // whatever it is
    SequenceNumber at;
    bool one_level = false;
  };
  // Errors: of the past; kLimit.
  [[nodiscard]] static Result<FileTree> read(FilesHistory& history, const Options& options);

  // Below the first entry: "a/b"; of itself empty.
  [[nodiscard]] std::string path_of(std::size_t entry) const;
};

}  // namespace mariner::uvfs
