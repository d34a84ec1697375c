// SPDX-License-Identifier: GPL-2.0-only
// Which volume a unit is made of, and how marinerd is reached: tgtadm's `--backing-store` and
// `--bsopts`. Options are KEY=VALUE, separated by semicolons (tgtadm cuts at commas). The store may
// be given as a path, of which the last part is the volume: tgt-admin wants a file to be there.
#pragma once

#include <string>
#include <string_view>
#include <variant>

namespace mariner::tgt {

struct Options {
  std::string portal = "127.0.0.1:3261";  // a numeric address and a port, as libiscsi takes it
  std::string target;                     // an iSCSI name
  std::string initiator = "iqn.2026-11.org.mariner:tgt";
  std::string user;  // empty: no CHAP
  std::string password;
};

// What is wrong, for the log: the key, what was expected, and what was found.
struct Refusal {
  std::string why;
};

// `text` may be empty: then everything has its default. Reads the file with the password, which
// has to belong to its owner alone.
[[nodiscard]] std::variant<Options, Refusal> parse_options(std::string_view store,
                                                           std::string_view text);

}  // namespace mariner::tgt
