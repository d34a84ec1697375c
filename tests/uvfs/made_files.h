// The past of a file system that a test wrote to, as a tree of files.
#pragma once

#include <charconv>
#include <new>
#include <optional>

#include "tests/uvfs/made_writes.h"
#include "uvfs/history_files.h"

namespace mariner::uvfs {

class MadeFiles {
 public:
  // `made` has a past().
  template <typename Made>
  explicit MadeFiles(Made& made) : past_(made.past()) {
    const auto newest = past_.reach().value().newest;
    files.emplace(HistoryFiles::Source{
        .past = &past_,
        .moment_of = [newest](std::string_view text) -> Result<SequenceNumber> {
          // (As if more were asked for than there is.)
          if (text == "greedy") throw std::bad_alloc();
          SequenceNumber at;
          const auto [end, error] =
              std::from_chars(text.data() + 1, text.data() + text.size(), at.value);
          if (!text.starts_with('#') || error != std::errc{}) {
            return Error{ErrorCode::kInvalidArgument, "no time"};
          }
          if (at > newest) return Error{ErrorCode::kOutsideWindow, "not yet"};
          return at;
        },
        .marks =
            [] {
              return Result<std::vector<Mark>>({{"before", {1}}});
            }});
  }
  MadeFiles(const MadeFiles&) = delete;
  MadeFiles& operator=(const MadeFiles&) = delete;

 private:
  ifsck::TracePast past_;

 public:
  std::optional<HistoryFiles> files;
};

}  // namespace mariner::uvfs
