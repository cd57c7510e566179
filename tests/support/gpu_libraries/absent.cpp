// What needs_absent.cpp links; it lies where the loader does not look.
extern "C" int fluid_absent() { return 1; }
