// The verbs of the program `uvfs`: each is a source of its own, VERB_verb.cc.
#pragma once

#include <string>

#include "proto/error.h"
#include "server/client/context.h"
#include "uvfs/program/file_source.h"

namespace mariner::uvfs {

struct Words {
  std::string object;
  std::string other;  // of diff
  SourceWords source;
  FileSource::Times times;
  bool below = false;
  bool every_write = false;
  bool deleted = false;
  std::string name;  // a glob; empty: any
  std::string type;  // "f", "d", "l"; empty: any
  std::string to;
  std::string folder;  // of mount
  bool foreground = false;
  bool allow_other = false;
  bool force = false;
  bool dry_run = false;
};

using Answer = Result<client::ExitCode>;

[[nodiscard]] Answer list(client::Context& context, const Words& words);
[[nodiscard]] Answer print(client::Context& context, const Words& words);
[[nodiscard]] Answer list_versions(client::Context& context, const Words& words);
[[nodiscard]] Answer list_incarnations(client::Context& context, const Words& words);
[[nodiscard]] Answer compare(client::Context& context, const Words& words);
[[nodiscard]] Answer find(client::Context& context, const Words& words);
[[nodiscard]] Answer restore(client::Context& context, const Words& words);
[[nodiscard]] Answer mount(client::Context& context, const Words& words);

}  // namespace mariner::uvfs
