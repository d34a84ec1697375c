#include "server/client/context.h"

#include <fmt/format.h>

#include <ostream>

#include "server/admin/json.h"
#include "server/client/time_text.h"

namespace mariner::client {

bool Context::print_json(const google::protobuf::Message& message) const {
  if (!flags.json) return false;
  console.print(admin::to_json(message) + "\n");
  return true;
}

Result<api::MomentSpec> Context::moment_spec(const std::string& text) const {
  api::MomentSpec at;
  const auto spec = parse_time(text.empty() ? "now" : text, {now(), zone});
  if (!spec) return spec.error();
  if (const auto* time = std::get_if<VersionTime>(&*spec)) {
    at.set_time_ns(time->ns);
  } else if (const auto* sequence = std::get_if<SequenceNumber>(&*spec)) {
    at.set_sequence(sequence->value);
  } else if (const auto* mark = std::get_if<MarkName>(&*spec)) {
    at.set_mark(mark->value);
  } else {
    at.set_now(true);
  }
  return at;
}

Result<Context::Target> Context::target(const std::string& text) const {
  const auto split = split_object(text);
  if (split.object.empty())
    return Error{ErrorCode::kInvalidArgument, fmt::format("\"{}\" names no volume", text)};
  if (split.time && split.time->empty()) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("\"{}\": expected a time after the @", text)};
  }
  const auto at = moment_spec(split.time.value_or(""));
  if (!at) return at.error();
  return Target{split.object, split.time.has_value(), *at};
}

std::string Context::moment(const api::Moment& moment) const {
  if (moment.sequence() == 0 && moment.time_ns() == 0) return "#0  before the first write";
  const VersionTime time{moment.time_ns()};
  auto text =
      fmt::format("#{}  {}  ({})", moment.sequence(), format_local(time, zone), format_utc(time));
  if (!moment.mark().empty()) text += fmt::format("  mark {}", moment.mark());
  return text;
}

std::string Context::local_time(std::uint64_t time_ns) const {
  return time_ns == 0 ? "-" : format_local(VersionTime{time_ns}, zone);
}

std::string Context::utc_time(std::uint64_t time_ns) const {
  return time_ns == 0 ? "-" : format_utc(VersionTime{time_ns});
}

std::string Context::short_time(std::uint64_t time_ns) const {
  return time_ns == 0 ? "-" : format_local_short(VersionTime{time_ns}, zone);
}

bool Context::confirmed(const std::string& name) const {
  if (flags.yes) return true;
  if (flags.json || !console.in_is_terminal) {
    console.err
        << "mariner: not confirmed: without a terminal this needs --yes; nothing was changed\n";
    return false;
  }
  const auto answer = console.ask(fmt::format("Type {} to go on: ", console.bold(printable(name))));
  if (answer == name) return true;
  console.err << "mariner: not confirmed; nothing was changed\n";
  return false;
}

int Context::report(const Error& error, std::string_view program) const {
  if (flags.json) {
    console.print(admin::to_json(error) + "\n");
  } else {
    console.err << console.red(fmt::format("{}:", program)) << " " << printable(error.message)
                << "\n";
    if (error.code == ErrorCode::kBusy && force_helps) {
      console.err << "Nothing was changed. --force does it all the same.\n";
    }
  }
  return static_cast<int>(exit_code_of(error.code));
}

Result<void> Context::give_up(const SandboxRules& rules) const {
  if (!confine) return {};
  return confine(rules);
}

void Context::note_dry_run() const {
  if (flags.dry_run) console.note("Dry run: nothing was changed.\n");
}

}  // namespace mariner::client
