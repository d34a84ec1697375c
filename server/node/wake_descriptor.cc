#include "server/node/wake_descriptor.h"

#include <boost/asio/detail/reactor_op.hpp>

namespace mariner::node {
namespace {

using boost::system::error_code;

class WakeOperation final : public boost::asio::detail::reactor_op {
 public:
  explicit WakeOperation(bool& woken)
      : reactor_op(error_code(), &WakeOperation::do_perform, &WakeOperation::do_complete),
        woken_(woken) {}

 private:
  static status do_perform(reactor_op* self) {
    static_cast<WakeOperation*>(self)->woken_ = true;
    return not_done;
  }
  // Only when it is taken away.
  static void do_complete(void*, boost::asio::detail::operation* self, const error_code&,
                          std::size_t) {
    delete static_cast<WakeOperation*>(self);
  }

  bool& woken_;
};

}  // namespace

Result<std::unique_ptr<WakeDescriptor>> WakeDescriptor::watch(boost::asio::io_context& context,
                                                              int fd, bool& woken) {
  auto& reactor = boost::asio::use_service<Reactor>(context);
  reactor.init_task();
  std::unique_ptr<WakeDescriptor> self(new WakeDescriptor(reactor, fd));
  auto operation = std::make_unique<WakeOperation>(woken);
  const int error =
      reactor.register_internal_descriptor(Reactor::read_op, fd, self->data_, operation.get());
  // The reactor has it now, also when it could not watch the descriptor.
  static_cast<void>(operation.release());
  if (error != 0) return errno_error(error, "cannot watch a descriptor for events");
  return self;
}

WakeDescriptor::~WakeDescriptor() {
  reactor_.deregister_internal_descriptor(fd_, data_);
  reactor_.cleanup_descriptor_data(data_);
}

}  // namespace mariner::node
