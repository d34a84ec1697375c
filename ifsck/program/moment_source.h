// Where a check reads: a volume of a daemon, or an image with a trace of what was written to it.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "ifsck/past.h"
#include "proto/error.h"
#include "server/client/context.h"

namespace mariner::ifsck {

// What was named on the command line: VOLUME@TIME, or an image.
struct NamedMoment {
  std::string target;  // VOLUME[@TIME]; empty: the image
  std::string image;
  std::string trace;      // empty: the image alone
  std::string at;         // of the image: a TIME; empty: the newest
  bool moves_on = false;  // see client::PastClient::Options
  // Nothing before that moment is asked about, so the daemon keeps nothing before it for this; and
  // it may be one that is kept behind the window (a mark).
  bool begins_there = false;
};

struct MomentSource {
  std::unique_ptr<Past> past;
  SequenceNumber at;
  std::string name;           // the volume's, or the image's
  std::string states_folder;  // where what is known of it is kept; empty: nowhere
  // Another TIME of that past, whose errors are as of open(); as long as the context is there.
  std::function<Result<SequenceNumber>(const std::string& time)> moment_of;

  // kInvalidArgument: not exactly one of both is named, or a time that is none. Others: as the
  // daemon says, or as the files are.
  [[nodiscard]] static Result<MomentSource> open(const client::Context& context,
                                                 const NamedMoment& named);
};

// The folder of caches: $XDG_CACHE_HOME/mariner, else /var/cache/mariner for root and
// ~/.cache/mariner for others; empty: there is none.
[[nodiscard]] std::string cache_folder();

}  // namespace mariner::ifsck
