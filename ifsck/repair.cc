#include "ifsck/repair.h"

namespace mariner::ifsck {

std::string_view repair_text(Repair::Done done) {
  using Done = Repair::Done;
  switch (done) {
    case Done::kFieldSet: return "set to what is so";
    case Done::kChecksumSet: return "checksum made anew";
    case Done::kReleased: return "released";
    case Done::kRestored: return "restored";
    case Done::kJournalDropped: return "the file system has no journal any more";
    case Done::kMapMade: return "what cannot be was left out";
    case Done::kCloned: return "has blocks of its own now";
    case Done::kAttributesDropped: return "has no attributes there any more";
    case Done::kIndexDropped: return "has no index any more";
    case Done::kEntriesMended: return "entries removed or set";
    case Done::kBlockMade: return "anew behind the last good entry";
    case Done::kCompacted: return "closed up";
    case Done::kDotsMade: return "made anew";
    case Done::kNameRemoved: return "name removed";
    case Done::kAttached: return "is in lost+found now";
    case Done::kParentSet: return "set to where its name is";
    case Done::kBitmapSet: return "marked as it is";
    case Done::kCountSet: return "counted anew";
  }
  return "?";
}

std::string describe(const Repair& repair) {
  return describe(repair.finding) + ": " + std::string(repair_text(repair.done));
}

}  // namespace mariner::ifsck
