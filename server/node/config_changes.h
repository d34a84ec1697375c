// What differs between the configuration that a daemon runs with and one that was read: what of it
// is taken at once, what waits for the next start, and what is never taken.
#pragma once

#include <string>
#include <vector>

#include "server/node/config.h"

namespace mariner {

struct ConfigChange {
  enum class Effect { kAtOnce, kNextStart, kNever };

  std::string key;   // "log.on_full", "volume.db1.size"
  std::string from;  // as in the file; empty: it was not there
  std::string to;    // the same; empty: it is gone
  Effect effect = Effect::kAtOnce;
  std::string reason;  // of kNever: why, and what to do
};

// In the order of marinerd.toml(5); what is gone stands last. With other roles nothing is taken
// before the next start.
[[nodiscard]] std::vector<ConfigChange> config_changes(const Config& running, const Config& read);

// Their keys, joined for a line of the log.
[[nodiscard]] std::string keys_of(const std::vector<ConfigChange>& changes,
                                  ConfigChange::Effect effect);

// Sets the keys that need nothing else than their new value. (Accounts and volumes may be refused.)
void take_changes(Config& running, const Config& read);

}  // namespace mariner
