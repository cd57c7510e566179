// needs_absent.cpp links this library, which is not on the loader's search path.
extern "C" int fluid_absent() { return 1; }
