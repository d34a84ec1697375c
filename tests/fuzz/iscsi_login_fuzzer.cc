// Any text to a login: it ends, and its answers are bounded and well-formed.
//
// The first byte is the login's flags (stages, T and C). CHAP is asked for where the length divides
// by three.
#include <cstdint>
#include <span>

#include "proto/check.h"
#include "server/iscsi/login.h"
#include "tests/server/iscsi/iscsi_testing.h"

using namespace mariner;
using namespace mariner::iscsi;

namespace {

class AnyAdmission final : public LoginAdmission {
 public:
  std::optional<std::uint16_t> admit(const LoginIdentity&, std::uint16_t, LoginRefusal&) override {
    return 1;
  }
  [[nodiscard]] std::optional<SessionParameters> parameters_of(std::uint16_t) const override {
    return std::nullopt;
  }
  [[nodiscard]] std::chrono::nanoseconds authentication_wait() const override { return {}; }
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 1) return 0;
  const NegotiationLimits limits;
  TestDirectory directory;
  AnyAdmission admission;
  const bool chap = size % 3 == 0;
  if (chap) directory.chap_accounts = {{"alice", "twelve chars", "mariner", "another one!"}};
  if (size % 5 == 0) directory.elsewhere = {.address = "192.0.2.9:3260", .permanent = true};
  Login login({.limits = limits,
               .portal_group = 1,
               .portal = "192.0.2.1:3260",
               .directory = directory,
               .admission = admission});
  const auto text = std::as_bytes(std::span(data, size)).subspan(1);
  // Twice: with what makes most texts complete first, then as it is.
  const std::string names =
      keys({"InitiatorName=iqn.2026-11.test:host", "TargetName=iqn.2026-11.org.mariner:disk"});
  const LoginRequest first = parse_login_request(login_pdu("", chap ? 0 : 1 << 2).bhs);
  if ((data[0] & 1) != 0) {
    const LoginStatus expected =
        directory.elsewhere ? LoginStatus::kMovedPermanently : LoginStatus::kSuccess;
    CHECK(login.step(first, bytes_of(names)).header.status == expected);
  }
  const LoginRequest request = parse_login_request(login_pdu("", data[0]).bhs);
  for (int i = 0; i < (chap ? 3 : 2) && login.state() == Login::State::kInProgress; ++i) {
    const Login::Reply reply = login.step(request, text);
    CHECK(reply.text.size() <= 8192);
    CHECK(parse_text(reply.text));
    CHECK(login.state() != Login::State::kFailed || !login.refusal().message.empty());
    const SessionParameters& parameters = login.identity().parameters;
    CHECK(parameters.send_segment_bytes_max >= 512);
    CHECK(parameters.burst_bytes_max >= 512);
    CHECK(parameters.first_burst_bytes_max <= parameters.burst_bytes_max);
    CHECK(parameters.outstanding_r2t_max >= 1);
  }
  return 0;
}
