// Where files are read: the history of a volume of a daemon, or of an image with a trace.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "ifsck/program/moment_source.h"
#include "proto/admin.pb.h"
#include "proto/error.h"
#include "server/client/context.h"
#include "uvfs/open_history.h"
#include "uvfs/parts/parted_past.h"
#include "uvfs/path_search.h"
#include "uvfs/program/object_name.h"

namespace mariner::uvfs {

struct SourceWords {
  std::string image;  // empty: the volume of the object
  std::string trace;
  bool moves_on = false;      // for longer than a window: see ifsck::NamedMoment
  bool begins_there = false;  // at the object's moment; the same
  // Given up once it is open; none: the caller sees to that.
  std::optional<client::SandboxRules> sandbox = client::SandboxRules{};
};

struct FileSource {
  ifsck::MomentSource moments;  // whose past is `parted`
  PartedPast* parted = nullptr;
  std::string name;  // of the volume, or the image

  // Errors as of MomentSource::open() and Context::give_up().
  // If the source has a table of partitions, or LVM2, the part that the object's path begins with
  // is chosen (choose_part()).
  [[nodiscard]] static Result<FileSource> open(const client::Context& context,
                                               const SourceWords& words, ObjectName& object);
  // What stands in front of file systems on the volume at `moments.at`: the path of `object` is
  // within the part from then on. kInvalidArgument, with what there is: it names none.
  [[nodiscard]] Result<void> choose_part(ObjectName& object);
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
  ObjectNumber inode = 0;
  ObjectState object;
};
// At a moment of the history's stretch. kNotFound: it was not there then; where, and what to do.
[[nodiscard]] Result<FoundObject> find_object(OpenHistory& history, const ObjectName& name,
                                              SequenceNumber at);
// It never was, in that stretch.
[[nodiscard]] Error never_there(const ObjectName& name);

}  // namespace mariner::uvfs
