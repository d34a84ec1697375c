// The verbs of the program `uvfs`: each is a source of its own, VERB_verb.cc.
#pragma once

#include "proto/error.h"
#include "server/client/context.h"
#include "server/client/files_words.h"
#include "uvfs/program/file_source.h"

namespace mariner::uvfs {

struct Words : client::FilesWords {
  SourceWords source;
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
