// A callable that is moved, never copied, with room inside for a few captured pointers: what
// completions are passed as. (std::move_only_function is C++23.)
#pragma once

#include <cstddef>
#include <new>
#include <type_traits>
#include <utility>

#include "proto/check.h"

namespace mariner {

template <typename Signature>
class UniqueFunction;

template <typename R, typename... Args>
class UniqueFunction<R(Args...)> {
 public:
  UniqueFunction() = default;
  UniqueFunction(std::nullptr_t) {}  // NOLINT(google-explicit-constructor): like std::function

  template <typename F>
    requires(!std::is_same_v<std::decay_t<F>, UniqueFunction> &&
             std::is_invocable_r_v<R, std::decay_t<F>&, Args...>)
  UniqueFunction(F&& f) {  // NOLINT(google-explicit-constructor): like std::function
    using Callable = std::decay_t<F>;
    if constexpr (sizeof(Callable) <= kInlineBytes &&
                  alignof(Callable) <= alignof(std::max_align_t) &&
                  std::is_nothrow_move_constructible_v<Callable>) {
      new (storage_) Callable(std::forward<F>(f));
      vtable_ = &kInline<Callable>;
    } else {
      *reinterpret_cast<Callable**>(storage_) = new Callable(std::forward<F>(f));
      vtable_ = &kHeap<Callable>;
    }
  }

  UniqueFunction(UniqueFunction&& other) noexcept { take(other); }
  UniqueFunction& operator=(UniqueFunction&& other) noexcept {
    if (this != &other) {
      reset();
      take(other);
    }
    return *this;
  }
  UniqueFunction(const UniqueFunction&) = delete;
  UniqueFunction& operator=(const UniqueFunction&) = delete;
  ~UniqueFunction() { reset(); }

  explicit operator bool() const { return vtable_ != nullptr; }

  // Requires a callable. May be called more than once if the callable may.
  R operator()(Args... args) {
    CHECK(vtable_ != nullptr);
    return vtable_->invoke(storage_, std::forward<Args>(args)...);
  }

  void reset() {
    if (vtable_ != nullptr) std::exchange(vtable_, nullptr)->destroy(storage_);
  }

 private:
  static constexpr std::size_t kInlineBytes = 56;

  struct VTable {
    R (*invoke)(void*, Args&&...);
    void (*relocate)(void* from, void* to) noexcept;
    void (*destroy)(void*) noexcept;
  };

  template <typename C>
  static constexpr VTable kInline{
      [](void* p, Args&&... args) -> R {
        return static_cast<R>((*static_cast<C*>(p))(std::forward<Args>(args)...));
      },
      [](void* from, void* to) noexcept {
        new (to) C(std::move(*static_cast<C*>(from)));
        static_cast<C*>(from)->~C();
      },
      [](void* p) noexcept { static_cast<C*>(p)->~C(); }};

  template <typename C>
  static constexpr VTable kHeap{
      [](void* p, Args&&... args) -> R {
        return static_cast<R>((**static_cast<C**>(p))(std::forward<Args>(args)...));
      },
      [](void* from, void* to) noexcept { *static_cast<C**>(to) = *static_cast<C**>(from); },
      [](void* p) noexcept { delete *static_cast<C**>(p); }};

  void take(UniqueFunction& other) noexcept {
    vtable_ = std::exchange(other.vtable_, nullptr);
    if (vtable_ != nullptr) vtable_->relocate(other.storage_, storage_);
  }

  alignas(std::max_align_t) std::byte storage_[kInlineBytes];
  const VTable* vtable_ = nullptr;
};

}  // namespace mariner
