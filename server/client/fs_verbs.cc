// mariner fs ls|cat|versions|incarnations|diff|find|restore|mount: the program uvfs does it.
#include "server/client/helper_program.h"
#include "server/client/verbs.h"

namespace mariner::client {
namespace {

constexpr const char* kObject = "VOLUME:PATH@TIME";

struct Words {
  std::string object;
  std::string other;  // of diff
  std::string since;
  std::string until;
  bool below = false;
  bool every_write = false;
  bool deleted = false;
  std::string name;
  std::string type;
  std::string to;
  bool force = false;
  std::string folder;  // of mount
  bool foreground = false;
  bool allow_other = false;
};

void add_value(std::vector<std::string>& words, const char* option, const std::string& value) {
  if (!value.empty()) words.insert(words.end(), {option, value});
}

// What is wrong with the words is said by uvfs, which knows what a path may be.
Result<ExitCode> become_files_program(const Context& context, const char* verb, const Words& from) {
  std::vector<std::string> words{verb, from.object};
  if (!from.other.empty()) words.push_back(from.other);
  if (!from.folder.empty()) words.push_back(from.folder);
  add_value(words, "--since", from.since);
  add_value(words, "--until", from.until);
  add_value(words, "--name", from.name);
  add_value(words, "--type", from.type);
  add_value(words, "--to", from.to);
  if (from.below) words.emplace_back("--below");
  if (from.every_write) words.emplace_back("--every-write");
  if (from.deleted) words.emplace_back("--deleted");
  if (from.force) words.emplace_back("--force");
  if (from.foreground) words.emplace_back("--foreground");
  if (from.allow_other) words.emplace_back("--allow-other");
  if (context.flags.dry_run && !from.to.empty()) words.emplace_back("--dry-run");
  return hand_over(context, kFilesProgram, std::move(words));
}

void add_object(CLI::App& verb, Words& words, const char* type, const char* help) {
  verb.add_option(type, words.object, help)->required()->type_name(type);
}

void add_stretch(CLI::App& verb, Words& words) {
  verb.add_option("--since", words.since, "From this moment on (default: the oldest there is)")
      ->type_name("TIME");
  verb.add_option("--until", words.until, "Up to this moment (default: now)")->type_name("TIME");
}

void add_versions(CLI::App& verb, Words& words) {
  add_object(verb, words, "VOLUME:PATH", "The file, directory or link");
  add_stretch(verb, words);
  verb.add_flag("--below", words.below, "Of everything that ever was below it, too");
  verb.add_flag("--every-write", words.every_write, "Each state that a write left is a version");
}

void add_incarnations(CLI::App& verb, Words& words) {
  add_object(verb, words, "VOLUME:PATH", "The file, directory or link");
  add_stretch(verb, words);
}

void add_diff(CLI::App& verb, Words& words) {
  add_object(verb, words, kObject, "The file or directory, and the first moment");
  verb.add_option("OTHER", words.other, "@TIME, or another file and its moment")
      ->required()
      ->type_name("@TIME");
}

void add_find(CLI::App& verb, Words& words) {
  add_object(verb, words, "VOLUME[:PATH]", "The volume, and the directory to look below");
  add_stretch(verb, words);
  verb.add_flag("--deleted", words.deleted, "Those that are not there any more at --until");
  verb.add_option("--name", words.name, "Whose names are like this: \"*.odt\"")->type_name("GLOB");
  verb.add_option("--type", words.type, "f files, d directories, l symbolic links")
      ->check(CLI::IsMember({"f", "d", "l"}))
      ->type_name("TYPE");
}

void add_restore(CLI::App& verb, Words& words) {
  add_object(verb, words, kObject, "What, and from which moment");
  verb.add_option("--to", words.to, "The path it is to have on this host")
      ->required()
      ->type_name("HOSTPATH");
  verb.add_flag("--force", words.force, "Replace what is there");
}

void add_mount(CLI::App& verb, Words& words) {
  add_object(verb, words, "VOLUME", "The volume");
  verb.add_option("FOLDER", words.folder, "The folder to show its past in")
      ->required()
      ->type_name("FOLDER");
  verb.add_flag("--foreground", words.foreground, "Answer until it is unmounted");
  verb.add_flag("--allow-other", words.allow_other, "Other users may look, too");
}

}  // namespace

void add_fs_verbs(CLI::App& app, Context& context) {
  auto& noun = *app.add_subcommand("fs", "Files and directories as they were");
  noun.require_subcommand(1);
  const auto add = [&](const char* name, const char* help, auto setup) {
    add_verb<Words>(noun, context, name, help, setup, [name](Context& c, const Words& words) {
      return become_files_program(c, name, words);
    });
  };
  add("ls", "List a directory as it was", [](CLI::App& verb, Words& words) {
    add_object(verb, words, kObject, "The directory or file, and the moment (default: now)");
  });
  add("cat", "Print a file as it was", [](CLI::App& verb, Words& words) {
    add_object(verb, words, kObject, "The file, and the moment (default: now)");
  });
  add("versions", "List the versions of a file", add_versions);
  add("incarnations", "List from when to when a path had which objects", add_incarnations);
  add("diff", "Show what changed between two moments", add_diff);
  add("find", "Find files that existed, or were deleted", add_find);
  add("restore", "Copy a file or a directory as it was to this host", add_restore);
  add("mount", "Show the past of a volume in a folder", add_mount);
}

}  // namespace mariner::client
