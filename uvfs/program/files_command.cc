#include "uvfs/program/files_command.h"

#include <CLI/CLI.hpp>
#include <memory>
#include <utility>

#include "uvfs/program/verbs.h"

namespace mariner::uvfs {
namespace {

using client::Context;
using client::ExitCode;

template <typename Setup, typename Run>
void add_verb(CLI::App& app, Context& context, const char* name, const char* help, Setup setup,
              Run run) {
  auto words = std::make_shared<Words>();
  auto* const verb = app.add_subcommand(name, help);
  setup(*verb, *words);
  verb->add_option("--image", words->source.image, "A raw image or a device, instead of a volume")
      ->type_name("FILE");
  verb->add_option("--trace", words->source.trace, "What was written to the image since")
      ->type_name("FILE");
  verb->callback([&context, words, run] {
    context.action = [&context, words, run] { return run(context, *words); };
  });
}

CLI::Option* add_object(CLI::App& verb, Words& words, const char* type, const char* help) {
  return verb.add_option(type, words.object, help)->type_name(type);
}

void add_stretch(CLI::App& verb, Words& words) {
  verb.add_option("--since", words.times.since,
                  "From this moment on (default: the oldest there is)")
      ->type_name("TIME");
  verb.add_option("--until", words.times.until, "Up to this moment (default: now)")
      ->type_name("TIME");
}

void set_up_moment(CLI::App& verb, Words& words) {
  add_object(verb, words, "VOLUME:PATH@TIME", "What, and the moment (default: now)")->required();
}

void set_up_versions(CLI::App& verb, Words& words) {
  add_object(verb, words, "VOLUME:PATH", "The file, directory or link")->required();
  add_stretch(verb, words);
  verb.add_flag("--below", words.below, "Of everything that ever was below it, too");
  verb.add_flag("--every-write", words.every_write, "Each state that a write left is a version");
}

void set_up_incarnations(CLI::App& verb, Words& words) {
  add_object(verb, words, "VOLUME:PATH", "The file, directory or link")->required();
  add_stretch(verb, words);
}

void set_up_diff(CLI::App& verb, Words& words) {
  add_object(verb, words, "VOLUME:PATH@TIME", "What, and the first moment")->required();
  verb.add_option("OTHER", words.other, "@TIME, or another file and its moment")
      ->required()
      ->type_name("@TIME");
}

void set_up_find(CLI::App& verb, Words& words) {
  add_object(verb, words, "VOLUME[:PATH]", "The volume, and the directory to look below");
  add_stretch(verb, words);
  verb.add_flag("--deleted", words.deleted, "Those that are not there any more at --until");
  verb.add_option("--name", words.name, "Whose names are like this: \"*.odt\"")->type_name("GLOB");
  verb.add_option("--type", words.type, "f files, d directories, l symbolic links")
      ->check(CLI::IsMember({"f", "d", "l"}))
      ->type_name("TYPE");
}

void set_up_restore(CLI::App& verb, Words& words) {
  set_up_moment(verb, words);
  verb.add_option("--to", words.to, "The path it is to have on this host")
      ->required()
      ->type_name("HOSTPATH");
  verb.add_flag("--force", words.force, "Replace what is there");
  verb.add_flag("--dry-run", words.dry_run, "Say what would be made; change nothing");
}

// With --image there is only the folder.
void set_up_mount(CLI::App& verb, Words& words) {
  verb.add_option("VOLUME", words.object, "The volume, and the folder to show its past in")
      ->type_name("[VOLUME]");
  verb.add_option("FOLDER", words.folder)->type_name("FOLDER");
  verb.add_flag("--foreground", words.foreground, "Answer until it is unmounted");
  verb.add_flag("--allow-other", words.allow_other, "Other users may look, too");
}

void add_words(CLI::App& app, Context& context) {
  app.set_version_flag("--version", "uvfs " MARINER_VERSION);
  app.require_subcommand(1);
  app.fallthrough();
  app.add_flag("--json", context.flags.json, "Print JSON");
  app.add_flag("--quiet", context.flags.quiet, "Print only what was asked for, and errors");
  app.add_flag("--no-color", context.flags.no_color, "No colors");
  app.add_option("--socket", context.flags.socket,
                 "The daemon's admin socket (default: " + context.flags.socket + ")")
      ->type_name("PATH");
  add_verb(app, context, "ls", "List a directory as it was", set_up_moment, list);
  add_verb(app, context, "cat", "Print a file as it was", set_up_moment, print);
  add_verb(app, context, "versions", "List the versions of a file", set_up_versions, list_versions);
  add_verb(app, context, "incarnations", "List from when to when a path had which objects",
           set_up_incarnations, list_incarnations);
  add_verb(app, context, "diff", "Show what changed between two moments", set_up_diff, compare);
  add_verb(app, context, "find", "Find files that existed, or were deleted", set_up_find, find);
  add_verb(app, context, "restore", "Copy a file or a directory as it was to this host",
           set_up_restore, restore);
  add_verb(app, context, "mount", "Show the past of a volume in a folder", set_up_mount, mount);
  app.footer(
      "Nothing is written to the volume or the image. With --image an object is PATH[@TIME].\n"
      "A TIME is as for mariner(1). See uvfs(1).");
}

}  // namespace

int run_files_command(const std::vector<std::string>& words, client::Console console,
                      const Zone& zone, std::function<VersionTime()> now) {
  Context context{console, zone, std::move(now), {}, {}};
  CLI::App app("Files and directories of a volume as they were: ext2, ext3 and ext4.", "uvfs");
  add_words(app, context);
  try {
    app.parse(std::vector<std::string>(words.rbegin(), words.rend()));
  } catch (const CLI::ParseError& error) {
    const int code = app.exit(error, console.out, console.err);
    return code == 0 ? 0 : static_cast<int>(ExitCode::kUsage);
  }
  console.quiet = context.flags.quiet;
  console.color = console.color && console.out_is_terminal && !context.flags.no_color;
  const auto result = context.action();
  return result ? static_cast<int>(*result) : context.report(result.error(), "uvfs");
}

}  // namespace mariner::uvfs
