// An object that was named together with a moment, found there.
//
// Where what leads there, or what is read of it, cannot be read, the moment is mended for this
// reading (LazyMender): as soon as that is noticed, and not before.
#pragma once

#include "proto/admin.pb.h"
#include "proto/error.h"
#include "uvfs/overlaid_past.h"
#include "uvfs/program/file_source.h"
#include "uvfs/program/file_tree.h"
#include "uvfs/program/verbs.h"

namespace mariner::uvfs {

struct Located {
  ObjectName name;
  FileSource source;
  // What the moment is mended with, if it is.
  struct Mended {
    explicit Mended(ifsck::Past& behind) : past(behind, overlay) {}
    ifsck::Overlay overlay;
    OverlaidPast past;
  };
  std::unique_ptr<Mended> mended;
  OpenHistory history;  // of that moment alone; of what is mended, once it is
  SequenceNumber at;
  api::Moment moment;
  FoundObject found;

  // What `words` names, now if it has no time. Errors as of FileSource::open(), open_history() and
  // find_object().
  [[nodiscard]] static Result<Located> open(const client::Context& context, const Words& words);

  // It and what is below it, mended if need be. Errors as of FileTree::read() and mend().
  [[nodiscard]] Result<FileTree> tree(bool one_level);
  // Its contents, or those of another object of the moment, mended if need be. Errors as of
  // FileContents::open() and mend().
  [[nodiscard]] Result<FileContents> contents(ObjectNumber number);
  // Something cannot be read. False: that cannot be helped, or was tried. Errors: of the past.
  [[nodiscard]] Result<bool> mend();
  // That it was, to who reads what is no answer.
  void tell_if_mended(const client::Context& context) const;
  // Nothing that leads to `name` is damaged. Errors: of the past.
  [[nodiscard]] Result<bool> way_can_be_read() const;

  bool tried_to_mend = false;
};

}  // namespace mariner::uvfs
