#include "server/node/cluster_definition.h"

#include <algorithm>
#include <string>

#include "server/node/config.h"
#include "server/node/identity.h"
#include "server/node/names.h"

namespace mariner::node {

namespace {

Result<void> check_nodes(const meta::Cluster& nodes, const DefinitionReader& reader) {
  const auto wrong = [](std::uint32_t node, const char* what) {
    return Error{ErrorCode::kCorrupt, "names node " + std::to_string(node) + what};
  };
  const auto known = [&](std::uint32_t node) { return reader.knows(replication::NodeId{node}); };
  constexpr const char* kUnknown = ", which has no [[cluster.node]] in the configuration";
  if (!known(nodes.logger())) return wrong(nodes.logger(), kUnknown);
  if (nodes.logger() == reader.self.value && !reader.logs) {
    return wrong(nodes.logger(), ", this one, as its logger: it has not the role \"logger\"");
  }
  const auto& storages = nodes.storages();
  if (storages.empty() || static_cast<std::size_t>(storages.size()) > kVolumeStoragesMax) {
    return Error{ErrorCode::kCorrupt,
                 "has " + std::to_string(storages.size()) + " storage nodes: expected one or two"};
  }
  for (auto at = storages.begin(); at != storages.end(); ++at) {
    if (!known(*at)) return wrong(*at, kUnknown);
    if (std::find(storages.begin(), at, *at) != at) return wrong(*at, " as a storage node twice");
    if (*at == reader.self.value && !reader.stores) {
      return wrong(*at, ", this one, as a storage node: it has not the role \"storage\"");
    }
  }
  const auto& targets = nodes.targets();
  for (auto at = targets.begin(); at != targets.end(); ++at) {
    if (!known(*at)) return wrong(*at, kUnknown);
    if (std::find(targets.begin(), at, *at) != at) return wrong(*at, " as a target twice");
    if (*at == reader.self.value && !reader.serves) {
      return wrong(*at, ", this one, as a target: it has not the role \"target\"");
    }
  }
  return {};
}

}  // namespace

Result<void> check_definition(const meta::Volume& meta, const DefinitionReader& reader) {
  const auto wrong = [&meta](const std::string& what) {
    return Error{ErrorCode::kCorrupt,
                 "volume " + std::to_string(meta.id()) + " of the cluster " + what};
  };
  if (meta.id() > INT32_MAX) return wrong("has a number that none is given");
  if (Result<void> r = check_volume_name(meta.name()); !r) {
    return wrong("has a name that is none: " + r.error().message);
  }
  const std::uint64_t size = meta.size_bytes();
  if (size < kVolumeSizeMin.bytes || size > kVolumeSizeMax.bytes || size % kBlockBytes != 0) {
    return wrong("has " + std::to_string(size) + " bytes: expected a multiple of 4096, " +
                 std::to_string(kVolumeSizeMin.bytes) + " to " +
                 std::to_string(kVolumeSizeMax.bytes));
  }
  if (meta.block_size() != 512 && meta.block_size() != 4096) {
    return wrong("has blocks of " + std::to_string(meta.block_size()) +
                 " bytes: expected 512 or 4096");
  }
  if (meta.uuid().size() != kUuidBytes) {
    return wrong("has a uuid of " + std::to_string(meta.uuid().size()) + " bytes: expected " +
                 std::to_string(kUuidBytes));
  }
  if (meta.state() != meta::Volume::READY || meta.parent_id() != 0) {
    return wrong("is in a state that volumes of a cluster do not have");
  }
  if (Result<void> r = check_nodes(meta.cluster(), reader); !r) return wrong(r.error().message);
  return {};
}

}  // namespace mariner::node
