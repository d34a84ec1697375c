#include "uvfs/kept_past.h"

#include <algorithm>

#include "proto/check.h"

namespace mariner::uvfs {

Result<void> KeptPast::read(std::span<const Question> questions, std::span<std::byte> to) {
  CHECK(to.size() == questions.size() * kBlockBytes);
  if (questions.size() > options_.questions_max) return behind().read(questions, to);
  std::vector<Question> asked;
  std::vector<std::size_t> places;  // of their answers
  for (std::size_t i = 0; i < questions.size(); ++i) {
    const ifsck::Overlay::Block* const block = find(questions[i]);
    if (block == nullptr) {
      asked.push_back(questions[i]);
      places.push_back(i);
      continue;
    }
    std::ranges::copy(*block, to.begin() + static_cast<std::ptrdiff_t>(i * kBlockBytes));
  }
  if (asked.empty()) return {};
  std::vector<std::byte> bytes;
  const bool all = asked.size() == questions.size();
  if (!all) bytes.resize(asked.size() * kBlockBytes);
  const std::span<std::byte> answers = all ? to : std::span(bytes);
  if (const auto read = behind().read(asked, answers); !read) return read;
  for (std::size_t i = 0; i < asked.size(); ++i) {
    const auto answer = answers.subspan(i * kBlockBytes, kBlockBytes);
    if (!all) {
      std::ranges::copy(answer, to.begin() + static_cast<std::ptrdiff_t>(places[i] * kBlockBytes));
    }
    keep(asked[i], answer);
  }
  return {};
}

const ifsck::Overlay::Block* KeptPast::find(const Question& question) {
  auto found = places_.find(question);
  if (found == places_.end()) {
    const bool alike = near_.any_alike(question.block, question.at, [&](SequenceNumber other) {
      found = places_.find({question.block, other});
      return found != places_.end();
    });
    if (!alike) return nullptr;
  }
  kept_.splice(kept_.begin(), kept_, found->second);
  return kept_.front().block.get();
}

void KeptPast::expect(std::span<const Question> questions) {
  std::vector<Question> missing(questions.begin(), questions.end());
  if (questions.size() <= options_.questions_max) {
    std::erase_if(missing, [this](const Question& each) { return find(each) != nullptr; });
  }
  if (!missing.empty()) behind().expect(missing);
}

void KeptPast::keep(const Question& question, std::span<const std::byte> block) {
  if (options_.blocks_max == 0 || places_.contains(question)) return;
  if (kept_.size() < options_.blocks_max) {
    kept_.push_front({question, std::make_unique<ifsck::Overlay::Block>()});
  } else {
    places_.erase(kept_.back().question);
    kept_.splice(kept_.begin(), kept_, std::prev(kept_.end()));
    kept_.front().question = question;
  }
  std::ranges::copy(block, kept_.front().block->begin());
  places_[question] = kept_.begin();
}

}  // namespace mariner::uvfs
