// Beast, compiled once.
#include <boost/beast/src.hpp>
