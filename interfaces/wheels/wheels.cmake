# Builds unmodified interface packages on the ROS 2 wheels of PyPI; given as -DCMAKE_PROJECT_INCLUDE.
find_package(ament_cmake REQUIRED)
find_package(rosidl_default_generators REQUIRED)

# Python needs the C code only; without the C++ generators the build takes half the time.
list(FILTER AMENT_EXTENSIONS_rosidl_generate_idl_interfaces EXCLUDE REGEX "_cpp:")

# The targets in the wheels name include folders of the machine that built them, which CMake refuses.
function(drop_foreign_include_folders)
  get_directory_property(targets IMPORTED_TARGETS)
  foreach(target IN LISTS targets)
    get_target_property(folders ${target} INTERFACE_INCLUDE_DIRECTORIES)
    if(folders)
      list(FILTER folders EXCLUDE REGEX "^/opt/python/")
      set_target_properties(${target} PROPERTIES INTERFACE_INCLUDE_DIRECTORIES "${folders}")
    endif()
  endforeach()
endfunction()
cmake_language(DEFER CALL drop_foreign_include_folders)
