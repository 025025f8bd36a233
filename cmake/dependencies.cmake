# The packages that Sluice depends on, as shipped by Debian 12; tools/setup installs them. The
# installed package configuration (cmake/sluice-config.cmake.in) requires the same ones.

find_package(Threads REQUIRED)
find_package(Boost 1.81 REQUIRED)
find_package(OpenSSL 3.0 REQUIRED COMPONENTS Crypto SSL)
find_package(RocksDB 7.8 CONFIG REQUIRED)
find_package(spdlog 1.10 CONFIG REQUIRED)
find_package(nlohmann_json 3.11 CONFIG REQUIRED)
find_package(LuaJIT REQUIRED)
find_package(LuaCjson REQUIRED)
find_package(Xxhash REQUIRED)
find_package(Hiredis 0.14 REQUIRED)
if(SLUICE_JEMALLOC)
  find_package(Jemalloc REQUIRED)
endif()
if(SLUICE_TESTS)
  find_package(doctest 2.4 CONFIG REQUIRED)
endif()
