// An object that was named together with a moment, found there.
#pragma once

#include "proto/admin.pb.h"
#include "proto/error.h"
#include "uvfs/program/file_source.h"
#include "uvfs/program/verbs.h"

namespace mariner::uvfs {

struct Located {
  ObjectName name;
  FileSource source;
  OpenHistory history;  // of that moment alone
  SequenceNumber at;
  api::Moment moment;
  FoundObject found;

  // What `words` names, now if it has no time. Errors as of FileSource::open(), open_history() and
  // find_object().
  [[nodiscard]] static Result<Located> open(const client::Context& context, const Words& words);
};

}  // namespace mariner::uvfs
