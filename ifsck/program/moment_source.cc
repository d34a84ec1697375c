#include "ifsck/program/moment_source.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <utility>
#include <variant>

#include "ifsck/program/remote_past.h"
#include "ifsck/write_trace.h"
#include "server/client/time_spec.h"

namespace mariner::ifsck {
namespace {

Error wrong(std::string what) { return {ErrorCode::kInvalidArgument, std::move(what)}; }

Result<SequenceNumber> moment_in(TracePast& past, const client::Context& context,
                                 const std::string& text) {
  const auto reach = past.reach();
  if (!reach) return reach.error();
  const auto spec = parse_time(text.empty() ? "now" : text, {context.now(), context.zone});
  if (!spec) return spec.error();
  if (const auto* time = std::get_if<VersionTime>(&*spec)) return past.moment_of(*time);
  if (const auto* sequence = std::get_if<SequenceNumber>(&*spec)) {
    if (*sequence <= reach->newest) return *sequence;
    return Error{ErrorCode::kOutsideWindow,
                 fmt::format("#{} is not there yet; the trace ends with #{}", sequence->value,
                             reach->newest.value)};
  }
  if (std::holds_alternative<MarkName>(*spec)) return wrong("an image has no marks");
  return reach->newest;
}

Result<MomentSource> open_image(const client::Context& context, const NamedMoment& named) {
  auto past = TracePast::open(named.image, named.trace);
  if (!past) return past.error();
  MomentSource source{
      .past = nullptr, .at = {}, .name = named.image, .states_folder = {}, .moment_of = {}};
  const auto at = moment_in(*past, context, named.at);
  if (!at) return at.error();
  source.at = *at;
  auto kept = std::make_unique<TracePast>(std::move(*past));
  source.moment_of = [&context, of = kept.get()](const std::string& time) {
    return moment_in(*of, context, time);
  };
  source.past = std::move(kept);
  return source;
}

Result<MomentSource> open_volume(const client::Context& context, const NamedMoment& named) {
  const auto asked = context.target(named.target);
  if (!asked) return asked.error();
  auto past = RemotePast::open({.socket = context.flags.socket,
                                .volume = asked->object,
                                .from = named.begins_there ? asked->at : api::MomentSpec{},
                                .moves_on = named.moves_on,
                                .timeout = std::chrono::minutes(1)});
  if (!past) return past.error();
  const auto at = past->moment_of(asked->at);
  if (!at) return at.error();
  const std::string cache = cache_folder();
  MomentSource source{
      .past = nullptr,
      .at = *at,
      .name = asked->object,
      .states_folder = cache.empty()
                           ? cache
                           : fmt::format("{}/ifsck/{}-{}", cache, asked->object, past->volume_id()),
      .moment_of = {}};
  auto kept = std::make_unique<RemotePast>(std::move(*past));
  source.moment_of = [&context, of = kept.get()](const std::string& time) {
    const auto spec = context.moment_spec(time);
    return spec ? of->moment_of(*spec) : Result<SequenceNumber>(spec.error());
  };
  source.past = std::move(kept);
  return source;
}

}  // namespace

Result<MomentSource> MomentSource::open(const client::Context& context, const NamedMoment& named) {
  if (named.target.empty() == named.image.empty()) {
    return wrong("expected VOLUME@TIME, or --image FILE with its --trace and --at");
  }
  if (!named.target.empty() && !(named.trace.empty() && named.at.empty())) {
    return wrong("--trace and --at go with --image; a volume's moment is VOLUME@TIME");
  }
  return named.image.empty() ? open_volume(context, named) : open_image(context, named);
}

std::string cache_folder() {
  const char* const cache = std::getenv("XDG_CACHE_HOME");
  if (cache != nullptr && *cache == '/') return std::string(cache) + "/mariner";
  if (geteuid() == 0) return "/var/cache/mariner";
  const char* const home = std::getenv("HOME");
  return home != nullptr && *home == '/' ? std::string(home) + "/.cache/mariner" : "";
}

}  // namespace mariner::ifsck
