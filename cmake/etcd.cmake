# sluice::etcd, the replicated log on etcd: a library of its own, so that programs which do not use
# it need no gRPC. Only calls by name are made (storage/etcd/etcd_rpc.cc), so protoc alone generates
# code: one source of messages.
if(SLUICE_ETCD)
  sluice_add_library(storage/etcd OUTPUT etcd WITHOUT storage/etcd/without_etcd.cc)
else()
  sluice_add_library(storage/etcd OUTPUT etcd WITHOUT
    "storage/etcd/etcd_(ask|client|follow|log|records|rpc).cc")
endif()
if(TARGET sluice_etcd)
  sluice_link_existing(sluice_etcd PUBLIC sluice_storage sluice_engine)
endif()
if(TARGET sluice_etcd AND SLUICE_ETCD)
  set(folder "${PROJECT_BINARY_DIR}/etcd_messages")
  file(MAKE_DIRECTORY "${folder}")
  add_custom_command(OUTPUT "${folder}/etcd.pb.cc" "${folder}/etcd.pb.h"
    COMMAND "${Grpc_PROTOC}" "--proto_path=${PROJECT_SOURCE_DIR}/storage/etcd"
      "--cpp_out=${folder}" etcd.proto
    DEPENDS "${PROJECT_SOURCE_DIR}/storage/etcd/etcd.proto"
    COMMENT "Generating etcd.pb.cc" VERBATIM)
  target_sources(sluice_etcd PRIVATE "${folder}/etcd.pb.cc" "${folder}/etcd.pb.h")
  set_source_files_properties("${folder}/etcd.pb.cc" PROPERTIES COMPILE_OPTIONS "-w")
  target_include_directories(sluice_etcd SYSTEM PRIVATE "${folder}")
  target_link_libraries(sluice_etcd PRIVATE Grpc::Grpc)
endif()
