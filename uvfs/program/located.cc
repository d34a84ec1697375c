#include "uvfs/program/located.h"

#include <utility>

namespace mariner::uvfs {

Result<Located> Located::open(const client::Context& context, const Words& words) {
  auto name = parse_object_name(context, words.object, {.image = !words.source.image.empty()});
  if (!name) return name.error();
  auto source = FileSource::open(context, words.source, *name);
  if (!source) return source.error();
  const SequenceNumber at = source->moments.at;
  auto moment = source->moment(context, at);
  if (!moment) return moment.error();
  auto history = open_history(*source->moments.past, {at, at});
  if (!history) return history.error();
  auto found = find_object(*history, *name, at);
  if (!found) return found.error();
  return Located{.name = std::move(*name),
                 .source = std::move(*source),
                 .history = std::move(*history),
                 .at = at,
                 .moment = std::move(*moment),
                 .found = *found};
}

}  // namespace mariner::uvfs
