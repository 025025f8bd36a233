# What `cmake --install` puts where: libraries, headers and the package configuration for
# find_package(sluice); programs (see sluice_add_tool); configuration, systemd unit, licence.

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
    "${PROJECT_SOURCE_DIR}/cmake/FindLuaJIT.cmake"
    "${PROJECT_SOURCE_DIR}/cmake/FindLuaCjson.cmake"
    "${PROJECT_SOURCE_DIR}/cmake/FindXxhash.cmake"
    DESTINATION "${package_dir}")
  foreach(folder IN ITEMS engine storage net)
    if(EXISTS "${PROJECT_SOURCE_DIR}/${folder}")
      install(DIRECTORY "${PROJECT_SOURCE_DIR}/${folder}"
        DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/sluice" FILES_MATCHING PATTERN "*.h")
    endif()
  endforeach()
endif()

install(FILES "${PROJECT_SOURCE_DIR}/LICENSE" DESTINATION "${CMAKE_INSTALL_DOCDIR}" OPTIONAL)
install(FILES "${PROJECT_SOURCE_DIR}/conf/sluice.conf"
  DESTINATION "${CMAKE_INSTALL_SYSCONFDIR}/sluice" OPTIONAL)
foreach(example prometheus.yml prometheus-alerts.yml grafana-dashboard.json)
  install(FILES "${PROJECT_SOURCE_DIR}/conf/${example}"
    DESTINATION "${CMAKE_INSTALL_DATADIR}/sluice" OPTIONAL)
endforeach()

# The unit in conf/ names the paths of a distribution's package (/usr/bin, /etc); the installed copy
# names those of the prefix, which is known only now (`cmake --install --prefix`).
if(EXISTS "${PROJECT_SOURCE_DIR}/conf/sluice.service")
  install(CODE "
    file(READ \"${PROJECT_SOURCE_DIR}/conf/sluice.service\" unit)
    if(NOT CMAKE_INSTALL_PREFIX STREQUAL \"/usr\")
      set(bin \"\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_BINDIR}/\")
      set(etc \"\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_SYSCONFDIR}/sluice/\")
      string(REPLACE \"/usr/bin/\" \"\${bin}\" unit \"\${unit}\")
      string(REPLACE \"/etc/sluice/\" \"\${etc}\" unit \"\${unit}\")
    endif()
    set(unit_file \"\${CMAKE_INSTALL_PREFIX}/lib/systemd/system/sluice.service\")
    message(STATUS \"Installing: \$ENV{DESTDIR}\${unit_file}\")
    file(WRITE \"\$ENV{DESTDIR}\${unit_file}\" \"\${unit}\")")
endif()
