// Uses the engine of an installed Sluice, with the include paths that the repository has.
#include "engine/base/numbers.h"

int main() { return sluice::format_double(2.5) == "2.5" ? 0 : 1; }
