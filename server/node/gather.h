// Questions that are asked side by side, and answered as one: when all answers are there, in the
// order in which was asked, or the first error among them. One thread only.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "proto/error.h"
#include "proto/unique_function.h"

namespace mariner::node {

// Asks `count` times: ask(i, answer), each of whose answers comes once, possibly at once.
template <typename T>
void gather(std::size_t count,
            const std::function<void(std::size_t, UniqueFunction<void(Result<T>)>)>& ask,
            UniqueFunction<void(Result<std::vector<T>>)> done) {
  struct Gathering {
    std::vector<std::optional<Result<T>>> answers;
    std::size_t left;
    UniqueFunction<void(Result<std::vector<T>>)> done;

    void end() {
      std::vector<T> out;
      for (std::optional<Result<T>>& answer : answers) {
        if (!*answer) return done(answer->error());
        out.push_back(**std::move(answer));
      }
      done(std::move(out));
    }
  };
  if (count == 0) return done(std::vector<T>{});
  auto gathering = std::make_shared<Gathering>();
  gathering->answers.resize(count);
  gathering->left = count;
  gathering->done = std::move(done);
  for (std::size_t i = 0; i < count; ++i) {
    ask(i, [gathering, i](Result<T> answer) {
      gathering->answers[i] = std::move(answer);
      if (--gathering->left == 0) gathering->end();
    });
  }
}

}  // namespace mariner::node
