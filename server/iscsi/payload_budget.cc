#include "server/iscsi/payload_budget.h"

#include <utility>

#include "proto/check.h"
#include "server/iscsi/session.h"

namespace mariner::iscsi {

PayloadBudget::PayloadBudget(std::uint64_t bytes_max, std::shared_ptr<Starved> starved)
    : bytes_max_(bytes_max), starved_(std::move(starved)) {}

void PayloadBudget::change(std::uint64_t before, std::uint64_t after) {
  CHECK(used_ >= before);
  used_ += after - before;
}

void PayloadBudget::unkeep(std::uint64_t bytes) {
  CHECK(kept_ >= bytes);
  kept_ -= bytes;
}

std::shared_ptr<PayloadBudget> PayloadBudgets::of(const std::string& initiator) {
  std::erase_if(budgets_, [](const auto& entry) { return entry.second.expired(); });
  std::weak_ptr<PayloadBudget>& place = budgets_[initiator];
  if (auto existing = place.lock()) return existing;
  auto budget = std::make_shared<PayloadBudget>(bytes_max_, starved_);
  place = budget;
  return budget;
}

void PayloadBudgets::feed() {
  if (starved_->empty()) return;
  // Who still finds no room waits for the next time.
  for (const auto& weak : std::exchange(*starved_, {})) {
    if (const auto session = weak.lock()) session->budget_freed();
  }
}

}  // namespace mariner::iscsi
