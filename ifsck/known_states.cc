#include "ifsck/known_states.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

namespace mariner::ifsck {
namespace {

constexpr std::string_view kSuffix = ".baseline";
// More are not held in memory.
constexpr std::size_t kLoadedMax = 4;

std::uint64_t distance(SequenceNumber one, SequenceNumber two) {
  return one > two ? one.value - two.value : two.value - one.value;
}

std::optional<SequenceNumber> number_of(std::string_view name) {
  if (!name.ends_with(kSuffix)) return {};
  name.remove_suffix(kSuffix.size());
  SequenceNumber number;
  const auto end = name.data() + name.size();
  const auto parsed = std::from_chars(name.data(), end, number.value);
  if (parsed.ec != std::errc{} || parsed.ptr != end) return {};
  return number;
}

}  // namespace

std::string KnownStates::path_of(SequenceNumber at) const {
  return fmt::format("{}/{}{}", options_.folder, at.value, kSuffix);
}

std::vector<SequenceNumber> KnownStates::in_folder() const {
  std::vector<SequenceNumber> found;
  if (options_.folder.empty()) return found;
  std::error_code error;
  for (auto each = std::filesystem::directory_iterator(options_.folder, error);
       !error && each != std::filesystem::directory_iterator(); each.increment(error)) {
    const auto number = number_of(each->path().filename().string());
    if (number) found.push_back(*number);
  }
  std::ranges::sort(found);
  return found;
}

std::shared_ptr<KeptBaseline> KnownStates::nearest(SequenceNumber at, SequenceNumber oldest,
                                                   SequenceNumber newest) {
  std::set<SequenceNumber> all;
  for (const auto& [number, state] : loaded_) all.insert(number);
  if (options_.reads) {
    for (const SequenceNumber each : in_folder()) all.insert(each);
  }
  std::vector<SequenceNumber> order;
  for (const SequenceNumber each : all) {
    if (each >= oldest && each <= newest && !forgotten_.contains(each)) order.push_back(each);
  }
  std::ranges::stable_sort(order, {}, [&](SequenceNumber each) { return distance(each, at); });
  for (const SequenceNumber each : order) {
    const auto found = loaded_.find(each);
    if (found != loaded_.end()) return found->second;
    auto read = read_baseline(path_of(each));
    if (!read || read->baseline.at != each) continue;
    if (loaded_.size() >= kLoadedMax) loaded_.clear();
    return loaded_[each] = std::make_shared<KeptBaseline>(std::move(*read));
  }
  return nullptr;
}

Result<void> KnownStates::keep(KeptBaseline state) {
  const SequenceNumber at = state.baseline.at;
  forgotten_.erase(at);
  if (loaded_.size() >= kLoadedMax) loaded_.erase(loaded_.begin());
  const auto& kept = loaded_[at] = std::make_shared<KeptBaseline>(std::move(state));
  if (options_.folder.empty()) return {};
  std::error_code error;
  std::filesystem::create_directories(options_.folder, error);
  if (error) {
    return Error{ErrorCode::kIo,
                 fmt::format("{}: cannot be made: {}", options_.folder, error.message())};
  }
  const auto written = write_baseline(path_of(at), *kept);
  if (!written) return written;
  thin_out();
  return {};
}

void KnownStates::forget(SequenceNumber at) {
  loaded_.erase(at);
  forgotten_.insert(at);
  if (options_.folder.empty()) return;
  std::error_code ignored;
  std::filesystem::remove(path_of(at), ignored);
}

// The oldest and the newest stay; what is left is spread evenly.
void KnownStates::thin_out() const {
  std::vector<SequenceNumber> all = in_folder();
  while (all.size() > std::max<std::size_t>(options_.kept_max, 2)) {
    std::size_t least = 1;
    for (std::size_t i = 1; i + 1 < all.size(); ++i) {
      const auto gap = [&](std::size_t each) { return distance(all[each + 1], all[each - 1]); };
      if (gap(i) < gap(least)) least = i;
    }
    std::error_code ignored;
    std::filesystem::remove(path_of(all[least]), ignored);
    all.erase(all.begin() + static_cast<std::ptrdiff_t>(least));
  }
}

}  // namespace mariner::ifsck
