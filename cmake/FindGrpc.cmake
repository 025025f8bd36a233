# Grpc::Grpc, for C++, with the small protobuf (messages without reflection), and the compiler of
# messages, Grpc_PROTOC. Debian's gRPCConfig.cmake needs more development packages than its own.
find_path(Grpc_INCLUDE_DIR grpcpp/grpcpp.h)
find_path(Grpc_PROTOBUF_INCLUDE_DIR google/protobuf/message_lite.h)
find_program(Grpc_PROTOC protoc)
set(Grpc_LIBRARIES "")
foreach(name IN ITEMS grpc++ grpc gpr absl_synchronization protobuf-lite)
  find_library(Grpc_${name}_LIBRARY ${name})
  list(APPEND Grpc_LIBRARIES "${Grpc_${name}_LIBRARY}")
endforeach()
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(Grpc REQUIRED_VARS Grpc_grpc++_LIBRARY Grpc_grpc_LIBRARY
  Grpc_gpr_LIBRARY Grpc_absl_synchronization_LIBRARY Grpc_protobuf-lite_LIBRARY Grpc_INCLUDE_DIR
  Grpc_PROTOBUF_INCLUDE_DIR Grpc_PROTOC)
if(Grpc_FOUND AND NOT TARGET Grpc::Grpc)
  add_library(Grpc::Grpc INTERFACE IMPORTED)
  set_target_properties(Grpc::Grpc PROPERTIES
    INTERFACE_LINK_LIBRARIES "${Grpc_LIBRARIES}"
    INTERFACE_INCLUDE_DIRECTORIES "${Grpc_INCLUDE_DIR};${Grpc_PROTOBUF_INCLUDE_DIR}")
endif()
mark_as_advanced(Grpc_INCLUDE_DIR Grpc_PROTOBUF_INCLUDE_DIR Grpc_PROTOC)
