/*
 * number.h - decimal text to double, fast where it is easy and exact always.
 *
 * Up to 19 digits that fit 53 bits, scaled by a power of ten up to 22, need one exact multiplication or
 * division (Clinger, "How to read floating point numbers accurately", PLDI 1990); all else goes to strtod.
 */
#ifndef BASE_NUMBER_H
#define BASE_NUMBER_H

#include <stdbool.h>

#include "base/base.h"

/* The whole of text[0..len) must be a finite decimal number: "12", "-0.5", "1e9". No hexadecimal, no names, no spaces. */
bool number_parse(const char *text, size_t len, double *out);

#endif
