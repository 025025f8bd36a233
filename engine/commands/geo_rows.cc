// The rows of the geo family.
#include "engine/commands/families.h"
#include "engine/commands/geo.h"

namespace sluice {

namespace {

constexpr KeySpec kReadKey = keys_at(1, kKeyRo | kKeyAccess);

// The destination key follows this word.
constexpr KeySpec kept_behind(const char* word, int from) {
  return {.flags = kKeyOw | kKeyUpdate,
          .begin = KeySpec::Begin::kKeyword,
          .index = from,
          .keyword = word,
          .find = KeySpec::Find::kRange};
}

constexpr const char* kRadiusComplexity =
    "O(N+log(M)) where N is the number of elements inside the bounding box of the circular area "
    "delimited by center and radius and M is the number of items inside the index.";
constexpr const char* kSearchComplexity =
    "O(N+log(M)) where N is the number of elements in the grid-aligned bounding box area around "
    "the shape provided as the filter and M is the number of items inside the shape";

const Command kGeoRows[] = {
    {.name = "geoadd",
     .flags = kWrite | kDenyOom,
     .keys = {keys_at(1, kKeyRw | kKeyUpdate)},
     .handler = geoadd_command,
     .since = "3.2.0",
     .complexity = "O(log(N)) for each item added, where N is the number of elements in the "
                   "sorted set.",
     .summary = "Adds places to a sorted set, or moves them.",
     .syntax = "key [NX | XX] [CH] longitude latitude member [longitude latitude member "
               "...]"},
    {.name = "geodist",
     .flags = kReadonly,
     .keys = {kReadKey},
     .handler = geodist_command,
     .since = "3.2.0",
     .complexity = "O(log(N))",
     .summary = "Returns the distance between two places.",
     .syntax = "key member1 member2 [M | KM | FT | MI]"},
    {.name = "geohash",
     .arity = -2,
     .flags = kReadonly,
     .keys = {kReadKey},
     .handler = geohash_command,
     .since = "3.2.0",
     .complexity = "O(log(N)) for each member requested, where N is the number of elements "
                   "in the sorted set.",
     .summary = "Reads places as geohashes, texts of eleven characters.",
     .syntax = "key member [member ...]"},
    {.name = "geopos",
     .arity = -2,
     .flags = kReadonly,
     .keys = {kReadKey},
     .handler = geopos_command,
     .since = "3.2.0",
     .complexity = "O(N) where N is the number of members requested.",
     .summary = "Reads the longitudes and latitudes of places.",
     .syntax = "key member [member ...]"},
    {.name = "georadius",
     .flags = kWrite | kDenyOom | kMovableKeys,
     .keys = {kReadKey, kept_behind("STORE", 6), kept_behind("STOREDIST", 6)},
     .handler = georadius_command,
     .since = "3.2.0",
     .complexity = kRadiusComplexity,
     .summary = "Finds the places in a circle; may store them.",
     .syntax = "key longitude latitude radius <M | KM | FT | MI> [WITHCOORD] [WITHDIST] "
               "[WITHHASH] [COUNT count [ANY]] [ASC | DESC] [STORE storekey] [STOREDIST "
               "storekey]",
     .find_other_keys = find_georadius_destination},
    {.name = "georadius_ro",
     .flags = kReadonly,
     .keys = {kReadKey},
     .handler = georadius_ro_command,
     .since = "3.2.10",
     .complexity = kRadiusComplexity,
     .summary = "Finds the places in a circle.",
     .syntax = "key longitude latitude radius <M | KM | FT | MI> [WITHCOORD] [WITHDIST] "
               "[WITHHASH] [COUNT count [ANY]] [ASC | DESC]"},
    {.name = "georadiusbymember",
     .flags = kWrite | kDenyOom | kMovableKeys,
     .keys = {kReadKey, kept_behind("STORE", 5), kept_behind("STOREDIST", 5)},
     .handler = georadiusbymember_command,
     .since = "3.2.0",
     .complexity = kRadiusComplexity,
     .summary = "Finds the places in a circle around a member; may store them.",
     .syntax = "key member radius <M | KM | FT | MI> [WITHCOORD] [WITHDIST] [WITHHASH] "
               "[COUNT count [ANY]] [ASC | DESC] [STORE storekey] [STOREDIST storekey]",
     .find_other_keys = find_georadiusbymember_destination},
    {.name = "georadiusbymember_ro",
     .flags = kReadonly,
     .keys = {kReadKey},
     .handler = georadiusbymember_ro_command,
     .since = "3.2.10",
     .complexity = kRadiusComplexity,
     .summary = "Finds the places in a circle around a member.",
     .syntax = "key member radius <M | KM | FT | MI> [WITHCOORD] [WITHDIST] [WITHHASH] "
               "[COUNT count [ANY]] [ASC | DESC]"},
    {.name = "geosearch",
     .flags = kReadonly,
     .keys = {kReadKey},
     .handler = geosearch_command,
     .since = "6.2.0",
     .complexity = kSearchComplexity,
     .summary = "Finds the places in a circle or a box.",
     .syntax = "key <FROMMEMBER member | FROMLONLAT longitude latitude> <BYRADIUS "
               "radius <M | KM | FT | MI> | BYBOX width height <M | KM | FT | MI>> [ASC "
               "| DESC] [COUNT count [ANY]] [WITHCOORD] [WITHDIST] [WITHHASH]"},
    {.name = "geosearchstore",
     .flags = kWrite | kDenyOom,
     .keys = {keys_at(1, kKeyOw | kKeyUpdate), keys_at(2, kKeyRo | kKeyAccess)},
     .handler = geosearchstore_command,
     .since = "6.2.0",
     .complexity = kSearchComplexity,
     .summary = "Stores the places in a circle or a box as a sorted set.",
     .syntax = "destination source <FROMMEMBER member | FROMLONLAT longitude latitude> "
               "<BYRADIUS radius <M | KM | FT | MI> | BYBOX width height <M | KM | FT | "
               "MI>> [ASC | DESC] [COUNT count [ANY]] [STOREDIST]"},
};

}  // namespace

const CommandFamily kGeoCommands = {"geo", kGeoRows, kAclGeo};

}  // namespace sluice
