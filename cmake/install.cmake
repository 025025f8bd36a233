# What `cmake --install` installs: libraries, headers and the package configuration for
# find_package(sluice); programs (see sluice_add_tool); documentation, configuration, systemd unit.
# The component programs is everything but what other projects build with (tools/package).

include(CMakePackageConfigHelpers)
set(package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/sluice")

if(SLUICE_LIBRARIES)
  install(TARGETS ${SLUICE_LIBRARIES} EXPORT sluice-targets
    ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}")
  install(EXPORT sluice-targets NAMESPACE sluice:: DESTINATION "${package_dir}")
  configure_package_config_file("${PROJECT_SOURCE_DIR}/cmake/sluice-config.cmake.in"
    "${PROJECT_BINARY_DIR}/sluice-config.cmake" INSTALL_DESTINATION "${package_dir}")
  write_basic_package_version_file("${PROJECT_BINARY_DIR}/sluice-config-version.cmake"
    COMPATIBILITY SameMinorVersion)
  install(FILES
    "${PROJECT_BINARY_DIR}/sluice-config.cmake"
    "${PROJECT_BINARY_DIR}/sluice-config-version.cmake"
    "${PROJECT_SOURCE_DIR}/cmake/FindGrpc.cmake"
    "${PROJECT_SOURCE_DIR}/cmake/FindLuaJIT.cmake"
    "${PROJECT_SOURCE_DIR}/cmake/FindLuaCjson.cmake"
    "${PROJECT_SOURCE_DIR}/cmake/FindXxhash.cmake"
    "${PROJECT_SOURCE_DIR}/cmake/FindZstd.cmake"
    DESTINATION "${package_dir}")
  foreach(folder IN ITEMS engine storage net)
    if(EXISTS "${PROJECT_SOURCE_DIR}/${folder}")
      install(DIRECTORY "${PROJECT_SOURCE_DIR}/${folder}"
        DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/sluice" FILES_MATCHING PATTERN "*.h")
    endif()
  endforeach()
endif()

# The documentation, with the folders that its links refer to.
install(FILES
  "${PROJECT_SOURCE_DIR}/LICENSE" "${PROJECT_SOURCE_DIR}/README.md"
  "${PROJECT_SOURCE_DIR}/QUEUE.md" "${PROJECT_SOURCE_DIR}/REDIS.md"
  "${PROJECT_SOURCE_DIR}/COMMANDS.md" "${PROJECT_SOURCE_DIR}/HTTP.md"
  "${PROJECT_SOURCE_DIR}/ARCHITECTURE.md"
  DESTINATION "${CMAKE_INSTALL_DOCDIR}" COMPONENT programs)
foreach(folder IN ITEMS docs conf bench/results examples)
  install(DIRECTORY "${PROJECT_SOURCE_DIR}/${folder}/"
    DESTINATION "${CMAKE_INSTALL_DOCDIR}/${folder}" COMPONENT programs
    PATTERN "*.service" EXCLUDE PATTERN "__pycache__" EXCLUDE)
endforeach()
foreach(client IN ITEMS python typescript)
  install(FILES "${PROJECT_SOURCE_DIR}/clients/${client}/README.md"
    DESTINATION "${CMAKE_INSTALL_DOCDIR}/clients/${client}" COMPONENT programs)
endforeach()
foreach(example IN ITEMS prometheus.yml prometheus-alerts.yml grafana-dashboard.json)
  install(FILES "${PROJECT_SOURCE_DIR}/conf/${example}"
    DESTINATION "${CMAKE_INSTALL_DATADIR}/sluice" COMPONENT programs)
endforeach()

# The configuration and the unit depend on the prefix, which is known only at install time.
configure_file("${PROJECT_SOURCE_DIR}/cmake/install_service.cmake.in"
  "${PROJECT_BINARY_DIR}/install_service.cmake" @ONLY)
install(SCRIPT "${PROJECT_BINARY_DIR}/install_service.cmake" COMPONENT programs)
