#include "server/client/application.h"

#include <CLI/CLI.hpp>
#include <new>

namespace mariner::client {
namespace {

// What a foreign file system makes a program ask for is bounded: it ends with that, not with a
// signal.
Result<ExitCode> act(const Context& context) {
  try {
    return context.action();
  } catch (const std::bad_alloc&) {
    return Error{ErrorCode::kLimit,
                 "more memory would be needed than this process may have: ask for less at once"};
  }
}

}  // namespace

void add_common_flags(CLI::App& app, Context& context, const std::string& json) {
  Flags& flags = context.flags;
  app.set_version_flag("--version", app.get_name() + " " MARINER_VERSION);
  app.require_subcommand(1);
  app.fallthrough();
  app.add_flag("--json", flags.json, json);
  app.add_flag("--quiet", flags.quiet, "Print only what was asked for, and errors");
  app.add_flag("--no-color", flags.no_color, "No colors");
  app.add_option("--socket", flags.socket,
                 "The daemon's admin socket (default: " + flags.socket + ")")
      ->type_name("PATH");
}

int run_application(CLI::App& app, Context& context, const std::vector<std::string>& words) {
  Console& console = context.console;
  try {
    // (It takes them from the back.)
    app.parse(std::vector<std::string>(words.rbegin(), words.rend()));
  } catch (const CLI::ParseError& error) {
    const int code = app.exit(error, console.out, console.err);
    return code == 0 ? 0 : static_cast<int>(ExitCode::kUsage);
  }
  console.quiet = context.flags.quiet;
  console.color = console.color && console.out_is_terminal && !context.flags.no_color;
  const auto result = act(context);
  return result ? static_cast<int>(*result) : context.report(result.error(), app.get_name());
}

}  // namespace mariner::client
