// What was done about a finding.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "ifsck/finding.h"

namespace mariner::ifsck {

struct Repair {
  enum class Done : std::uint8_t {
    kFieldSet,
    kChecksumSet,
    kReleased,           // the inode is not in use any more
    kRestored,           // from what else says the same
    kJournalDropped,     // the file system has none any more
    kMapMade,            // without what could not be
    kCloned,             // blocks that others claim, too
    kAttributesDropped,  // of the inode
    kIndexDropped,       // of the directory
    kEntriesMended,      // names went, or say now what is so
    kBlockMade,          // of the directory: behind the last good entry it is anew
    kCompacted,
    kDotsMade,
    kNameRemoved,
    kAttached,  // to lost+found
    kParentSet,
    kBitmapSet,
    kCountSet,
  };

  Finding finding;
  Done done{};
  friend bool operator==(const Repair&, const Repair&) = default;
};

// "has blocks of its own now".
[[nodiscard]] std::string_view repair_text(Repair::Done done);

// A line for people.
[[nodiscard]] std::string describe(const Repair& repair);

}  // namespace mariner::ifsck
