// Where files are read: the history of a volume of a daemon, or of an image with a trace.
#pragma once

#include <memory>
#include <string>

#include "ifsck/program/moment_source.h"
#include "proto/admin.pb.h"
#include "proto/error.h"
#include "server/client/context.h"
#include "uvfs/ext_history.h"
#include "uvfs/file_contents.h"
#include "uvfs/path_search.h"
#include "uvfs/program/object_name.h"

namespace mariner::uvfs {

// The files of a stretch, and where their contents are read.
struct OpenHistory {
  ifsck::Past* past = nullptr;
  std::unique_ptr<ExtHistory> files;

  // Of an inode at a moment of the stretch. Errors as of FileContents::open().
  [[nodiscard]] Result<FileContents> contents(ifsck::InodeNumber inode, SequenceNumber at);
};

// The one place where a program opens a history; the source outlives it. Errors as of
// ExtHistory::open().
[[nodiscard]] Result<OpenHistory> open_history(ifsck::MomentSource& source, const Stretch& stretch);

struct SourceWords {
  std::string image;  // empty: the volume of the object
  std::string trace;
};

struct FileSource {
  ifsck::MomentSource moments;
  std::string name;  // of the volume, or the image

  // Errors as of MomentSource::open().
  [[nodiscard]] static Result<FileSource> open(const client::Context& context,
                                               const SourceWords& words, const ObjectName& object);
  // Empty `since`: the oldest moment that there is; empty `until`: the newest.
  struct Times {
    std::string since;
    std::string until;
  };
  [[nodiscard]] Result<Stretch> stretch(const Times& times);
  [[nodiscard]] Result<api::Moment> moment(const client::Context& context, SequenceNumber at) const;
};

// An object at a moment.
struct FoundObject {
  ifsck::InodeNumber inode = 0;
  ObjectState object;
};
// At a moment of the history's stretch. kNotFound: it was not there then; where, and what to do.
[[nodiscard]] Result<FoundObject> find_object(OpenHistory& history, const ObjectName& name,
                                              SequenceNumber at);
// It never was, in that stretch.
[[nodiscard]] Error never_there(const ObjectName& name);

}  // namespace mariner::uvfs
