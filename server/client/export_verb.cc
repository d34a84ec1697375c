// mariner volume export
#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <ostream>

#include "server/admin/json.h"
#include "server/client/moment_export.h"
#include "server/client/moment_keeper.h"
#include "server/client/output_file.h"
#include "server/client/progress.h"
#include "server/client/qcow2_image.h"
#include "server/client/quantity.h"
#include "server/client/raw_image.h"
#include "server/client/raw_stream.h"
#include "server/client/verbs.h"

namespace mariner::client {
namespace {

constexpr std::string_view kRaw = "raw";
constexpr std::string_view kQcow2 = "qcow2";
constexpr std::string_view kStandardOutput = "-";

struct ExportOptions {
  std::string target;
  std::string file;
  std::string format;
  bool force = false;

  [[nodiscard]] bool to_stream() const { return file == kStandardOutput; }
};

std::string format_of(const ExportOptions& options) {
  if (!options.format.empty()) return options.format;
  return std::string(options.file.ends_with(".qcow2") ? kQcow2 : kRaw);
}

// What can be told of the destination before anything is asked of the daemon.
Result<void> check_destination(const Context& context, const ExportOptions& options) {
  const bool is_raw = format_of(options) == kRaw;
  if (options.to_stream()) {
    if (!is_raw) {
      return Error{ErrorCode::kInvalidArgument,
                   "a qcow2 image is not written from front to back: expected a file, found -"};
    }
    if (context.console.out_is_terminal && !context.flags.dry_run) {
      return Error{ErrorCode::kInvalidArgument,
                   "the standard output is a terminal: name a file, or pipe it into something"};
    }
    return {};
  }
  const auto kind = OutputFile::look(options.file, options.force);
  if (!kind) return kind.error();
  if (*kind == OutputFile::Kind::kDevice && !is_raw) {
    return Error{ErrorCode::kInvalidArgument,
                 options.file + " is a block device: expected --format raw"};
  }
  return {};
}

// Writes all of it to where it is to be.
Result<std::uint64_t> write_out(const Context& context, const ExportOptions& options,
                                PastClient& past, Progress& progress) {
  const std::uint64_t size_bytes = past.past().size_bytes();
  const SequenceNumber at{past.past().from().sequence()};
  if (options.to_stream()) {
    RawStream stream(context.console.out, size_bytes);
    return export_moment(past, at, stream, [](std::uint64_t, std::uint64_t) {});
  }
  const auto file = OutputFile::open(options.file, options.force);
  if (!file) return file.error();
  if ((*file)->is_device() && (*file)->device_bytes() < size_bytes) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("{} has {} bytes: expected {} at least, which the volume has",
                             options.file, (*file)->device_bytes(), size_bytes)};
  }
  std::unique_ptr<ExportSink> sink;
  if (format_of(options) == kQcow2) {
    sink = std::make_unique<Qcow2Image>(**file, size_bytes);
  } else {
    sink = std::make_unique<RawImage>(**file, size_bytes);
  }
  const auto passed_on = export_moment(
      past, at, *sink,
      [&progress](std::uint64_t done, std::uint64_t all) { progress.show(done, all); });
  if (!passed_on) return passed_on;
  if (const Result<void> committed = (*file)->commit(); !committed) return committed.error();
  return passed_on;
}

// What is told of it: the image has the standard output for itself if it goes there.
class Report {
 public:
  Report(const Context& context, const ExportOptions& options, const api::Past& past)
      : context_(context), options_(options) {
    answer_.set_schema(1);
    answer_.set_volume(past.volume());
    *answer_.mutable_at() = past.from();
    answer_.set_file(options.file);
    answer_.set_format(format_of(options));
    answer_.set_size_bytes(past.size_bytes());
    answer_.set_dry_run(context.flags.dry_run);
  }

  void moment() const {
    note(fmt::format("{} as of {}\n", printable(answer_.volume()), context_.moment(answer_.at())));
  }
  void planned() const {
    if (context_.flags.json) return json();
    note(fmt::format("would be exported: {} to {}, {}\nDry run: nothing was changed.\n",
                     format_size(answer_.size_bytes()), where(), answer_.format()));
  }
  void done(std::uint64_t data_bytes) {
    answer_.set_data_bytes(data_bytes);
    if (context_.flags.json) return json();
    note(fmt::format("exported: {}, of which {} are not zeros, to {}, {}\n",
                     format_size(answer_.size_bytes()), format_size(data_bytes), where(),
                     answer_.format()));
  }

 private:
  [[nodiscard]] std::ostream& out() const {
    return options_.to_stream() ? context_.console.err : context_.console.out;
  }
  [[nodiscard]] std::string where() const {
    return options_.to_stream() ? "the standard output" : printable(options_.file);
  }
  void note(const std::string& text) const {
    if (!context_.flags.json && !context_.console.quiet) out() << text;
  }
  void json() const { out() << admin::to_json(answer_) << "\n"; }

  const Context& context_;
  const ExportOptions& options_;
  api::Export answer_;
};

Result<ExitCode> run_export(Context& context, const ExportOptions& options) {
  const auto target = context.target(options.target);
  if (!target) return target.error();
  if (const auto good = check_destination(context, options); !good) return good.error();
  PastClient::Options reading{
      .socket = context.flags.socket, .volume = target->object, .from = target->at};
  auto past = PastClient::open(reading);
  if (!past) return past.error();
  Report report(context, options, past->past());
  report.moment();
  if (context.flags.dry_run) {
    report.planned();
    return ExitCode::kDone;
  }
  reading.from.set_sequence(past->past().from().sequence());
  const auto keeper = MomentKeeper::keep(reading);
  if (!keeper) return keeper.error();
  Progress progress(context, "exporting " + printable(target->object));
  const auto data_bytes = write_out(context, options, *past, progress);
  progress.end();
  if (!data_bytes) return data_bytes.error();
  report.done(*data_bytes);
  return ExitCode::kDone;
}

}  // namespace

void add_export_verb(CLI::App& noun, Context& context) {
  add_verb<ExportOptions>(
      noun, context, "export", "Write a volume as of a moment to a file",
      [](CLI::App& verb, ExportOptions& options) {
        verb.add_option("VOLUME@TIME", options.target, "The volume and the moment (default: now)")
            ->required()
            ->type_name("VOLUME@TIME");
        verb.add_option("FILE", options.file,
                        "The image to make, here, or a block device; -: the standard output")
            ->required()
            ->type_name("FILE");
        verb.add_option("--format", options.format,
                        "raw or qcow2 (default: raw, but qcow2 for FILE.qcow2)")
            ->check(CLI::IsMember({std::string(kRaw), std::string(kQcow2)}))
            ->type_name("FORMAT");
        verb.add_flag("--force", options.force, "Replace a file, overwrite a block device");
      },
      run_export);
}

}  // namespace mariner::client
