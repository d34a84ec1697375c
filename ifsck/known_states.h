// Moments of a volume at which its file system was sound, from which others are checked: kept in
// memory, and in a folder from one run to the next.
//
// In the folder each is a file (FORMAT.md), NUMBER.baseline by its sequence number; others may read
// and write there at the same time. What cannot be read is as if it were not there: it can be made
// anew. One thread.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "ifsck/baseline_file.h"
#include "proto/error.h"
#include "proto/units.h"

namespace mariner::ifsck {

class KnownStates {
 public:
  struct Options {
    std::string folder;         // empty: in memory alone; it is made when something is kept
    std::size_t kept_max = 16;  // in the folder; beyond, the one nearest to another goes
    // What is in the folder already may be told. Not where moments need not be what they were.
    bool reads = true;
  };
  explicit KnownStates(Options options) : options_(std::move(options)) {}
  KnownStates() : KnownStates(Options{}) {}

  // The one from which the fewest writes lead to `at`, of those from `oldest` to `newest`; null:
  // there is none.
  [[nodiscard]] std::shared_ptr<KeptBaseline> nearest(SequenceNumber at, SequenceNumber oldest,
                                                      SequenceNumber newest);
  // In memory; and in the folder, if there is one. kIo: it is in memory alone.
  Result<void> keep(KeptBaseline state);
  // It turned out to be of another file system, or of none: it is not told any more, whatever
  // becomes of its file, until it is kept again.
  void forget(SequenceNumber at);

 private:
  [[nodiscard]] std::string path_of(SequenceNumber at) const;
  [[nodiscard]] std::vector<SequenceNumber> in_folder() const;
  void thin_out() const;

  Options options_;
  std::map<SequenceNumber, std::shared_ptr<KeptBaseline>> loaded_;
  std::set<SequenceNumber> forgotten_;
};

}  // namespace mariner::ifsck
