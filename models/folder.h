/*
 * folder.h - which file of a folder is the model.
 */
#ifndef MODELS_FOLDER_H
#define MODELS_FOLDER_H

#include "base/arena.h"

/* The first of: a .gguf file (of a split one its first part; of several the first by name; no mmproj), an
   index of safetensors, a .safetensors file, config.json, whether that is there or not. */
const char *folder_model(const char *path, struct arena *a);

#endif
