// What one object of a file system was over a stretch: the states that can be told apart.
#pragma once

#include <cstdint>
#include <vector>

#include "proto/units.h"
#include "uvfs/object_state.h"

namespace mariner::uvfs {

struct ObjectHistory {
  struct State {
    SequenceNumber from;  // until the next one
    VersionTime time;     // of that write; of the stretch's first moment for the first state
    ObjectState object;
    // Its contents (or its attributes, or of a directory the names in it) are others than before.
    bool contents_changed = false;
    // Who reads it sees a difference: it looks otherwise, or has other contents. If not, the inode
    // was written to: something about it changed, or another name.
    bool seen = true;
  };

  // Ascending, from the stretch's first moment on.
  std::vector<State> states;
  // What the time of change (ObjectState::changed) says of a write that has left another state.
  enum class Stamp : std::uint8_t {
    kFirst,  // it is set with the first thing that an operation writes about the object
    kLast,   // ... and with the last one: NTFS
    kNone,   // there is none; it is when contents were modified: FAT, exFAT
  };
  Stamp stamp = Stamp::kFirst;
};

}  // namespace mariner::uvfs
