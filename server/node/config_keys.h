// A configuration as a list of keys with values, for showing what differs between two of them.
#pragma once

#include <string>
#include <vector>

#include "server/node/config.h"

namespace mariner {

struct ConfigKey {
  std::string key;     // "log.max_size"; of a volume "volume.db1.size"
  std::string value;   // as it could stand in the file: "\"8G\"", "true", "[\"a\", \"b\"]"
  std::string volume;  // whose key it is: "db1"; else empty
  friend bool operator==(const ConfigKey&, const ConfigKey&) = default;
};

// All that holds, whether it was set or is so without; in the order of marinerd.toml(5). What is
// not there and has no default, such as the redirection of a volume, is left out, and so is what
// only nodes of a cluster have, of a standalone server.
[[nodiscard]] std::vector<ConfigKey> config_keys(const Config& config);

// "8G", "1536M", "4097": what parse_size() reads back, exactly.
[[nodiscard]] std::string exact_size(ByteSize size);

}  // namespace mariner
