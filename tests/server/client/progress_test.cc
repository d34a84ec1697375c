#include "server/client/progress.h"

#include <gtest/gtest.h>

#include <sstream>

#include "tests/server/client/zones.h"

namespace mariner::client {
namespace {

std::string shown(bool terminal, bool quiet, std::uint64_t done, std::uint64_t all) {
  std::istringstream in;
  std::ostringstream out;
  Console console{.in = in, .out = out, .err = out, .out_is_terminal = terminal, .quiet = quiet};
  const SystemZone zone;
  const Context context{console, zone, {}, {}, {}};
  Progress progress(context, "importing");
  progress.show(done, all);
  progress.end();
  return out.str();
}

TEST(Progress, ABarOnATerminal) {
  EXPECT_EQ(shown(true, false, 1024, 2048),
            "\rimporting ███████████████░░░░░░░░░░░░░░░  50 %  1 KiB of 2 KiB  \n");
  EXPECT_NE(shown(true, false, 0, 0).find("  0 %"), std::string::npos);
  EXPECT_NE(shown(true, false, 9, 3).find("100 %"), std::string::npos);
}

TEST(Progress, LinesOtherwise) {
  EXPECT_EQ(shown(false, false, 1, 2),
            "{\"schema\":1,\"done_bytes\":\"1\",\"total_bytes\":\"2\"}\n");
}

TEST(Progress, NothingIfQuiet) {
  EXPECT_EQ(shown(true, true, 1, 2), "");
  EXPECT_EQ(shown(false, true, 1, 2), "");
}

}  // namespace
}  // namespace mariner::client
