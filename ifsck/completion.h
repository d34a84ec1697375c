// Operations that were under way at a moment, completed: what the moment lacks is taken from a
// later one, at which they were done.
//
// (Dissertation 4.4.3: the redo list. The paper groups changes of blocks to operations; here an
// inode is what goes forward, with its blocks or its names, and what has to go with it; who may,
// completion_choice.h says. Other entries of the same directories stay as they are.)
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ifsck/baseline.h"
#include "ifsck/ext_context.h"
#include "ifsck/finding.h"
#include "ifsck/recheck_memory.h"
#include "ifsck/view.h"
#include "proto/error.h"

namespace mariner::ifsck {

// (Table 4.1)
struct CompletedOperation {
  enum class Kind : std::uint8_t {
    kCreated,
    kRemoved,
    kRenamed,  // it has other names
    kGrown,
    kShrunk,
    kChanged,  // anything else of the inode
  };
  Kind kind{};
  InodeNumber inode = 0;
  std::string name;  // one that it got or lost; empty: none
  friend bool operator==(const CompletedOperation&, const CompletedOperation&) = default;
};
// "created".
[[nodiscard]] std::string_view operation_name(CompletedOperation::Kind kind);
// A line for people.
[[nodiscard]] std::string describe(const CompletedOperation& operation);

struct Completion {
  std::vector<CompletedOperation> operations;  // by inode
  std::uint64_t given_up = 0;                  // findings whose inodes cannot go forward
};

struct CompletionRequest {
  // A moment that was sound, and what is known of it.
  const ExtContext& then;
  const Baseline& known;
  // The moment, and a later one; all three are comparable.
  const ExtContext& now;
  const ExtContext& later;
  // Blocks that may differ from `then`, with overlays.
  const std::vector<BlockRange>& changed_now;
  const std::vector<BlockRange>& changed_later;
  // What is wrong at both: who is among the latter stays as it is.
  const std::vector<Finding>& findings_now;
  const std::vector<Finding>& findings_later;
  // Of the checks that found them; null: there is none.
  RecheckMemory* memory_now = nullptr;
  RecheckMemory* memory_later = nullptr;
};

// Writes to `view`, which is that of `now`; bitmaps and counts are to be mended afterwards, and so
// is what is still wrong. Errors: of the past alone.
[[nodiscard]] Result<Completion> complete(const CompletionRequest& request, View& view);

}  // namespace mariner::ifsck
