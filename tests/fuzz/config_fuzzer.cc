// The configuration's parser: an administrator's file may hold anything.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "proto/check.h"
#include "server/node/config.h"

namespace {

// What the daemon relies on.
void check(const mariner::Config& config) {
  CHECK(!config.roles.empty());
  if (config.standalone()) {
    CHECK(config.roles.size() == 1);
    return;
  }
  const auto& cluster = config.cluster;
  CHECK(!cluster.listen.empty() && !cluster.etcd.empty() && !cluster.nodes.empty());
  const auto is_node = [&cluster](const std::string& name) {
    return std::ranges::count(cluster.nodes, name, &mariner::ClusterNodeConfig::name) == 1;
  };
  for (const auto& node : cluster.nodes) {
    CHECK(is_node(node.name));
    CHECK(node.id >= 1 && node.id <= mariner::kClusterNodeIdMax && !node.addresses.empty());
  }
  for (const auto& volume : config.volumes) {
    CHECK(is_node(volume.logger));
    CHECK(volume.storage.size() >= 1 && volume.storage.size() <= mariner::kVolumeStoragesMax);
    CHECK(std::ranges::all_of(volume.storage, is_node));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto reading =
      mariner::parse_config({reinterpret_cast<const char*>(data), size}, "fuzz.toml");
  // Either it is valid, or something says why not.
  CHECK(reading.config.has_value() || !reading.problems.empty());
  if (reading.config) check(*reading.config);
  for (const auto& problem : reading.problems) (void)to_string(problem);
  return 0;
}
