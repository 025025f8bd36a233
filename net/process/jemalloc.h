// jemalloc's own interface, which is absent where it is not linked: sanitizer builds and programs
// that embed a server do without. Each function is a weak symbol: ask `mallctl != nullptr` first.
#pragma once

#include <jemalloc/jemalloc.h>

#pragma weak mallctl
#pragma weak malloc_stats_print
