// jemalloc's own interface, which may not be linked: sanitizer builds and programs that embed a
// server run without it. Each function is a weak symbol, so check `mallctl != nullptr` first.
#pragma once

#include <jemalloc/jemalloc.h>

#pragma weak mallctl
#pragma weak malloc_stats_print
