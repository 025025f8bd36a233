# Grpc::Grpc, for C++, with the small protobuf (messages without reflection), and the compiler of
# messages, Grpc_PROTOC. Debian's gRPCConfig.cmake needs more development packages than its own.
#
# A program with the property GRPC_STATIC gets static libraries, if there are some: it loads fifty
# libraries less, and what it does not call costs it nothing. The default are shared ones: a static
# protobuf cannot go into a shared library.
find_path(Grpc_INCLUDE_DIR grpcpp/grpcpp.h)
find_path(Grpc_PROTOBUF_INCLUDE_DIR google/protobuf/message_lite.h)
find_program(Grpc_PROTOC protoc)
set(Grpc_LIBRARIES "")
foreach(name IN ITEMS grpc++ grpc gpr absl_synchronization protobuf-lite)
  find_library(Grpc_${name}_LIBRARY ${name})
  list(APPEND Grpc_LIBRARIES "${Grpc_${name}_LIBRARY}")
endforeach()

# Abseil is many small libraries, of which gRPC's static ones need most.
set(Grpc_ARCHIVES "")
foreach(name IN ITEMS grpc++ grpc gpr address_sorting upb re2 cares protobuf-lite)
  find_library(Grpc_${name}_ARCHIVE "lib${name}.a")
  list(APPEND Grpc_ARCHIVES "${Grpc_${name}_ARCHIVE}")
endforeach()
find_library(Grpc_z_LIBRARY z)
get_filename_component(folder "${Grpc_grpc_ARCHIVE}" DIRECTORY)
file(GLOB abseil "${folder}/libabsl_*.a")
if("${Grpc_ARCHIVES};${Grpc_z_LIBRARY}" MATCHES "NOTFOUND" OR NOT abseil)
  set(Grpc_LINK "${Grpc_LIBRARIES}")
else()
  # They refer to each other in circles.
  list(JOIN Grpc_ARCHIVES "," archives)
  list(JOIN abseil "," abseil)
  set(static "$<LINK_GROUP:RESCAN,${archives},${abseil}>;${Grpc_z_LIBRARY}")
  set(chosen "$<BOOL:$<TARGET_PROPERTY:GRPC_STATIC>>")
  set(Grpc_LINK "$<${chosen}:${static}>;$<$<NOT:${chosen}>:${Grpc_LIBRARIES}>")
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(Grpc REQUIRED_VARS Grpc_grpc++_LIBRARY Grpc_grpc_LIBRARY
  Grpc_gpr_LIBRARY Grpc_absl_synchronization_LIBRARY Grpc_protobuf-lite_LIBRARY Grpc_INCLUDE_DIR
  Grpc_PROTOBUF_INCLUDE_DIR Grpc_PROTOC)
if(Grpc_FOUND AND NOT TARGET Grpc::Grpc)
  add_library(Grpc::Grpc INTERFACE IMPORTED)
  set_target_properties(Grpc::Grpc PROPERTIES
    INTERFACE_LINK_LIBRARIES "${Grpc_LINK}"
    INTERFACE_INCLUDE_DIRECTORIES "${Grpc_INCLUDE_DIR};${Grpc_PROTOBUF_INCLUDE_DIR}")
endif()
mark_as_advanced(Grpc_INCLUDE_DIR Grpc_PROTOBUF_INCLUDE_DIR Grpc_PROTOC)
