#include "server/iscsi/authenticator.h"

#include <algorithm>

namespace mariner::iscsi {

Result<void> NoAuthentication::step(std::span<const TextPair> pairs, TextWriter& answers) {
  for (const TextPair& pair : pairs) {
    if (!handles(pair.key)) continue;
    const auto methods = split_list(pair.value);
    if (std::find(methods.begin(), methods.end(), "None") == methods.end()) {
      return Error{ErrorCode::kProtocol,
                   "AuthMethod: offered " + std::string(pair.value) + ", required None"};
    }
    answers.add(pair.key, "None");
  }
  return {};
}

}  // namespace mariner::iscsi
