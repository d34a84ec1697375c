// The engines of rows by name, and their logs.
#pragma once

#include <memory>
#include <string_view>

#include "tests/bench/bosc_rows.h"
#include "tests/bench/multi_queue_rows.h"
#include "tests/bench/one_queue_rows.h"
#include "tests/bench/page_rows.h"

namespace mariner::bench {

inline constexpr std::string_view kRowEngines[] = {"bosc", "multi-queue", "one-queue", "vanilla"};

// `engine` is one of kRowEngines. `loop` outlives it.
[[nodiscard]] inline Result<std::unique_ptr<RowEngine>> make_row_engine(
    std::string_view engine, const RowEngineOptions& options, RingLoop& loop) {
  const auto as_base = [](auto made) -> Result<std::unique_ptr<RowEngine>> {
    if (!made) return made.error();
    return std::unique_ptr<RowEngine>(*std::move(made));
  };
  if (engine == "bosc") return as_base(BoscRows::create(options, loop));
  if (engine == "multi-queue") return as_base(MultiQueueRows::create(options, loop));
  if (engine == "one-queue") return as_base(OneQueueRows::create(options, loop));
  if (engine == "vanilla") return as_base(PageRows::create(options));
  return Error{ErrorCode::kInvalidArgument, "there is no engine \"" + std::string(engine) + "\""};
}

}  // namespace mariner::bench
