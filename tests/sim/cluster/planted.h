// Mistakes that the simulated cluster is to find. Each is planted around the protocol's code, where
// a disk, a clock or a careless caller would make it.
#pragma once

#include <cstdint>
#include <string_view>

namespace mariner::test {

enum class Planted : std::uint8_t {
  kNothing,
  kAcknowledgedBeforeFlush,  // the logger's disk says that it is done before it is
  kEpochNotChecked,          // a storage node takes whoever writes for the newest coordinator
  kForgottenInCatchUp,       // one block of what a storage node missed is left out
  kReadFromMirror,           // a node that does not coordinate serves reads
  kNumbersReused,            // a new coordinator goes on right behind the log's end
  kLeaseHeldTooLong,         // a node relies on its lease ten seconds longer than it may
  kNotHardened,              // a storage node keeps nothing beside its image and says that it did
  kNotTakenBack,             // what one log alone has, and nobody was told of, stays in it
  kOneJournalCounts,         // the journal of the other node says at once that it has what it gets
  kSpillNotPut,              // what was kept beside an image counts as put into it, and is not
  kCommittedBeforeCaughtUp,  // a storage node makes new writes visible before what it missed
  kNotStartedOver,           // an image that lacks what the log has given up goes on all the same
  kBuiltFromLogAlone,        // an image is built anew from what the log still has, and no more
  kEmptyJournalCounts,       // a journal that was set up anew passes for one that took part
  kReadFromAnyImage,         // a target that stores nothing reads where nobody waits for a commit
  kHandedOnIncomplete,       // a frame is handed on before its payload has come
  kPayloadReused,            // a payload's memory is written anew before it was sent
  kStreamReused,             // who begins anew has the streams' numbers and keys of before
  kFailedWriteCounts,        // what could not be written to an image counts as if it had been
};

// In what carries messages, so that there has to be such.
constexpr bool in_transport(Planted planted) {
  return planted == Planted::kHandedOnIncomplete || planted == Planted::kPayloadReused ||
         planted == Planted::kStreamReused;
}

constexpr std::string_view name_of(Planted planted) {
  switch (planted) {
    case Planted::kNothing: return "nothing";
    case Planted::kAcknowledgedBeforeFlush: return "acknowledged before the logger's flush";
    case Planted::kEpochNotChecked: return "epoch not checked at a storage node";
    case Planted::kForgottenInCatchUp: return "one write forgotten in catch-up";
    case Planted::kReadFromMirror: return "read served on the mirror";
    case Planted::kNumbersReused: return "sequence numbers reused after promotion";
    case Planted::kLeaseHeldTooLong: return "timed-out lease treated as held";
    case Planted::kNotHardened: return "not durable without the logger";
    case Planted::kNotTakenBack: return "unacknowledged writes not taken back";
    case Planted::kOneJournalCounts: return "acknowledged with one journal";
    case Planted::kSpillNotPut: return "an image lacks what a lost log held";
    case Planted::kNotStartedOver: return "an image lacks what the log has given up";
    case Planted::kBuiltFromLogAlone: return "built anew from what the log still has";
    case Planted::kEmptyJournalCounts: return "taken back beside an empty journal";
    case Planted::kReadFromAnyImage: return "read from an image that is behind";
    case Planted::kCommittedBeforeCaughtUp: return "caught up before it was";
    case Planted::kHandedOnIncomplete: return "frames handed on before their payloads";
    case Planted::kPayloadReused: return "a payload's memory reused before it was sent";
    case Planted::kFailedWriteCounts: return "an image lacks what its disk refused";
    case Planted::kStreamReused: return "an older epoch's datagrams taken for this one's";
  }
  return "?";
}

}  // namespace mariner::test
