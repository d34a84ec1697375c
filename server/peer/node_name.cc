#include "server/peer/node_name.h"

#include <fmt/format.h>

#include <algorithm>

namespace mariner::peer {
namespace {

constexpr std::string_view kScheme = "mariner://";

bool alphanumeric(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); }

}  // namespace

Result<void> check_name(std::string_view what, std::string_view name) {
  const bool characters =
      std::ranges::all_of(name, [](char c) { return alphanumeric(c) || c == '.' || c == '-'; });
  if (!name.empty() && name.size() <= kNodeNameBytesMax && characters &&
      alphanumeric(name.front()) && alphanumeric(name.back())) {
    return {};
  }
  return Error{
      ErrorCode::kInvalidArgument,
      fmt::format("\"{}\" is not a {}'s name: expected 1 to {} characters of a-z, 0-9, '.' "
                  "and '-', with a letter or digit first and last",
                  name.substr(0, kNodeNameBytesMax + 1), what, kNodeNameBytesMax)};
}

std::string to_uri(const NodeName& name) {
  return fmt::format("{}{}/{}", kScheme, name.cluster, name.node);
}

Result<NodeName> parse_uri(std::string_view uri) {
  const auto slash = uri.find('/', kScheme.size());
  if (!uri.starts_with(kScheme) || slash == std::string_view::npos) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("\"{}\" does not name a node: expected mariner://CLUSTER/NODE",
                             uri.substr(0, 2 * kNodeNameBytesMax))};
  }
  NodeName name{.cluster = std::string(uri.substr(kScheme.size(), slash - kScheme.size())),
                .node = std::string(uri.substr(slash + 1))};
  if (const auto good = check_name("cluster", name.cluster); !good) return good.error();
  if (const auto good = check_name("node", name.node); !good) return good.error();
  return name;
}

}  // namespace mariner::peer
