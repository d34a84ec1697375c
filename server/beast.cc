// Boost.Beast's own code, compiled once for the whole tree (BOOST_BEAST_SEPARATE_COMPILATION).
#include <boost/beast/src.hpp>
