// Replaces small files that the server writes itself: configuration and users.
#pragma once

#include <string>

#include "engine/base/status.h"

namespace sluice {

// Replaces the file's contents atomically: after a crash or power failure the file has either the
// old or the new contents, and the new ones once this has returned. The mode is kept. The
// directory must be readable.
Status replace_file(const std::string& path, const std::string& text);

}  // namespace sluice
