// What the core's shared library has for the modules: everything else in it is hidden.
#pragma once

#define FASTQUORUM_API __attribute__((visibility("default")))
