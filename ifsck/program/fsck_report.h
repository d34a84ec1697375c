// A check's report, for people and for programs.
#pragma once

#include <chrono>
#include <string>

#include "ifsck/moment_check.h"
#include "proto/fsck.pb.h"
#include "server/client/context.h"

namespace mariner::ifsck {

struct CheckedMoment {
  std::string name;  // of the volume, or the image
  std::string path;  // of level 3
  MomentReport report;
  std::chrono::nanoseconds took{};
};

[[nodiscard]] api::Moment to_message(const client::Context& context, SequenceNumber at,
                                     VersionTime time);
[[nodiscard]] api::FsckReport to_message(const client::Context& context,
                                         const CheckedMoment& checked);
// Each finding is a line, with what was done about it.
[[nodiscard]] std::string to_text(const client::Context& context, const CheckedMoment& checked);

}  // namespace mariner::ifsck
