// doctest, for a test. Both the engine (engine/base/check.h) and doctest have a CHECK, and a test
// means doctest's: so this is the last include of a file, behind every header that may use the
// engine's.
#pragma once

#include "engine/base/check.h"

#undef CHECK
#include <doctest/doctest.h>
