// Small files that the server writes itself: configuration and users.
#pragma once

#include <string>

namespace sluice {

// Puts the text in the file's place in one step, so that a crash or a power cut leaves the old one
// or the new one, and the new one once this has returned. The mode stays. Returns an error message,
// or "". The directory must be readable.
std::string replace_file(const std::string& path, const std::string& text);

}  // namespace sluice
