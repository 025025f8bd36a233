// The group of nodes that INFO replication describes, and its table for people.
//
// The JSON has the members of HTTP's group (HTTP.md). Pure functions.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "engine/base/bytes.h"
#include "tools/cli/table.h"

namespace sluice::cli {

// Null if the server has no group.
nlohmann::json group_of_info(Bytes info);
// Null if there is no member of this name.
const nlohmann::json* find_member(const nlohmann::json& group, const std::string& name);

// Whether somebody leads who is there.
bool has_primary(const nlohmann::json& group);

// "group main/1, epoch 7: n1 leads", and what is wrong with the group.
std::vector<std::string> group_lines(const nlohmann::json& group);
Table group_table(const nlohmann::json& group);

}  // namespace sluice::cli
