// mariner volume create | list | show | resize | retain | delete | import | clone; and the noun
// itself
#include <fmt/format.h>

#include <filesystem>
#include <ostream>

#include "server/client/access_text.h"
#include "server/client/progress.h"
#include "server/client/quantity.h"
#include "server/client/restoring_text.h"
#include "server/client/session_text.h"
#include "server/client/table.h"
#include "server/client/verbs.h"

namespace mariner::client {
namespace {

struct CreateOptions {
  std::string name;
  std::string size;
  std::string window;
  std::string retain;
  std::uint32_t block_size = 512;
  bool sanitize = false;
  bool removable = false;
};

struct ImportOptions {
  std::string name;
  std::string file;
  std::string window;
  std::uint32_t block_size = 512;
};

struct CloneOptions {
  std::string source;
  std::string name;
  std::string window;
  bool sanitize = false;
  bool removable = false;
};

struct RetainOptions {
  std::string name;
  std::string retain;
};

struct ResizeOptions {
  std::string name;
  std::string size;
};

struct DeleteOptions {
  std::string name;
  bool force = false;
};

std::string window_text(std::uint64_t window_s) {
  constexpr auto kLongest =
      static_cast<std::uint64_t>(std::chrono::seconds::max().count() / 1'000'000'000);
  return format_duration(std::chrono::seconds(std::min(window_s, kLongest)));
}

// "3d (2d 4h in 25m)": what the log will hold of it, and from when on.
std::string window_text(const api::Volume& volume) {
  std::string text = window_text(volume.window_s());
  if (!volume.has_outlook()) return text;
  text += " (" + window_text(volume.outlook().lasting_s());
  if (volume.outlook().short_in_s() > 0)
    text += " in " + window_text(volume.outlook().short_in_s());
  return text + ")";
}

// The same in words.
std::string outlook_text(const api::WindowOutlook& outlook) {
  const std::string lasting = window_text(outlook.lasting_s());
  if (outlook.short_in_s() == 0) {
    return fmt::format("the log is too small for the window: it holds {} of it", lasting);
  }
  return fmt::format(
      "in {} the log will be too small for the window, at the present rate, and hold {} of it",
      window_text(outlook.short_in_s()), lasting);
}

// Seconds of a --window; 0 if there is none.
Result<std::uint64_t> window_s(const std::string& text) {
  if (text.empty()) return std::uint64_t{0};
  const auto duration = parse_duration(text);
  if (!duration) return duration.error();
  if (*duration < std::chrono::seconds(1)) {
    return Error{ErrorCode::kInvalidArgument, "--window: expected a second or more, found " + text};
  }
  return static_cast<std::uint64_t>(std::chrono::floor<std::chrono::seconds>(*duration).count());
}

void note_created(const Context& context, const api::Volume& volume, std::string_view what) {
  context.console.note(fmt::format("{} {}: {}, window {}, target {}\n", printable(volume.name()),
                                   what, format_size(volume.size_bytes()),
                                   window_text(volume.window_s()), printable(volume.iqn())));
}

std::string retained_text(const api::Volume& volume) {
  if (volume.kept() == 0) return volume.retain();
  return fmt::format("{}; {} moments are kept", volume.retain(), volume.kept());
}

Result<ExitCode> create(Context& context, const CreateOptions& options) {
  const auto size = parse_size(options.size);
  if (!size) return size.error();
  const auto window = window_s(options.window);
  if (!window) return window.error();
  api::CreateVolumeRequest request;
  request.set_name(options.name);
  request.set_size_bytes(size->bytes);
  request.set_block_size(options.block_size);
  request.set_window_s(*window);
  request.set_retain(options.retain);
  request.set_sanitize(options.sanitize);
  request.set_removable(options.removable);
  request.set_dry_run(context.flags.dry_run);
  const auto volume = context.client().volume_create(request);
  if (!volume) return volume.error();
  if (context.print_json(*volume)) return ExitCode::kDone;
  note_created(context, *volume, context.flags.dry_run ? "would be created" : "created");
  context.note_dry_run();
  return ExitCode::kDone;
}

std::string state_text(const api::Volume& volume) {
  return volume.degraded().empty() ? volume.state() : volume.state() + ", degraded";
}

Result<ExitCode> list_volumes(Context& context, const NoOptions&) {
  const auto volumes = context.client().volume_list();
  if (!volumes) return volumes.error();
  if (context.print_json(*volumes)) return ExitCode::kDone;
  Table table({"NAME", ">SIZE", "STATE", "WINDOW", "OLDEST", "NEWEST", ">HISTORY", ">SESSIONS",
               ">VIEWS", ">MARKS"});
  for (const auto& volume : volumes->volumes()) {
    table.add({volume.name(), format_size(volume.size_bytes()), state_text(volume),
               window_text(volume), context.short_time(volume.oldest().time_ns()),
               context.short_time(volume.newest().time_ns()), format_size(volume.history_bytes()),
               std::to_string(volume.sessions()), std::to_string(volume.views()),
               std::to_string(volume.marks())});
  }
  context.console.print(table.empty() ? "There are no volumes.\n" : table.text(context.console));
  for (const auto& volume : volumes->volumes()) {
    if (volume.failure().empty()) continue;
    context.console.note(fmt::format("{} is not served: {}\n", printable(volume.name()),
                                     printable(volume.failure())));
  }
  return ExitCode::kDone;
}

Result<ExitCode> show_volume(Context& context, const std::string& name) {
  api::VolumeRequest request;
  request.set_name(name);
  const auto volume = context.client().volume_show(request);
  if (!volume) return volume.error();
  if (context.print_json(*volume)) return ExitCode::kDone;
  Facts facts;
  facts.add("name", volume->name());
  facts.add("state", volume->restoring()
                         ? state_text(*volume) + ", restoring a rollback in the background"
                         : state_text(*volume));
  if (!volume->failure().empty()) facts.add("failure", volume->failure());
  if (!volume->degraded().empty()) facts.add("degraded", volume->degraded());
  if (volume->has_restore()) facts.add("rollback", restoring_text(volume->restore()));
  facts.add("size",
            fmt::format("{} ({} bytes)", format_size(volume->size_bytes()), volume->size_bytes()));
  facts.add("block size", std::to_string(volume->block_size()));
  facts.add("window", window_text(volume->window_s()));
  facts.add("behind it", retained_text(*volume));
  if (volume->has_outlook()) facts.add("outlook", outlook_text(volume->outlook()));
  if (volume->sanitize()) facts.add("SANITIZE", "permitted: its history may be erased");
  if (volume->removable()) facts.add("medium", "removable: initiators may eject it");
  facts.add("oldest", context.moment(volume->oldest()));
  facts.add("newest", context.moment(volume->newest()));
  facts.add("history", format_size(volume->history_bytes()));
  facts.add("unapplied", format_size(volume->unapplied_bytes()));
  facts.add("image", fmt::format("{}, {} allocated", volume->image_path(),
                                 format_size(volume->image_bytes())));
  facts.add("target", volume->iqn());
  facts.add("initiators", initiators_text(volume->access()));
  facts.add("accounts", accounts_text(volume->access()));
  if (!volume->access().redirect().empty()) {
    facts.add("redirected to", redirect_text(volume->access()));
  }
  if (!volume->access().declared_in().empty()) {
    facts.add("declared in", volume->access().declared_in());
  }
  facts.add("serial", volume->serial());
  facts.add("NAA", volume->naa());
  facts.add("in use by", fmt::format("{} sessions, {} views, {} marks", volume->sessions(),
                                     volume->views(), volume->marks()));
  context.console.print(facts.text(context.console));
  return ExitCode::kDone;
}

Result<ExitCode> resize(Context& context, const ResizeOptions& options) {
  const auto size = parse_size(options.size);
  if (!size) return size.error();
  auto client = context.client();
  api::VolumeRequest of;
  of.set_name(options.name);
  const auto was = client.volume_show(of);
  if (!was) return was.error();
  api::ResizeRequest request;
  request.set_name(options.name);
  request.set_size_bytes(size->bytes);
  request.set_dry_run(context.flags.dry_run);
  const auto volume = client.volume_resize(request);
  if (!volume) return volume.error();
  if (context.print_json(*volume)) return ExitCode::kDone;
  if (volume->size_bytes() == was->size_bytes()) {
    context.console.note(fmt::format("{} has {} already; nothing changes\n",
                                     printable(volume->name()), format_size(was->size_bytes())));
  } else {
    context.console.note(fmt::format("{} {}: {}, was {}\n", printable(volume->name()),
                                     context.flags.dry_run ? "would grow" : "grew",
                                     format_size(volume->size_bytes()),
                                     format_size(was->size_bytes())));
  }
  context.note_dry_run();
  return ExitCode::kDone;
}

Result<ExitCode> retain(Context& context, const RetainOptions& options) {
  api::RetainRequest request;
  request.set_name(options.name);
  request.set_retain(options.retain);
  request.set_dry_run(context.flags.dry_run);
  const auto volume = context.client().volume_retain(request);
  if (!volume) return volume.error();
  if (context.print_json(*volume)) return ExitCode::kDone;
  context.console.note(fmt::format("{}: every moment of {}, {} behind that: {}\n",
                                   printable(volume->name()), window_text(volume->window_s()),
                                   context.flags.dry_run ? "would keep" : "keeps",
                                   printable(volume->retain())));
  context.note_dry_run();
  return ExitCode::kDone;
}

Result<ExitCode> remove(Context& context, const DeleteOptions& options) {
  auto client = context.client();
  api::VolumeRequest request;
  request.set_name(options.name);
  const auto volume = client.volume_show(request);
  if (!volume) return volume.error();
  // Nobody is asked about what will be refused. (Sessions are shown first.)
  request.set_force(true);
  request.set_dry_run(true);
  if (const auto refused = client.volume_delete(request); !refused) return refused.error();
  if (!context.flags.json) {
    context.console.note(
        fmt::format("This deletes {} ({}): its contents, its history since {} and {} marks.\n",
                    printable(volume->name()), format_size(volume->size_bytes()),
                    context.short_time(volume->oldest().time_ns()), volume->marks()));
    const auto sessions = client.session_list();
    if (!sessions) return sessions.error();
    context.console.note(sessions_text(
        *sessions, [&options](const api::Session& s) { return s.volume() == options.name; }));
  }
  if (!context.flags.dry_run && !context.confirmed(options.name)) return ExitCode::kNotConfirmed;
  context.force_helps = !options.force;
  request.set_force(options.force);
  request.set_dry_run(context.flags.dry_run);
  const auto deleted = client.volume_delete(request);
  if (!deleted) return deleted.error();
  if (context.print_json(*deleted)) return ExitCode::kDone;
  if (!context.flags.dry_run) context.console.note(printable(options.name) + " deleted\n");
  context.note_dry_run();
  return ExitCode::kDone;
}

Result<ExitCode> import(Context& context, const ImportOptions& options) {
  const auto window = window_s(options.window);
  if (!window) return window.error();
  api::ImportRequest request;
  request.set_name(options.name);
  // The daemon opens the file, and its working directory is another.
  std::error_code error;
  const auto path = std::filesystem::absolute(options.file, error);
  if (error)
    return Error{ErrorCode::kInvalidArgument, fmt::format("{}: {}", options.file, error.message())};
  request.set_path(path.string());
  request.set_block_size(options.block_size);
  request.set_window_s(*window);
  request.set_dry_run(context.flags.dry_run);
  Progress progress(context, "importing " + printable(options.name));
  const auto volume = context.client().volume_import(
      request, [&progress](std::uint64_t done, std::uint64_t all) { progress.show(done, all); });
  progress.end();
  if (!volume) return volume.error();
  if (context.print_json(*volume)) return ExitCode::kDone;
  note_created(context, *volume, context.flags.dry_run ? "would be imported" : "imported");
  context.note_dry_run();
  return ExitCode::kDone;
}

Result<ExitCode> clone(Context& context, const CloneOptions& options) {
  const auto target = context.target(options.source);
  if (!target) return target.error();
  const auto window = window_s(options.window);
  if (!window) return window.error();
  api::CloneRequest request;
  request.set_volume(target->object);
  *request.mutable_at() = target->at;
  request.set_name(options.name);
  request.set_window_s(*window);
  request.set_sanitize(options.sanitize);
  request.set_removable(options.removable);
  request.set_dry_run(context.flags.dry_run);
  Progress progress(context, "cloning " + printable(target->object));
  const auto made = context.client().volume_clone(
      request, [&progress](std::uint64_t done, std::uint64_t all) { progress.show(done, all); });
  progress.end();
  if (!made) return made.error();
  if (context.print_json(*made)) return ExitCode::kDone;
  context.console.note(
      fmt::format("{} as of {}\n", printable(made->source()), context.moment(made->at())));
  note_created(context, made->volume(), context.flags.dry_run ? "would be cloned" : "cloned");
  context.note_dry_run();
  return ExitCode::kDone;
}

CLI::Option* add_name(CLI::App& verb, std::string& name) {
  return verb.add_option("VOLUME", name, "The volume's name")->required()->type_name("VOLUME");
}

void add_window(CLI::App& verb, std::string& window, const char* otherwise) {
  verb.add_option("--window", window,
                  std::string("How far back it can be rolled, such as 3d") + otherwise)
      ->type_name("DURATION");
}

// What a volume may be made with, beside its window.
void add_permissions(CLI::App& verb, bool& sanitize, bool& removable) {
  verb.add_flag("--sanitize", sanitize, "Initiators may erase it with its history (SANITIZE)");
  verb.add_flag("--removable", removable,
                "Initiators see a removable medium, which they may eject");
}

void add_block_size(CLI::App& verb, std::uint32_t& block_size) {
  verb.add_option("--block-size", block_size, "Bytes of a block of the LUN: 512 or 4096")
      ->check(CLI::IsMember({512, 4096}))
      ->type_name("BYTES")
      ->default_val(512);
}

}  // namespace

void add_volume_verbs(CLI::App& app, Context& context) {
  auto& noun = *app.add_subcommand(
      "volume", "Create, list, show, change, import, export, clone and delete volumes");
  noun.require_subcommand(1);
  add_verb<CreateOptions>(
      noun, context, "create", "Create an empty volume",
      [](CLI::App& verb, CreateOptions& options) {
        verb.add_option("NAME", options.name, "The new volume's name")
            ->required()
            ->type_name("NAME");
        verb.add_option("--size", options.size, "Its size, such as 100G")
            ->required()
            ->type_name("SIZE");
        add_window(verb, options.window, "");
        verb.add_option("--retain", options.retain,
                        "Moments to keep behind the window, such as \"hourly=24, daily=30\"")
            ->type_name("SCHEDULE");
        add_block_size(verb, options.block_size);
        add_permissions(verb, options.sanitize, options.removable);
      },
      create);
  add_verb<NoOptions>(noun, context, "list", "List the volumes", no_options, list_volumes);
  add_verb<std::string>(
      noun, context, "show", "Show all about a volume",
      [](CLI::App& verb, std::string& name) { add_name(verb, name); }, show_volume);
  add_verb<ResizeOptions>(
      noun, context, "resize", "Make a volume larger, while it is used",
      [](CLI::App& verb, ResizeOptions& options) {
        add_name(verb, options.name);
        verb.add_option("SIZE", options.size, "Its new size, such as 200G")
            ->required()
            ->type_name("SIZE");
      },
      resize);
  add_verb<RetainOptions>(
      noun, context, "retain", "Say which moments are kept behind the window",
      [](CLI::App& verb, RetainOptions& options) {
        add_name(verb, options.name);
        verb.add_option("SCHEDULE", options.retain,
                        "How many moments: \"hourly=24, daily=30, weekly=8, monthly=12, "
                        "yearly=3\", any of them; or none")
            ->required()
            ->type_name("SCHEDULE");
      },
      retain);
  add_verb<DeleteOptions>(
      noun, context, "delete", "Delete a volume with its history",
      [](CLI::App& verb, DeleteOptions& options) {
        add_name(verb, options.name);
        verb.add_flag("--force", options.force, "Also while sessions use it");
      },
      remove);
  add_verb<ImportOptions>(
      noun, context, "import", "Make a volume of a raw image",
      [](CLI::App& verb, ImportOptions& options) {
        verb.add_option("NAME", options.name, "The new volume's name")
            ->required()
            ->type_name("NAME");
        verb.add_option("FILE", options.file,
                        "The raw image, a file or block device on the daemon's machine")
            ->required()
            ->type_name("FILE");
        add_window(verb, options.window, "");
        add_block_size(verb, options.block_size);
      },
      import);
  add_export_verb(noun, context);
  add_verb<CloneOptions>(
      noun, context, "clone", "Make a volume of a moment of another one",
      [](CLI::App& verb, CloneOptions& options) {
        verb.add_option("VOLUME@TIME", options.source, "The volume and the moment (default: now)")
            ->required()
            ->type_name("VOLUME@TIME");
        verb.add_option("NAME", options.name, "The new volume's name")
            ->required()
            ->type_name("NAME");
        add_window(verb, options.window, " (default: as the other one)");
        add_permissions(verb, options.sanitize, options.removable);
      },
      clone);
}

}  // namespace mariner::client
