#include "server/client/progress.h"

#include <fmt/format.h>

#include <algorithm>
#include <ostream>

#include "server/admin/json.h"
#include "server/client/quantity.h"

namespace mariner::client {

void Progress::show(std::uint64_t done_bytes, std::uint64_t total_bytes) {
  const auto& console = context_.console;
  if (console.quiet) return;
  if (context_.flags.json || !console.out_is_terminal) {
    console.print(fmt::format("{{\"schema\":{},\"done_bytes\":\"{}\",\"total_bytes\":\"{}\"}}\n",
                              admin::kSchema, done_bytes, total_bytes));
    return;
  }
  constexpr int kCells = 30;
  const double share =
      total_bytes == 0
          ? 0
          : std::min(1.0, static_cast<double>(done_bytes) / static_cast<double>(total_bytes));
  const auto full = static_cast<int>(share * kCells);
  std::string bar;
  for (int i = 0; i < kCells; ++i) bar += i < full ? "█" : "░";
  console.out << fmt::format("\r{} {} {:3.0f} %  {} of {}  ", what_, bar, share * 100,
                             format_size(done_bytes), format_size(total_bytes))
              << std::flush;
  drawn_ = true;
}

void Progress::end() {
  if (drawn_) context_.console.out << "\n";
  drawn_ = false;
}

}  // namespace mariner::client
