// mariner fs ls|cat|versions|incarnations|diff|find|restore|mount: the program uvfs does it.
#include "server/client/files_words.h"
#include "server/client/helper_program.h"
#include "server/client/verbs.h"

namespace mariner::client {

void add_fs_verbs(CLI::App& app, Context& context) {
  auto& noun = *app.add_subcommand("fs", "Files and directories as they were");
  noun.require_subcommand(1);
  for (const FilesVerb& each : files_verbs()) {
    add_verb<FilesWords>(noun, context, each.name, each.help, each.set_up,
                         [&each](Context& c, const FilesWords& given) -> Result<ExitCode> {
                           std::vector<std::string> words = typed(given);
                           words.insert(words.begin(), each.name);
                           if (c.flags.dry_run && !given.to.empty()) {
                             words.emplace_back("--dry-run");
                           }
                           return hand_over(c, kFilesProgram, std::move(words));
                         });
  }
}

}  // namespace mariner::client
