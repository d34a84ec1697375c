#include "server/client/files_words.h"

#include <CLI/CLI.hpp>

namespace mariner::client {
namespace {

CLI::Option* add_object(CLI::App& verb, FilesWords& words, const char* type, const char* help) {
  return verb.add_option(type, words.object, help)->type_name(type);
}

void add_stretch(CLI::App& verb, FilesWords& words) {
  verb.add_option("--since", words.since, "From this moment on (default: the oldest there is)")
      ->type_name("TIME");
  verb.add_option("--until", words.until, "Up to this moment (default: now)")->type_name("TIME");
}

void set_up_moment(CLI::App& verb, FilesWords& words) {
  add_object(verb, words, "VOLUME:PATH@TIME", "What, and the moment (default: now)")->required();
}

void set_up_incarnations(CLI::App& verb, FilesWords& words) {
  add_object(verb, words, "VOLUME:PATH", "The file, directory or link")->required();
  add_stretch(verb, words);
}

void set_up_versions(CLI::App& verb, FilesWords& words) {
  set_up_incarnations(verb, words);
  verb.add_flag("--below", words.below, "Of everything that ever was below it, too");
  verb.add_flag("--every-write", words.every_write, "Each state that a write left is a version");
}

void set_up_diff(CLI::App& verb, FilesWords& words) {
  add_object(verb, words, "VOLUME:PATH@TIME", "What, and the first moment")->required();
  verb.add_option("OTHER", words.other, "@TIME, or another file and its moment")
      ->required()
      ->type_name("@TIME");
}

void set_up_find(CLI::App& verb, FilesWords& words) {
  add_object(verb, words, "VOLUME[:PATH]", "The volume, and the directory to look below");
  add_stretch(verb, words);
  verb.add_flag("--deleted", words.deleted, "Those that are not there any more at --until");
  verb.add_option("--name", words.name, "Whose names are like this: \"*.odt\"")->type_name("GLOB");
  verb.add_option("--type", words.type, "f files, d directories, l symbolic links")
      ->check(CLI::IsMember({"f", "d", "l"}))
      ->type_name("TYPE");
}

void set_up_restore(CLI::App& verb, FilesWords& words) {
  set_up_moment(verb, words);
  verb.add_option("--to", words.to, "The path it is to have on this host")
      ->required()
      ->type_name("HOSTPATH");
  verb.add_flag("--force", words.force, "Replace what is there");
}

void set_up_mount(CLI::App& verb, FilesWords& words) {
  add_object(verb, words, "VOLUME", "The volume, and the folder to show its past in");
  verb.add_option("FOLDER", words.folder)->type_name("FOLDER");
  verb.add_flag("--foreground", words.foreground, "Answer until it is unmounted");
  verb.add_flag("--allow-other", words.allow_other, "Other users may look, too");
}

constexpr FilesVerb kVerbs[kFilesVerbs] = {
    {"ls", "List a directory as it was", set_up_moment},
    {"cat", "Print a file as it was", set_up_moment},
    {"versions", "List the versions of a file", set_up_versions},
    {"incarnations", "List from when to when a path had which objects", set_up_incarnations},
    {"diff", "Show what changed between two moments", set_up_diff},
    {"find", "Find files that existed, or were deleted", set_up_find},
    {"restore", "Copy a file or a directory as it was to this host", set_up_restore},
    {"mount", "Show the past of a volume in a folder", set_up_mount},
};

}  // namespace

std::span<const FilesVerb, kFilesVerbs> files_verbs() { return kVerbs; }

std::vector<std::string> typed(const FilesWords& words) {
  std::vector<std::string> all;
  for (const auto& each : {words.object, words.other, words.folder}) {
    if (!each.empty()) all.push_back(each);
  }
  const auto add_value = [&](const char* option, const std::string& value) {
    if (!value.empty()) all.insert(all.end(), {option, value});
  };
  const auto add_flag = [&](const char* option, bool given) {
    if (given) all.emplace_back(option);
  };
  add_value("--since", words.since);
  add_value("--until", words.until);
  add_value("--name", words.name);
  add_value("--type", words.type);
  add_value("--to", words.to);
  add_flag("--below", words.below);
  add_flag("--every-write", words.every_write);
  add_flag("--deleted", words.deleted);
  add_flag("--force", words.force);
  add_flag("--foreground", words.foreground);
  add_flag("--allow-other", words.allow_other);
  return all;
}

}  // namespace mariner::client
