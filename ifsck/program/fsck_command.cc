#include "ifsck/program/fsck_command.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <ostream>
#include <system_error>
#include <thread>
#include <utility>

#include "ifsck/clean_search.h"
#include "ifsck/follower.h"
#include "ifsck/program/fsck_report.h"
#include "ifsck/program/moment_source.h"
#include "ifsck/write_trace.h"
#include "proto/bytes.h"
#include "server/client/application.h"
#include "server/client/context.h"
#include "server/client/quantity.h"

namespace mariner::ifsck {
namespace {

using client::Context;
using client::ExitCode;
using Clock = std::chrono::steady_clock;

struct Words {
  NamedMoment named;
  std::string states;  // a folder; empty: the usual one
  bool forget = false;
  unsigned level = 1;
  std::string path;
  std::string after;  // a duration; empty: as usual
  std::string before;
  std::string every = "10s";
  bool once = false;
  std::string output;
};

// How far a full check is, on a terminal's last line.
class Counter {
 public:
  explicit Counter(const client::Console& console)
      : console_(console), shown_(console.out_is_terminal && !console.quiet) {}
  ~Counter() { clear(); }
  Counter(const Counter&) = delete;
  Counter& operator=(const Counter&) = delete;

  void show(const std::string& text) {
    const auto now = Clock::now();
    if (!shown_ || now < next_) return;
    next_ = now + std::chrono::milliseconds(200);
    console_.err << "\r\x1b[K" << text << std::flush;
    drawn_ = true;
  }
  void clear() {
    if (drawn_) console_.err << "\r\x1b[K" << std::flush;
    drawn_ = false;
  }

