/*
 * read_gguf.h - models from GGUF files.
 *
 * Tensors, their types and sizes are the file's own; heads, windows and experts follow from its keys.
 * See gguf.h for the format.
 */
#ifndef MODELS_READ_GGUF_H
#define MODELS_READ_GGUF_H

#include "models/gguf.h"
#include "models/model.h"

/* path: of a file, or of any part of a split one (NAME-00001-of-00003.gguf), whose other parts must lie
   beside it. quant: NULL, or what to count the tensors as instead of what the file stores. */
int read_gguf(const char *path, const char *quant, struct arena *a, struct model **out, struct err *err);
/* The same from a file that is open and not split; the model lives in its arena. */
int read_gguf_open(struct gguf *g, const char *quant, struct model **out, struct err *err);

#endif
