// Handlers of the geo family; the rows that name them are in geo_rows.cc.
#pragma once

#include <span>
#include <vector>

#include "engine/base/bytes.h"

namespace sluice {

struct Call;
struct KeyPosition;

// geo.cc
void geoadd_command(Call& call);
void geodist_command(Call& call);
void geohash_command(Call& call);
void geopos_command(Call& call);

// geo_search.cc
void georadius_command(Call& call);
void georadius_ro_command(Call& call);
void georadiusbymember_command(Call& call);
void georadiusbymember_ro_command(Call& call);
void geosearch_command(Call& call);
void geosearchstore_command(Call& call);
// The key of the last STORE or STOREDIST of GEORADIUS and GEORADIUSBYMEMBER; the key specifications
// find the first one.
void find_georadius_destination(std::span<const Bytes> args, std::vector<KeyPosition>& positions);
void find_georadiusbymember_destination(std::span<const Bytes> args,
                                        std::vector<KeyPosition>& positions);

}  // namespace sluice
