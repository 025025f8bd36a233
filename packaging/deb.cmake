# The configuration of cpack for the .deb, which tools/package starts. In the environment are STAGE,
# the installed tree with its changes for Debian, VERSION, and OUT, the folder of the result. cpack
# takes the debug information out of the programs into a package of its own, and finds out which
# libraries they need.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME sluice)
set(CPACK_PACKAGE_VERSION "$ENV{VERSION}")
set(CPACK_PACKAGE_FILE_NAME sluice)
set(CPACK_PACKAGE_CONTACT "The Sluice authors <sluice@localhost>")
set(CPACK_PACKAGE_DIRECTORY "$ENV{OUT}")
set(CPACK_INSTALLED_DIRECTORIES "$ENV{STAGE}" ".")
set(CPACK_PACKAGING_INSTALL_PREFIX "/")

set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION database)
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "durable execution queue that speaks the Redis protocol")
set(CPACK_PACKAGE_DESCRIPTION
  "Jobs with priorities, leases, limits for the queue, each user and each label,
fairness, delays, retries and dependencies. A reply means that the change is on
the disk. It replaces redis-server for queues of plain Redis keys.")
# dpkg-shlibdeps adds the libraries.
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_DEPENDS "adduser, init-system-helpers (>= 1.54)")
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "redis-tools")
set(CPACK_DEBIAN_DEBUGINFO_PACKAGE ON)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_PACKAGE_CONTROL_EXTRA
  "${CMAKE_CURRENT_LIST_DIR}/deb/postinst" "${CMAKE_CURRENT_LIST_DIR}/deb/prerm"
  "${CMAKE_CURRENT_LIST_DIR}/deb/postrm" "$ENV{STAGE}/../conffiles")
