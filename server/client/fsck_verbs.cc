// mariner fsck VOLUME@TIME | find-clean VOLUME: the program ifsck does it.
#include "server/client/helper_program.h"
#include "server/client/verbs.h"

namespace mariner::client {
namespace {

struct CheckOptions {
  std::string target;
  std::uint32_t level = 0;  // 0: as ifsck has it
  std::string path;
};

struct FindOptions {
  std::string volume;
  std::string before;
};

Result<ExitCode> check(Context& context, const CheckOptions& options) {
  // What is wrong with the words is said without ifsck.
  if (const auto target = context.target(options.target); !target) return target.error();
  std::vector<std::string> words{"check", options.target};
  if (options.level != 0) words.insert(words.end(), {"--level", std::to_string(options.level)});
  if (!options.path.empty()) words.insert(words.end(), {"--path", options.path});
  if (context.flags.dry_run) words.emplace_back("--no-save");
  return hand_over(context, kFsckProgram, std::move(words));
}

Result<ExitCode> find_clean(Context& context, const FindOptions& options) {
  std::vector<std::string> words{"find-clean", options.volume};
  if (!options.before.empty()) {
    if (const auto at = context.moment_spec(options.before); !at) return at.error();
    words.insert(words.end(), {"--before", options.before});
  }
  return hand_over(context, kFsckProgram, std::move(words));
}

}  // namespace

void add_fsck_verbs(CLI::App& app, Context& context) {
  add_verb<CheckOptions>(
      app, context, "fsck", "Check the file system of a volume at a moment",
      [](CLI::App& verb, CheckOptions& options) {
        verb.add_option("VOLUME@TIME", options.target, "The volume and the moment (default: now)")
            ->required()
            ->type_name("VOLUME@TIME");
        verb.add_option("--level", options.level,
                        "1 everything (default); 2 without bitmaps and counts; 3 the file or "
                        "folder of --path")
            ->check(CLI::Range(1u, 3u))
            ->type_name("N");
        verb.add_option("--path", options.path, "Of level 3: a file or folder")->type_name("PATH");
      },
      check);
  add_verb<FindOptions>(
      app, context, "find-clean", "Find the newest moment whose file system needs no repair",
      [](CLI::App& verb, FindOptions& options) {
        verb.add_option("VOLUME", options.volume, "The volume")->required()->type_name("VOLUME");
        verb.add_option("--before", options.before, "At this moment or before (default: now)")
            ->type_name("TIME");
      },
      find_clean);
}

}  // namespace mariner::client
