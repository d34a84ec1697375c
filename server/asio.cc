// Boost.Asio's own code, compiled once for the whole tree (BOOST_ASIO_SEPARATE_COMPILATION).
#include <boost/asio/impl/src.hpp>
