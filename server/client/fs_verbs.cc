// mariner fs ls|cat|versions|incarnations|diff|find: the daemon runs the program uvfs, and what
// that prints comes from there. restore and mount: this becomes uvfs, which asks the daemon for
// blocks.
#include <chrono>
#include <cstdlib>
#include <ostream>
#include <string_view>

#include "proto/files_query.pb.h"
#include "server/client/files_client.h"
#include "server/client/files_words.h"
#include "server/client/helper_program.h"
#include "server/client/verbs.h"

namespace mariner::client {
namespace {

// The daemon ends what stands still for half of it.
constexpr std::chrono::minutes kPatience{60};

// Whether it prints an answer, and does nothing else.
bool answers(const FilesVerb& verb) {
  const std::string_view name = verb.name;
  return name != "restore" && name != "mount";
}

api::FilesRequest request_of(const Context& context, const char* verb, const FilesWords& words) {
  api::FilesRequest request;
  request.set_verb(verb);
  request.set_object(words.object);
  request.set_other(words.other);
  request.set_since(words.since);
  request.set_until(words.until);
  request.set_below(words.below);
  request.set_every_write(words.every_write);
  request.set_deleted(words.deleted);
  request.set_name(words.name);
  request.set_type(words.type);
  request.set_json(context.flags.json);
  request.set_quiet(context.flags.quiet);
  request.set_terminal(context.console.out_is_terminal);
  request.set_color(context.console.color);
  if (const char* const zone = std::getenv("TZ")) request.set_time_zone(zone);
  return request;
}

Error become_uvfs(const Context& context, const char* verb, const FilesWords& given) {
  std::vector<std::string> words = typed(given);
  words.insert(words.begin(), verb);
  if (context.flags.dry_run && !given.to.empty()) words.emplace_back("--dry-run");
  return hand_over(context, kFilesProgram, std::move(words));
}

Result<ExitCode> ask_daemon(const Context& context, const char* verb, const FilesWords& words) {
  bool begun = false;
  std::ostream& out = context.console.out;
  const auto print = [&](std::string_view bytes) -> Result<void> {
    begun = true;
    if (out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()))) return {};
    return Error{ErrorCode::kIo, "the output cannot be written"};
  };
  const auto end = ask_files({.socket = context.flags.socket, .timeout = kPatience},
                             request_of(context, verb, words), print);
  if (end) {
    out.flush();
    context.console.err << end->errors;
    return static_cast<ExitCode>(end->exit_code);
  }
  // A daemon that is not there, is older, or has no uvfs: who asks says so, or does the work.
  const ErrorCode code = end.error().code;
  if (!begun && (code == ErrorCode::kUnavailable || code == ErrorCode::kNotFound)) {
    return become_uvfs(context, verb, words);
  }
  return end.error();
}

}  // namespace

void add_fs_verbs(CLI::App& app, Context& context) {
  auto& noun = *app.add_subcommand("fs", "Files and directories as they were");
  noun.require_subcommand(1);
  for (const FilesVerb& each : files_verbs()) {
    add_verb<FilesWords>(noun, context, each.name, each.help, each.set_up,
                         [&each](Context& c, const FilesWords& words) -> Result<ExitCode> {
                           return answers(each) ? ask_daemon(c, each.name, words)
                                                : become_uvfs(c, each.name, words);
                         });
  }
}

}  // namespace mariner::client