 private:
  const client::Console& console_;
  const bool shown_;
  bool drawn_ = false;
  Clock::time_point next_ = Clock::now() + std::chrono::milliseconds(500);
};

// The folder of that name, which is made if it is not there; none: it cannot be.
TraceFile open_folder(const std::string& path) {
  if (path.empty()) return TraceFile();
  std::error_code ignored;
  std::filesystem::create_directories(path, ignored);
  return TraceFile(::open(path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
}

// What is known of other moments: in a folder if there is one, else in memory alone. Nothing else
// is opened from here on.
Result<KnownStates> open_states(const Context& context, const Words& words,
                                const MomentSource& source) {
  using Files = client::SandboxRules::Files;
  const std::string usual = words.states.empty() ? source.states_folder : words.states;
  const TraceFile folder = open_folder(words.forget ? "" : usual);
  const bool kept = folder.fd() >= 0;
  const auto given_up =
      context.give_up({.files = kept ? Files::kKept : Files::kNone, .folder = folder.fd()});
  if (!given_up) return given_up.error();
  // (An image without a trace is as it is now: whoever writes to it leaves its only moment, and
  // what was known of that, as they were.)
  const bool stays = words.named.image.empty() || !words.named.trace.empty();
  return KnownStates({.folder = kept ? usual : "", .reads = stays});
}

// Tells the daemon what was found, so that its history shows it. A daemon that does not take it (it
// is older, or the volume is deleted meanwhile) changes nothing about the check.
void save_verdicts(const Context& context, const Words& words,
                   const std::vector<api::Verdict>& verdicts) {
  const auto target = context.target(words.named.target);
  if (words.named.target.empty() || words.forget || verdicts.empty() || !target) return;
  api::SaveVerdictsRequest request;
  request.set_volume(target->object);
  for (const api::Verdict& each : verdicts) *request.add_verdicts() = each;
  const auto saved = context.client().verdicts_save(request);
  if (!saved) {
    context.console.note(
        fmt::format("The history does not show this: {}\n", saved.error().message));
  }
}

api::Verdict to_verdict(const MomentReport& report, std::chrono::nanoseconds took) {
  api::Verdict verdict;
  verdict.mutable_at()->set_sequence(report.at.value);
  verdict.set_verdict(std::string(verdict_name(report.verdict)));
  verdict.set_level(report.level);
  verdict.set_findings(report.findings_all);
  verdict.set_blocks_mended(report.blocks_mended);
  verdict.set_duration_ns(static_cast<std::uint64_t>(took.count()));
  return verdict;
}

Error not_written(const std::string& path) {
  return {ErrorCode::kIo,
          fmt::format("{}: cannot be written: {}", path, std::generic_category().message(errno))};
}

// `output`, if there is one, is opened for its repairs.
Result<CheckedMoment> check_named(const Context& context, const Words& words, Overlay& overlay,
                                  TraceFile* output = nullptr) {
  if ((words.level == 3) == words.path.empty()) {
    return Error{ErrorCode::kInvalidArgument,
                 words.path.empty() ? "level 3 is of one file or folder: name it with --path"
                                    : "--path goes with --level 3"};
  }
  const auto source = MomentSource::open(context, words.named);
  if (!source) return source.error();
  if (output != nullptr) {
    *output = TraceFile(::open(words.output.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    if (output->fd() < 0) return not_written(words.output);
  }
  auto states = open_states(context, words, *source);
  if (!states) return states.error();
  Counter counter(context.console);
  MomentCheckOptions options{.level = static_cast<std::uint8_t>(words.level), .path = words.path};
  if (!words.after.empty()) {
    const auto after = parse_duration(words.after);
    if (!after) return after.error();
    options.after = *after;
  }
  options.progress = [&](std::uint64_t done, std::uint64_t all) {
    counter.show(fmt::format("the first check looks at everything: {} of {} inodes", done, all));
  };
  const auto begun = Clock::now();
  auto report = check_moment(*source->past, source->at, *states, overlay, options);
  if (!report) return report.error();
  const auto took = Clock::now() - begun;
  counter.clear();
  // (Level 3 says nothing of the rest.)
  if (words.level < 3) save_verdicts(context, words, {to_verdict(*report, took)});
  return CheckedMoment{
      .name = source->name, .path = words.path, .report = std::move(*report), .took = took};
}

Result<ExitCode> check(Context& context, const Words& words) {
  Overlay overlay;
  const auto checked = check_named(context, words, overlay);
  if (!checked) return checked.error();
  if (!context.print_json(to_message(context, *checked))) {
    context.console.print(to_text(context, *checked));
  }
  return checked->report.verdict == Verdict::kClean ? ExitCode::kDone : ExitCode::kErrorsFound;
}

// Records of 8 bytes, the block's number, and its 4096 bytes.
Result<void> write_blocks(const std::string& path, const TraceFile& file, const Overlay& overlay) {
  if (ftruncate(file.fd(), 0) != 0 && errno != EINVAL) return not_written(path);  // (not a file)
  std::array<std::byte, 8 + kBlockBytes> record{};
  std::uint64_t offset = 0;
  Result<void> done;
  overlay.for_each([&](Lbn lbn, const Overlay::Block& block) {
    if (!done) return;
    store_le(record.data(), lbn.value);
    std::ranges::copy(block, record.begin() + 8);
    done = file.write(offset, record);
    offset += record.size();
  });
  if (!done) return done;
  if (fsync(file.fd()) != 0 && errno != EINVAL) return not_written(path);
  return {};
}

Result<ExitCode> repairs(Context& context, const Words& words) {
  Overlay overlay;
  TraceFile output;
  const auto checked = check_named(context, words, overlay, &output);
  if (!checked) return checked.error();
  const bool whole = checked->report.left.empty();
  if (whole) {
    if (const auto written = write_blocks(words.output, output, overlay); !written) {
      return written.error();
    }
  }
  if (!context.print_json(to_message(context, *checked))) {
    context.console.print(to_text(context, *checked));
    context.console.note(
        whole ? fmt::format("{} blocks are in {}\n", overlay.size(), words.output)
              : "Nothing was written: these blocks would not make it a sound file system\n");
  }
  return whole ? ExitCode::kDone : ExitCode::kErrorsFound;
}

Result<ExitCode> find_clean(Context& context, const Words& words) {
  NamedMoment named = words.named;
  if (!words.before.empty()) {
    if (named.target.find('@') != std::string::npos || !named.at.empty()) {
      return Error{ErrorCode::kInvalidArgument, "a moment is named twice; --before is enough"};
    }
    (named.target.empty() ? named.at : named.target += "@") += words.before;
  }
  const auto source = MomentSource::open(context, named);
  if (!source) return source.error();
  auto states = open_states(context, words, *source);
  if (!states) return states.error();
  Counter counter(context.console);
  const auto begun = Clock::now();
  std::uint64_t looks = 0;
  std::vector<api::Verdict> verdicts;
  auto last = begun;
  CleanSearch::Options options{.level = static_cast<std::uint8_t>(words.level)};
  options.looked = [&](const MomentReport& report) {
    counter.show(fmt::format("{} moments; #{} is {}", ++looks, report.at.value,
                             verdict_name(report.verdict)));
    const auto now = Clock::now();
    // (Whether the others can be mended was not tried.)
    if (report.verdict == Verdict::kClean) verdicts.push_back(to_verdict(report, now - last));
    last = now;
  };
  const auto search = CleanSearch::run(*source->past, source->at, *states, options);
  counter.clear();
  save_verdicts(context, words, verdicts);
  if (!search) return search.error();
  if (!search->found) {
    return Error{ErrorCode::kNotFound,
                 fmt::format("{}: none of {} moments from #{} to #{} is clean; ifsck check says "
                             "what is wrong with one, and mends it",
                             source->name, search->looks, search->oldest.value, source->at.value)};
  }
  const auto time = source->past->time_of(*search->found);
  if (!time) return time.error();
  api::FsckFound found;
  found.set_volume(source->name);
  *found.mutable_at() = to_message(context, *search->found, *time);
  found.set_moments_looked_at(search->looks);
  found.set_some_skipped(search->some_skipped);
  found.set_duration_ns(static_cast<std::uint64_t>((Clock::now() - begun).count()));
  if (context.print_json(found)) return ExitCode::kDone;
  context.console.print(fmt::format("{}  {}\n", source->name, context.moment(found.at())));
  context.console.note(fmt::format(
      "{} moments were looked at, in {}{}\n", search->looks,
      format_duration(std::chrono::nanoseconds(found.duration_ns())),
      search->some_skipped ? "; a newer one may be clean, too: there were too many" : ""));
  return ExitCode::kDone;
}

// What a follower looked at, as a line.
void tell(const Context& context, const CheckedMoment& checked,
          const std::optional<std::uint32_t>& transaction) {
  if (context.print_json(to_message(context, checked))) return;
  const MomentReport& report = checked.report;
  context.console.print(fmt::format(
      "{}  #{}  {}: {}\n", context.short_time(report.time.ns), report.at.value,
      transaction ? fmt::format("transaction {}", *transaction) : "rests",
      report.findings_all == 0
          ? std::string(verdict_name(report.verdict))
          : fmt::format("{}, {} findings", verdict_name(report.verdict), report.findings_all)));
}

Result<ExitCode> follow(Context& context, const Words& words) {
  const auto every = parse_duration(words.every);
  if (!every) return every.error();
  if (*every < std::chrono::milliseconds(100)) {
    return Error{ErrorCode::kInvalidArgument, "--every is 100ms at least"};
  }
  const auto source = MomentSource::open(context, words.named);
  if (!source) return source.error();
  auto states = open_states(context, words, *source);
  if (!states) return states.error();
  Follower follower(*source->past, *states, context.now);
  for (;; std::this_thread::sleep_for(*every)) {
    const auto begun = Clock::now();
    auto look = follower.look();
    if (!look) {
      if (words.once || look.error().code != ErrorCode::kUnavailable) return look.error();
      context.console.note(fmt::format("{}: {}\n", source->name, look.error().message));
      continue;
    }
    if (*look) {
      const auto took = Clock::now() - begun;
      save_verdicts(context, words, {to_verdict((*look)->report, took)});
      tell(context,
           {.name = source->name, .path = {}, .report = std::move((*look)->report), .took = took},
           (*look)->transaction);
    }
    if (words.once) return ExitCode::kDone;
  }
}

void add_moment(CLI::App& verb, Words& words, const char* what) {
  verb.add_option(what, words.named.target, "The volume and the moment (default: now)")
      ->type_name(what);
  verb.add_option("--image", words.named.image, "A raw image or a device, instead of a volume")
      ->type_name("FILE");
  verb.add_option("--trace", words.named.trace, "What was written to the image since")
      ->type_name("FILE");
  verb.add_option("--states", words.states, "Keep there what is known of other moments")
      ->type_name("FOLDER");
  verb.add_flag("--no-save", words.forget, "Neither use nor keep what is known of other moments");
}

void add_level(CLI::App& verb, Words& words, unsigned most) {
  verb.add_option("--level", words.level,
                  most == 3 ? "1 everything; 2 without bitmaps and counts, as for a view that is "
                              "read; 3 the file or folder of --path, and the way to it"
                            : "1 everything; 2 without bitmaps and counts, as for a view that is "
                              "read")
      ->check(CLI::Range(1u, most));
}

void add_after(CLI::App& verb, Words& words) {
  verb.add_option("--after", words.after,
                  "Complete what was under way from what was written so long afterwards (default: "
                  "35s); 0s: undo it")
      ->type_name("DURATION");
}

void add_at(CLI::App& verb, Words& words) {
  verb.add_option("--at", words.named.at, "The moment of an image with a trace")->type_name("TIME");
}

template <typename Setup, typename Run>
void add_verb(CLI::App& app, Context& context, const char* name, const char* help, Setup setup,
              Run run) {
  auto words = std::make_shared<Words>();
  auto* const verb = app.add_subcommand(name, help);
  setup(*verb, *words);
  verb->callback([&context, words, run] {
    context.action = [&context, words, run] { return run(context, *words); };
  });
}

void add_words(CLI::App& app, Context& context) {
  client::add_common_flags(app, context, "Print JSON");
  add_verb(
      app, context, "check", "Check the file system at a moment, and try to mend it",
      [](CLI::App& verb, Words& words) {
        add_moment(verb, words, "VOLUME@TIME");
        add_at(verb, words);
        add_level(verb, words, 3);
        add_after(verb, words);
        verb.add_option("--path", words.path, "Of level 3: a file or folder")->type_name("PATH");
      },
      check);
  add_verb(
      app, context, "repairs", "Write the blocks that make a moment a sound file system",
      [](CLI::App& verb, Words& words) {
        add_moment(verb, words, "VOLUME@TIME");
        add_at(verb, words);
        add_level(verb, words, 2);
        add_after(verb, words);
        verb.add_option("--output", words.output, "The file to write")
            ->required()
            ->type_name("FILE");
      },
      repairs);
  add_verb(
      app, context, "find-clean", "Find the newest moment whose file system needs no repair",
      [](CLI::App& verb, Words& words) {
        add_moment(verb, words, "VOLUME");
        add_level(verb, words, 2);
        verb.add_option("--before", words.before, "At this moment or before (default: now)")
            ->type_name("TIME");
      },
      find_clean);
  add_verb(
      app, context, "follow",
      "Check a volume's newest moments while it is written to, so that its history shows clean "
      "ones",
      [](CLI::App& verb, Words& words) {
        verb.add_option("VOLUME", words.named.target, "The volume")
            ->required()
            ->type_name("VOLUME");
        verb.add_option("--every", words.every, "How often (default: " + words.every + ")")
            ->type_name("DURATION");
        verb.add_flag("--once", words.once, "Once, and end");
        verb.add_option("--states", words.states, "Keep there what is known of other moments")
            ->type_name("FOLDER");
      },
      follow);
  app.footer(
      "Nothing is written to the volume or the image. Exit code 10: something is wrong with the "
      "file system.\nA TIME is as for mariner(1). See ifsck(1).");
}

}  // namespace

int run_fsck_command(const std::vector<std::string>& words, client::Console console,
                     const Zone& zone, std::function<VersionTime()> now, client::Confine confine) {
  Context context{console, zone, std::move(now), {}, {}};
  context.confine = std::move(confine);
  CLI::App app("Makes moments of a volume file systems: ext2, ext3 and ext4.", "ifsck");
  add_words(app, context);
  return client::run_application(app, context, words);
}

}  // namespace mariner::ifsck
