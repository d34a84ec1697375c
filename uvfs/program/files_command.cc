#include "uvfs/program/files_command.h"

#include <CLI/CLI.hpp>
#include <cstdint>
#include <memory>
#include <utility>

#include "server/client/application.h"
#include "uvfs/program/verbs.h"

namespace mariner::uvfs {
namespace {

using client::Context;
using client::ExitCode;

using Run = Answer (*)(Context& context, const Words& words);

void add_verb(CLI::App& app, Context& context, const client::FilesVerb& files_verb, Run run) {
  auto words = std::make_shared<Words>();
  auto* const verb = app.add_subcommand(files_verb.name, files_verb.help);
  files_verb.set_up(*verb, *words);
  if (run == restore) {
    verb->add_flag("--dry-run", words->dry_run, "Say what would be made; change nothing");
  }
  verb->add_option("--image", words->source.image, "A raw image or a device, instead of a volume")
      ->type_name("FILE");
  verb->add_option("--trace", words->source.trace, "What was written to the image since")
      ->type_name("FILE");
  verb->callback([&context, words, run] {
    context.action = [&context, words, run] { return run(context, *words); };
  });
}

void add_words(CLI::App& app, Context& context) {
  client::add_common_flags(app, context, "Print JSON");
  // What the daemon starts has a pipe for its output, and may say that it leads to a terminal.
  app.add_flag_function(
         "--terminal",
         [&context](std::int64_t) {
           context.console.out_is_terminal = context.console.color = true;
         },
         "Print as for a terminal")
      ->group("");
  // As files_verbs() has them.
  constexpr Run kRuns[client::kFilesVerbs] = {list,    print, list_versions, list_incarnations,
                                              compare, find,  restore,       mount};
  const auto verbs = client::files_verbs();
  for (std::size_t i = 0; i < client::kFilesVerbs; ++i) add_verb(app, context, verbs[i], kRuns[i]);
  app.footer(
      "Nothing is written to the volume or the image. With --image an object is PATH[@TIME].\n"
      "A TIME is as for mariner(1). See uvfs(1).");
}

}  // namespace

int run_files_command(const std::vector<std::string>& words, client::Console console,
                      const Zone& zone, std::function<VersionTime()> now, client::Confine confine) {
  Context context{console, zone, std::move(now), {}, {}};
  context.confine = std::move(confine);
  CLI::App app("Files and directories of a volume as they were: ext2, ext3 and ext4.", "uvfs");
  add_words(app, context);
  return client::run_application(app, context, words);
}

}  // namespace mariner::uvfs
